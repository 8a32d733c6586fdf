"""Numbers along an axis: which, and how they are written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise


def choose_ticks(low: float, high: float, max_ticks: int) -> list[float]:
    """Round numbers between the ends, at most so many; the ends themselves if there are none.

    >>> choose_ticks(0, 1, 5)
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    extent = high - low
    if not (math.isfinite(extent) and extent > 0):
        return [low]
    power = 10.0 ** math.floor(math.log10(extent / max_ticks))
    for step in (1, 2, 2.5, 5, 10, 20, 25, 50, 100):
        first = math.ceil(low / (step * power) - 1e-9)
        last = math.floor(high / (step * power) + 1e-9)
        if 1 < last - first + 1 <= max_ticks:
            return [round(float(k * step * power), 12) for k in range(first, last + 1)]
    return [low, high]


def format_number(value: float, step: float | None = None) -> str:
    """A number to read: 52, 0.3142, 75,000; with as many decimals as a ``step`` has, if given.

    >>> format_number(3.4025, step=0.0025)
    '3.4025'
    """
    if abs(value) >= 1e15:
        return f"{value:.4g}"
    if step is not None and 0 < step < 1:
        decimals = min(9, -math.floor(math.log10(step)))
        text = f"{value:.{decimals + 2}f}".rstrip("0").rstrip(".")
        return "0" if text == "-0" else text
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def format_edges(edges: Sequence[float]) -> dict[float, str]:
    """Edges of cells in three digits, or as many as it takes to tell the narrowest cell's apart.

    >>> list(format_edges([-9.9, -6.1625, 20]).values())
    ['-9.9', '-6.16', '20']
    """
    values = sorted(set(edges))
    min_width = min((b - a for a, b in pairwise(values)), default=0.0)
    for digits in range(3, 16):
        rounded = {value: float(f"{value:.{digits}g}") for value in values}
        if all(abs(rounded[value] - value) <= min_width / 10 for value in values):
            break
    return {value: _format_digits(rounded[value], digits) for value in edges}


def _format_digits(value: float, digits: int) -> str:
    """Large numbers in full, with commas from five figures on."""
    if 10_000 <= abs(value) < 1e15:
        decimals = max(0, digits - math.floor(math.log10(abs(value))) - 1)
        text = f"{value:,.{decimals}f}"
        return text.rstrip("0").rstrip(".") if decimals else text
    return f"{value:.0f}" if abs(value) >= 1 and value.is_integer() else f"{value:.{digits}g}"
