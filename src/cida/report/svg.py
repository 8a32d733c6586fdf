"""Small charts as inline SVG: no dependency, sharp at any zoom, coloured by the page's style."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

__all__ = ["Band", "Marks", "Series", "index_colour", "line_chart", "scatter"]

Array = np.ndarray[Any, Any]

# Nine stops of viridis: even steps of u look even, in grey and to colour-blind eyes too.
_STOPS = ("440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725")


def index_colour(share: float) -> str:
    """The colour of an index value, given as its share of the whole range."""
    place = min(max(share, 0.0), 1.0) * (len(_STOPS) - 1)
    low = min(int(place), len(_STOPS) - 2)
    mix = place - low
    pair = [[int(stop[k : k + 2], 16) for k in (0, 2, 4)] for stop in _STOPS[low : low + 2]]
    return "#" + "".join(f"{round(a + (b - a) * mix):02x}" for a, b in zip(*pair, strict=True))


@dataclass(frozen=True)
class Axes:
    """A plot area and the data range that it shows."""

    width: float
    height: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    left: float = 44
    right: float = 22
    top: float = 10
    bottom: float = 36

    def x(self, value: Any) -> Any:
        low, high = self.x_range
        room = self.width - self.left - self.right
        return self.left + (value - low) / (high - low) * room

    def y(self, value: Any) -> Any:
        low, high = self.y_range
        room = self.height - self.top - self.bottom
        return self.height - self.bottom - (value - low) / (high - low) * room


@dataclass(frozen=True)
class Series:
    """A line with a name; ``spread`` is its lower and upper band, ``dashed`` for a limit."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    style: str
    spread: tuple[Sequence[float], Sequence[float]] | None = None
    dashed: bool = False


@dataclass(frozen=True)
class Band:
    """A shaded stretch of the x axis, with a word on it."""

    low: float
    high: float
    name: str


@dataclass(frozen=True)
class Marks:
    """Points drawn alike: ``shape`` is dot, cross or ring; a colour, or else a style class."""

    x: Array
    y: Array
    shape: str
    style: str = ""
    colour: str = ""


def scatter(
    groups: Sequence[Marks], label: str, box: Array | None = None, size: float = 250
) -> str:
    """Points in the plane, without ticks; ``box`` (its points) is framed as the source."""
    x = np.concatenate([group.x for group in groups])
    y = np.concatenate([group.y for group in groups])
    axes = Axes(size, size * 0.8, _padded(x), _padded(y), left=6, right=6, top=6, bottom=20)
    parts = [_path(group, axes) for group in groups]
    if box is not None:
        parts.append(_frame(box, axes))
    return _svg(axes, label, parts)


def line_chart(
    series: Sequence[Series],
    label: str,
    x_name: str,
    y_name: str,
    y_range: tuple[float, float],
    bands: Sequence[Band] = (),
    x_range: tuple[float, float] | None = None,
    size: tuple[float, float] = (1000, 340),
    y_ticks: int = 5,
    percent: bool = False,
) -> str:
    """Lines over a common x axis, named in a legend of the page's own."""
    every_x = [value for line in series for value in line.x]
    axes = Axes(*size, _wide(x_range or (min(every_x), max(every_x))), _wide(y_range))
    parts = [_band(band, axes) for band in bands]
    parts += _grid(axes, x_name, y_name, y_ticks, percent)
    for line in series:
        parts += _line(line, axes)
    return _svg(axes, label, parts)


def _svg(axes: Axes, label: str, parts: Sequence[str]) -> str:
    body = "".join(parts)
    return (
        f'<svg viewBox="0 0 {axes.width:g} {axes.height:g}" role="img" '
        f'aria-label="{escape(label, quote=True)}">{body}</svg>'
    )


def _wide(ends: tuple[float, float]) -> tuple[float, float]:
    """The range, or a little room around its only value."""
    low, high = ends
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _padded(values: Array) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = 0.04 * (high - low) or 1.0
    return low - margin, high + margin


