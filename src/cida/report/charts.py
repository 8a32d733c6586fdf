"""Small charts as SVG: no dependency, sharp at any zoom, coloured by the page's style."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from cida.report.theme import LIGHT_COLORS, render_chart_css
from cida.report.ticks import choose_ticks, format_number

__all__ = ["Axes", "Band", "Chart", "Marks", "Series", "facet", "line_chart", "scatter_chart"]

Array = np.ndarray[Any, Any]
PANEL_GAP_UNITS = 14  # between charts that are put together


@dataclass(frozen=True)
class Chart:
    """A drawing of so many units, its words for who does not see it, and its elements."""

    width: float
    height: float
    label: str
    body: str = field(repr=False)

    def to_inline_svg(self) -> str:
        """For the page, whose style colours it."""
        return (
            f'<svg class="chart" viewBox="0 0 {self.width:g} {self.height:g}" role="img" '
            f'aria-label="{escape(self.label, quote=True)}">{self.body}</svg>'
        )

    def to_standalone_svg(self) -> str:
        """For a file of its own: in the light colours, which are written out."""
        size = f"{self.width:g} {self.height:g}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="file" viewBox="0 0 {size}" '
            f'width="{self.width:g}" height="{self.height:g}" role="img">'
            f"<title>{escape(self.label)}</title><style>{render_chart_css(LIGHT_COLORS)}</style>"
            f'<rect width="{self.width:g}" height="{self.height:g}" '
            f'fill="{LIGHT_COLORS["paper"]}"/>'
            f"{self.body}</svg>"
        )


def facet(charts: Sequence[tuple[str, Chart]], columns: int, label: str) -> Chart:
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
            left += chart.width + PANEL_GAP_UNITS
        widest = max(widest, left - PANEL_GAP_UNITS)
        top += max(chart.height for _, chart in row) + head + PANEL_GAP_UNITS
    return Chart(widest, top - PANEL_GAP_UNITS, label, "".join(parts))


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
        plot_width = self.width - self.left - self.right
        return self.left + (value - low) / (high - low) * plot_width

    def y(self, value: Any) -> Any:
        low, high = self.y_range
        plot_height = self.height - self.top - self.bottom
        return self.height - self.bottom - (value - low) / (high - low) * plot_height


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
    color: str = ""


ValueFormatter = Callable[[float], str]


def scatter_chart(
    groups: Sequence[Marks], label: str, size: tuple[float, float] = (250, 200)
) -> Chart:
    """Points in the plane, without ticks."""
    x = np.concatenate([group.x for group in groups])
    y = np.concatenate([group.y for group in groups])
    axes = Axes(*size, _pad_range(x), _pad_range(y), left=4, right=4, top=4, bottom=4)
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
    x_words: ValueFormatter | None = None,
    percent: bool = False,
    show_names: bool = False,
    x_ticks: Sequence[float] | None = None,
) -> Chart:
    """Lines over a common x axis; ``named`` writes each line's name at its right end."""
    all_x = [value for line in series for value in line.x]
    x_ends = _widen_range(x_range or (min(all_x), max(all_x)))
    axes = Axes(
        *size,
        x_ends,
        _widen_range(y_range),
        left=58 if y_name else 46,
        right=150 if show_names else 16,
    )
    parts = [_band(band, axes) for band in bands]
    parts += _render_axes(axes, x_name, y_name, x_words or format_number, percent, x_ticks)
    parts += [_band_name(band, axes) for band in bands]
    for line in series:
        parts.append(_group(line.key, _render_line(line, axes)))
    if show_names:
        parts += _render_line_names(series, axes)
    return Chart(*size, label, "".join(parts))


def _group(key: str, parts: Sequence[str]) -> str:
    body = "".join(parts)
    return f'<g data-key="{escape(key, quote=True)}">{body}</g>' if key else body


def _widen_range(ends: tuple[float, float]) -> tuple[float, float]:
    """The range, or a little room around its only value."""
    low, high = ends
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _pad_range(values: Array) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = 0.04 * (high - low) or 1.0
    return low - margin, high + margin


def _path(group: Marks, axes: Axes) -> str:
    """One path for the whole group: a dozen bytes a point."""
    pen = f' stroke="{group.color}"' if group.color else ""
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


