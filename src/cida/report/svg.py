"""Small charts as SVG: no dependency, sharp at any zoom, coloured by the page's style."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from cida.report.palette import LIGHT, chart_style
from cida.report.ticks import number_words, ticks

__all__ = ["Axes", "Band", "Chart", "Marks", "Series", "line_chart", "scatter", "together"]

Array = np.ndarray[Any, Any]
GAP = 14  # between charts that are put together


@dataclass(frozen=True)
class Chart:
    """A drawing of so many units, its words for who does not see it, and its elements."""

    width: float
    height: float
    label: str
    body: str = field(repr=False)

    def inline(self) -> str:
        """For the page, whose style colours it."""
        return (
            f'<svg class="chart" viewBox="0 0 {self.width:g} {self.height:g}" role="img" '
            f'aria-label="{escape(self.label, quote=True)}">{self.body}</svg>'
        )

    def file(self) -> str:
        """For a file of its own: in the light colours, which are written out."""
        size = f"{self.width:g} {self.height:g}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="file" viewBox="0 0 {size}" '
            f'width="{self.width:g}" height="{self.height:g}" role="img">'
            f"<title>{escape(self.label)}</title><style>{chart_style(LIGHT)}</style>"
            f'<rect width="{self.width:g}" height="{self.height:g}" fill="{LIGHT["paper"]}"/>'
            f"{self.body}</svg>"
        )


def together(charts: Sequence[tuple[str, Chart]], columns: int, label: str) -> Chart:
    """Several charts as one, each below its name."""
    columns = min(columns, len(charts))
    parts, top, widest = [], 0.0, 0.0
    for start in range(0, len(charts), columns):
        row = charts[start : start + columns]
        left = 0.0
        head = 20.0 if any(name for name, _ in row) else 0.0
        for name, chart in row:
            if name:
                parts.append(
                    f'<text class="head" x="{left + 6:g}" y="{top + 14:g}">{escape(name)}</text>'
                )
            parts.append(f'<g transform="translate({left:g} {top + head:g})">{chart.body}</g>')
            left += chart.width + GAP
        widest = max(widest, left - GAP)
        top += max(chart.height for _, chart in row) + head + GAP
    return Chart(widest, top - GAP, label, "".join(parts))


@dataclass(frozen=True)
class Axes:
    """A plot area and the data range that it shows."""

    width: float
    height: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    left: float = 44
    right: float = 12
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
    """A line with a name; ``spread`` is its lower and upper band, ``dashed`` for a limit.

    ``key`` is what a button of the page turns it on and off by.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    style: str
    spread: tuple[Sequence[float], Sequence[float]] | None = None
    dashed: bool = False
    key: str = ""


@dataclass(frozen=True)
class Band:
    """A shaded stretch of the x axis, with a word on it."""

    low: float
    high: float
    name: str


@dataclass(frozen=True)
class Marks:
    """Points of one colour, or of a style class."""

    x: Array
    y: Array
    style: str = ""
    colour: str = ""


Words = Callable[[float], str]


def scatter(groups: Sequence[Marks], label: str, size: tuple[float, float] = (250, 200)) -> Chart:
    """Points in the plane, without ticks."""
    x = np.concatenate([group.x for group in groups])
    y = np.concatenate([group.y for group in groups])
    axes = Axes(*size, _padded(x), _padded(y), left=4, right=4, top=4, bottom=4)
    frame = (
        f'<rect class="box" x=".5" y=".5" width="{size[0] - 1:g}" height="{size[1] - 1:g}" rx="4"/>'
    )
    return Chart(*size, label, frame + "".join(_path(group, axes) for group in groups))


def line_chart(
    series: Sequence[Series],
    label: str,
    x_name: str,
    y_name: str,
    y_range: tuple[float, float],
    bands: Sequence[Band] = (),
    x_range: tuple[float, float] | None = None,
    size: tuple[float, float] = (320, 200),
    x_words: Words | None = None,
    percent: bool = False,
    named: bool = False,
    x_ticks: Sequence[float] | None = None,
) -> Chart:
    """Lines over a common x axis; ``named`` writes each line's name at its right end."""
    every_x = [value for line in series for value in line.x]
    ends = _wide(x_range or (min(every_x), max(every_x)))
    axes = Axes(*size, ends, _wide(y_range), left=58 if y_name else 46, right=150 if named else 16)
    parts = [_band(band, axes) for band in bands]
    parts += _grid(axes, x_name, y_name, x_words or number_words, percent, x_ticks)
    parts += [_band_name(band, axes) for band in bands]
    for line in series:
        parts.append(_group(line.key, _line(line, axes)))
    if named:
        parts += _names(series, axes)
    return Chart(*size, label, "".join(parts))


def _group(key: str, parts: Sequence[str]) -> str:
    body = "".join(parts)
    return f'<g data-key="{escape(key, quote=True)}">{body}</g>' if key else body