def _path(group: Marks, axes: Axes) -> str:
    """One path for the whole group: a few bytes a point."""
    pen = f' style="stroke:{group.colour}"' if group.colour else ""
    points = zip(axes.x(group.x), axes.y(group.y), strict=True)
    if group.shape == "dot":
        data = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points)
    elif group.shape == "cross":
        data = "".join(f"M{x - 1.5:.1f} {y - 1.5:.1f}l3 3m-3 0l3-3" for x, y in points)
    else:
        data = "".join(
            f"M{x - 2.5:.1f} {y:.1f}a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0" for x, y in points
        )
    return f'<path class="{group.shape} {group.style}"{pen} d="{data}"/>'


def _frame(points: Array, axes: Axes) -> str:
    x, y = axes.x(points[:, 0]), axes.y(points[:, 1])
    left, top = float(x.min()) - 4, float(y.min()) - 4
    width, height = float(x.max()) - left + 4, float(y.max()) - top + 4
    return (
        f'<rect class="frame" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" rx="4"/>'
        f'<text class="frame-name" x="{left + width / 2:.1f}" y="{top + height + 12:.1f}">'
        "source</text>"
    )


def _band(band: Band, axes: Axes) -> str:
    left, right = axes.x(band.low), axes.x(band.high)
    return (
        f'<rect class="band" x="{left:.1f}" y="{axes.top}" width="{right - left:.1f}" '
        f'height="{axes.height - axes.top - axes.bottom:.1f}"/>'
        f'<text class="band-name" x="{(left + right) / 2:.1f}" y="{axes.height / 2:.1f}">'
        f"{escape(band.name)}</text>"
    )


def _grid(axes: Axes, x_name: str, y_name: str, y_ticks: int, percent: bool) -> list[str]:
    parts = []
    floor = axes.height - axes.bottom
    digits = _digits(axes.y_range, y_ticks)
    for value in np.linspace(*axes.y_range, y_ticks):
        y = axes.y(value)
        words = f"{100 * value:.0f} %" if percent else f"{value:.{digits}g}"
        parts.append(
            f'<path class="grid" d="M{axes.left} {y:.1f}H{axes.width - axes.right}"/>'
            f'<text class="tick end" x="{axes.left - 6}" y="{y + 4:.1f}">{words}</text>'
        )
    for value in np.linspace(*axes.x_range, 5):
        parts.append(
            f'<text class="tick mid" x="{axes.x(value):.1f}" y="{floor + 15}">{value:.4g}</text>'
        )
    middle = (axes.left + axes.width - axes.right) / 2
    parts.append(f'<text class="axis mid" x="{middle}" y="{floor + 31}">{escape(x_name)}</text>')
    parts.append(f'<text class="axis" x="{axes.left + 4}" y="{floor - 6}">{escape(y_name)}</text>')
    return parts


def _digits(ends: tuple[float, float], ticks: int) -> int:
    """So many digits that no two ticks read the same, three at least."""
    gap = (ends[1] - ends[0]) / max(1, ticks - 1)
    largest = max(abs(ends[0]), abs(ends[1]))
    return max(3, 1 + math.ceil(math.log10(largest / gap))) if gap > 0 < largest else 3


def _line(line: Series, axes: Axes) -> list[str]:
    parts = []
    x = [axes.x(value) for value in line.x]
    clip = [min(max(v, axes.y_range[0]), axes.y_range[1]) for v in line.y]
    if line.spread is not None:
        lower, upper = ([axes.y(v) for v in side] for side in line.spread)
        there = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, lower, strict=True))
        back = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x[::-1], upper[::-1], strict=True))
        parts.append(f'<polygon class="spread {line.style}" points="{there} {back}"/>')
    points = " ".join(f"{a:.1f},{axes.y(b):.1f}" for a, b in zip(x, clip, strict=True))
    dash = " dashed" if line.dashed else ""
    parts.append(f'<polyline class="line {line.style}{dash}" points="{points}"/>')
    return parts