def _render_axes(
    axes: Axes,
    x_name: str,
    y_name: str,
    x_words: ValueFormatter,
    percent: bool,
    x_ticks: Sequence[float] | None,
) -> list[str]:
    parts = []
    floor = axes.height - axes.bottom
    y_ticks = choose_ticks(*axes.y_range, 5 if axes.height > 150 else 3)
    step = y_ticks[1] - y_ticks[0] if len(y_ticks) > 1 else None
    for value in y_ticks:
        y = axes.y(value)
        tick_label = f"{100 * value:.3g} %" if percent else format_number(value, step)
        parts.append(
            f'<path class="grid" d="M{axes.left:g} {y:.1f}H{axes.width - axes.right:g}"/>'
            f'<text class="end" x="{axes.left - 6:g}" y="{y + 4:.1f}">{tick_label}</text>'
        )
    plot_width = axes.width - axes.left - axes.right
    for value in x_ticks or choose_ticks(*axes.x_range, 4 if plot_width < 400 else 8):
        x = axes.x(value)
        parts.append(
            f'<path class="base" d="M{x:.1f} {floor:g}v4"/>'
            f'<text class="mid" x="{x:.1f}" y="{floor + 16:g}">{escape(x_words(value))}</text>'
        )
    parts.append(f'<path class="base" d="M{axes.left:g} {floor:g}h{plot_width:g}"/>')
    middle = axes.left + plot_width / 2
    parts.append(f'<text class="mid" x="{middle:.1f}" y="{floor + 31:g}">{escape(x_name)}</text>')
    if y_name:
        parts.append(
            f'<text class="mid" transform="translate(9 {axes.top + (floor - axes.top) / 2:.1f}) '
            f'rotate(-90)">{escape(y_name)}</text>'
        )
    return parts


def _render_line(line: Series, axes: Axes) -> list[str]:
    parts = []
    x = [axes.x(value) for value in line.x]
    bottom, top = axes.y_range

    def to_pixels(values: Sequence[float]) -> list[float]:
        return [float(axes.y(min(max(v, bottom), top))) for v in values]

    if line.spread is not None:
        lower, upper = (to_pixels(side) for side in line.spread)
        lower_points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, lower, strict=True))
        upper_points = " ".join(
            f"{a:.1f},{b:.1f}" for a, b in zip(x[::-1], upper[::-1], strict=True)
        )
        parts.append(
            f'<polygon class="spread {line.style}" points="{lower_points} {upper_points}"/>'
        )
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, to_pixels(line.y), strict=True))
    dash = " dashed" if line.dashed else ""
    parts.append(f'<polyline class="line {line.style}{dash}" points="{points}"/>')
    return parts


def _render_line_names(series: Sequence[Series], axes: Axes) -> list[str]:
    """Each line's name at its right end, moved apart where they would meet."""
    min_spacing = 13.0
    ordered = sorted(series, key=lambda line: -line.y[-1])
    bottom, top = axes.y_range
    line_ends = [float(axes.y(min(max(line.y[-1], bottom), top))) for line in ordered]
    label_positions = list(line_ends)
    for number in range(1, len(label_positions)):
        label_positions[number] = max(
            label_positions[number], label_positions[number - 1] + min_spacing
        )
    overflow = (
        max(0.0, label_positions[-1] - (axes.height - axes.bottom)) if label_positions else 0.0
    )
    if overflow:
        label_positions[-1] -= overflow
        for number in range(len(label_positions) - 2, -1, -1):
            label_positions[number] = min(
                label_positions[number], label_positions[number + 1] - min_spacing
            )
    edge = axes.width - axes.right
    parts = []
    for line, line_end, label_position in zip(ordered, line_ends, label_positions, strict=True):
        style = line.style.split()[0]
        start = axes.x(line.x[-1])
        text = line.name if len(line.name) < 22 else f"{line.name[:20]}…"
        leader_path = f"M{start:.1f} {line_end:.1f}L{edge + 10:.1f} {label_position:.1f}"
        elements = [
            f'<path class="leader {style}" d="{leader_path}"/>',
            f'<text class="{style}" x="{edge + 14:.1f}" '
            f'y="{label_position + 4:.1f}">{escape(text)}</text>',
        ]
        parts.append(_group(line.key, elements))
    return parts
