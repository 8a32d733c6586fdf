"""Numbers and dates along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np

from cida.diagnostics.view import View
from cida.space import Periodic

__all__ = [
    "axis_name",
    "edge_words",
    "first_column",
    "index_words",
    "number_words",
    "ticks",
    "turn_ticks",
]

Array = np.ndarray[Any, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers between the ends, at most so many; the ends themselves if there are none.

    >>> ticks(0, 1, 5)
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    room = high - low
    if not (math.isfinite(room) and room > 0):
        return [low]
    power = 10.0 ** math.floor(math.log10(room / most))
    for step in (1, 2, 2.5, 5, 10, 20, 25, 50, 100):
        first, last = (
            math.ceil(low / (step * power) - 1e-9),
            math.floor(high / (step * power) + 1e-9),
        )
        if 1 < last - first + 1 <= most:
            return [round(float(k * step * power), 12) for k in range(first, last + 1)]
    return [low, high]


def number_words(value: float, step: float | None = None) -> str:
    """A number to read: 52, 0.3142, 75,000; with as many decimals as a ``step`` has, if given.

    >>> number_words(3.4025, step=0.0025)
    '3.4025'
    """
    if abs(value) >= 1e15:
        return f"{value:.4g}"
    if step is not None and 0 < step < 1:
        decimals = min(9, -math.floor(math.log10(step)))
        text = f"{value:.{decimals + 2}f}".rstrip("0").rstrip(".")
        return "0" if text == "-0" else text
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def edge_words(edges: Sequence[float]) -> dict[float, str]:
    """Edges of cells in three digits, or as many as it takes to tell the narrowest cell's apart.

    >>> list(edge_words([-9.9, -6.1625, 20]).values())
    ['-9.9', '-6.16', '20']
    """
    values = sorted(set(edges))
    least = min((b - a for a, b in pairwise(values)), default=0.0)
    for digits in range(3, 16):
        near = {value: float(f"{value:.{digits}g}") for value in values}
        if all(abs(near[value] - value) <= least / 10 for value in values):
            break
    return {value: _plain(near[value], digits) for value in edges}


def _plain(value: float, digits: int) -> str:
    """Large numbers in full, with commas from five figures on."""
    if 10_000 <= abs(value) < 1e15:
        decimals = max(0, digits - math.floor(math.log10(abs(value))) - 1)
        text = f"{value:,.{decimals}f}"
        return text.rstrip("0").rstrip(".") if decimals else text
    return f"{value:.0f}" if abs(value) >= 1 and value.is_integer() else f"{value:.{digits}g}"


def index_words(view: View | None, column: int = 0) -> Callable[[float], str]:
    """How values of an index column are written: dates as dates, unless they wrap round."""
    if view is None or column >= len(view.dates) or not view.dates[column]:
        return number_words
    return number_words if isinstance(view.space.columns[column], Periodic) else _date


def first_column(view: View) -> Array:
    """The values of the first index column; on a circle within the first turn."""
    first = view.space.columns[0]
    u: Array = view.u[:, 0]
    return np.mod(u, first.period) if isinstance(first, Periodic) else u


def turn_ticks(view: View | None, most: int) -> list[float] | None:
    """Even parts of a turn, for an index that wraps round."""
    first = view.space.columns[0] if view is not None else None
    if not isinstance(first, Periodic):
        return None
    return [first.period * k / most for k in range(most + 1)]


def axis_name(view: View | None, column: int = 0) -> str:
    """The name of an index column."""
    return "u" if view is None else view.index[column]


def _date(days: float) -> str:
    try:
        return (EPOCH + timedelta(days=days)).strftime("%Y-%m-%d")
    except OverflowError:
        return f"day {days:g}"