def _wide(ends: tuple[float, float]) -> tuple[float, float]:
    """The range, or a little room around its only value."""
    low, high = ends
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _padded(values: Array) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = 0.04 * (high - low) or 1.0
    return low - margin, high + margin


def _path(group: Marks, axes: Axes) -> str:
    """One path for the whole group: a dozen bytes a point."""
    pen = f' stroke="{group.colour}"' if group.colour else ""
    points = zip(axes.x(group.x), axes.y(group.y), strict=True)
    data = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points)
    return f'<path class="{f"dot {group.style}".strip()}"{pen} d="{data}"/>'


def _band(band: Band, axes: Axes) -> str:
    left, right = axes.x(band.low), axes.x(band.high)
    return (
        f'<rect class="band" x="{left:.1f}" y="{axes.top:g}" width="{max(1.0, right - left):.1f}" '
        f'height="{axes.height - axes.top - axes.bottom:.1f}"/>'
    )


def _band_name(band: Band, axes: Axes) -> str:
    left, right = axes.x(band.low), axes.x(band.high)
    if not band.name or right - left < 6.5 * len(band.name):
        return ""
    place = f'x="{(left + right) / 2:.1f}" y="{axes.height - axes.bottom - 6:.1f}"'
    return f'<text class="band-name mid" {place}>{escape(band.name)}</text>'


def _grid(
    axes: Axes,
    x_name: str,
    y_name: str,
    x_words: Words,
    percent: bool,
    x_ticks: Sequence[float] | None,
) -> list[str]:
    parts = []
    floor = axes.height - axes.bottom
    levels = ticks(*axes.y_range, 5 if axes.height > 150 else 3)
    step = levels[1] - levels[0] if len(levels) > 1 else None
    for value in levels:
        y = axes.y(value)
        words = f"{100 * value:.3g} %" if percent else number_words(value, step)
        parts.append(
            f'<path class="grid" d="M{axes.left:g} {y:.1f}H{axes.width - axes.right:g}"/>'
            f'<text class="end" x="{axes.left - 6:g}" y="{y + 4:.1f}">{words}</text>'
        )
    room = axes.width - axes.left - axes.right
    for value in x_ticks or ticks(*axes.x_range, 4 if room < 400 else 8):
        x = axes.x(value)
        parts.append(
            f'<path class="base" d="M{x:.1f} {floor:g}v4"/>'
            f'<text class="mid" x="{x:.1f}" y="{floor + 16:g}">{escape(x_words(value))}</text>'
        )
    parts.append(f'<path class="base" d="M{axes.left:g} {floor:g}h{room:g}"/>')
    middle = axes.left + room / 2
    parts.append(f'<text class="mid" x="{middle:.1f}" y="{floor + 31:g}">{escape(x_name)}</text>')
    if y_name:
        parts.append(
            f'<text class="mid" transform="translate(9 {axes.top + (floor - axes.top) / 2:.1f}) '
            f'rotate(-90)">{escape(y_name)}</text>'
        )
    return parts


def _line(line: Series, axes: Axes) -> list[str]:
    parts = []
    x = [axes.x(value) for value in line.x]
    bottom, top = axes.y_range

    def height(values: Sequence[float]) -> list[float]:
        return [float(axes.y(min(max(v, bottom), top))) for v in values]

    if line.spread is not None:
        lower, upper = (height(side) for side in line.spread)
        there = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, lower, strict=True))
        back = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x[::-1], upper[::-1], strict=True))
        parts.append(f'<polygon class="spread {line.style}" points="{there} {back}"/>')
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, height(line.y), strict=True))
    dash = " dashed" if line.dashed else ""
    parts.append(f'<polyline class="line {line.style}{dash}" points="{points}"/>')
    return parts


def _names(series: Sequence[Series], axes: Axes) -> list[str]:
    """Each line's name at its right end, moved apart where they would meet."""
    apart = 13.0
    ordered = sorted(series, key=lambda line: -line.y[-1])
    bottom, top = axes.y_range
    wanted = [float(axes.y(min(max(line.y[-1], bottom), top))) for line in ordered]
    places = list(wanted)
    for number in range(1, len(places)):
        places[number] = max(places[number], places[number - 1] + apart)
    over = max(0.0, places[-1] - (axes.height - axes.bottom)) if places else 0.0
    if over:
        places[-1] -= over
        for number in range(len(places) - 2, -1, -1):
            places[number] = min(places[number], places[number + 1] - apart)
    edge = axes.width - axes.right
    parts = []
    for line, here, place in zip(ordered, wanted, places, strict=True):
        style = line.style.split()[0]
        start = axes.x(line.x[-1])
        words = line.name if len(line.name) < 22 else f"{line.name[:20]}…"
        way = f"M{start:.1f} {here:.1f}L{edge + 10:.1f} {place:.1f}"
        drawn = [
            f'<path class="leader {style}" d="{way}"/>',
            f'<text class="{style}" x="{edge + 14:.1f}" y="{place + 4:.1f}">{escape(words)}</text>',
        ]
        parts.append(_group(line.key, drawn))
    return parts
