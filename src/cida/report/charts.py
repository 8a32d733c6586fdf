"""Small charts as SVG: no dependency, sharp at any zoom, coloured by the page's style."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from cida.array_types import Array
from cida.report.theme import macro
from cida.report.ticks import choose_ticks, format_number

__all__ = [
    "Array",
    "Band",
    "Chart",
    "IndexAxis",
    "Marks",
    "Series",
    "element",
    "facet",
    "line_chart",
    "pad_range",
    "scatter_chart",
    "text_element",
]

PANEL_GAP_UNITS = 14  # between charts that are put together
NAME_SPACING_UNITS = 13.0  # between the names of lines


def element(name: str, css_class: str = "", body: str = "", /, **attributes: Any) -> str:
    """An SVG element; numbers have one decimal at most."""
    named: dict[str, Any] = {"class": css_class} if css_class else {}
    text = "".join(
        f' {key}="{value if isinstance(value, str) else format(round(float(value), 1), "g")}"'
        for key, value in (named | attributes).items()
    )
    return f"<{name}{text}>{body}</{name}>" if body else f"<{name}{text}/>"


def text_element(text: str, x: float, y: float, css_class: str = "") -> str:
    """Words at a place."""
    return element("text", css_class, escape(text), x=x, y=y)


@dataclass(frozen=True)
class Chart:
    """A drawing of so many units, its words for who does not see it, and its elements."""

    width: float
    height: float
    label: str
    body: str = field(repr=False)

    def __html__(self) -> str:
        """For the page, whose style colours it."""
        return macro("inline_chart", self)

    def to_standalone_svg(self) -> str:
        """For a file of its own: in the light colours, which are written out."""
        return macro("standalone_chart", self)


def facet(charts: Sequence[tuple[str, Chart]], columns: int, label: str) -> Chart:
    """Several charts as one, each below its name."""
    parts, top, widest = [], 0.0, 0.0
    for start in range(0, len(charts), columns):
        row = charts[start : start + columns]
        left, head = 0.0, 20.0 if any(name for name, _ in row) else 0.0
        for name, chart in row:
            if name:
                parts.append(text_element(name, left + 6, top + 14, "head"))
            move = f"translate({left:g} {top + head:g})"
            parts.append(element("g", "", chart.body, transform=move))
            left += chart.width + PANEL_GAP_UNITS
        widest = max(widest, left - PANEL_GAP_UNITS)
        top += max(chart.height for _, chart in row) + head + PANEL_GAP_UNITS
    return Chart(widest, top - PANEL_GAP_UNITS, label, "".join(parts))


@dataclass(frozen=True)
class _PlotArea:
    """A plot area and the data range that it shows."""

    width: float
    height: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    left: float
    right: float
    top: float = 10
    bottom: float = 36

    @property
    def plot_width(self) -> float:
        return self.width - self.left - self.right

    @property
    def floor(self) -> float:
        """Where the x axis is."""
        return self.height - self.bottom

    def x(self, value: Any) -> Any:
        low, high = self.x_range
        return self.left + (value - low) / (high - low) * self.plot_width

    def y(self, value: Any) -> Any:
        low, high = self.y_range
        return self.floor - (value - low) / (high - low) * (self.floor - self.top)

    def clipped_y(self, values: Any) -> Array:
        """Heights in the picture; what is beyond the range is at its end."""
        heights: Array = self.y(np.clip(np.asarray(values, dtype=float), *self.y_range))
        return heights


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
class IndexAxis:
    """What is along x: its name, its ends (or those of the lines), how its values are written."""

    name: str = "u"
    ends: tuple[float, float] | None = None
    format: Callable[[float], str] = format_number
    bands: Sequence[Band] = ()
    ticks: Sequence[float] | None = None


@dataclass(frozen=True)
class Marks:
    """Points of one colour, or of a style class."""

    x: Array
    y: Array
    style: str = ""
    color: str = ""


def pad_range(values: Array, share: float) -> tuple[float, float]:
    """The range of the values and a little room around it."""
    low, high = float(values.min()), float(values.max())
    margin = share * (high - low) or 1.0
    return low - margin, high + margin


def scatter_chart(
    groups: Sequence[Marks], label: str, size: tuple[float, float] = (250, 200)
) -> Chart:
    """Points in the plane, without ticks."""
    x, y = (np.concatenate([getattr(group, axis) for group in groups]) for axis in "xy")
    area = _PlotArea(*size, pad_range(x, 0.04), pad_range(y, 0.04), 4, 4, 4, 4)
    parts = [element("rect", "box", x=0.5, y=0.5, width=size[0] - 1, height=size[1] - 1, rx=4)]
    for group in groups:  # one path for the whole group: a dozen bytes a point
        places = zip(area.x(group.x), area.y(group.y), strict=True)
        path = "".join(f"M{a:.1f} {b:.1f}h0" for a, b in places)
        pen = {"stroke": group.color} if group.color else {}
        parts.append(element("path", f"dot {group.style}".strip(), **pen, d=path))
    return Chart(*size, label, "".join(parts))


def line_chart(
    series: Sequence[Series],
    label: str,
    axis: IndexAxis,
    y_name: str,
    y_range: tuple[float, float],
    size: tuple[float, float] = (320, 200),
    percent: bool = False,
    show_names: bool = False,
) -> Chart:
    """Lines over a common x axis; ``show_names`` writes each line's name at its right end."""
    all_x = [value for line in series for value in line.x]
    x_range = _widen_range(axis.ends or (min(all_x), max(all_x)))
    left, right = 58 if y_name else 46, 150 if show_names else 16
    area = _PlotArea(*size, x_range, _widen_range(y_range), left, right)
    parts = [_band(band, area) for band in axis.bands]
    parts += _render_axes(area, axis, y_name, percent)
    parts += [_band_name(band, area) for band in axis.bands]
    parts += [_group(line.key, _render_line(line, area)) for line in series]
    if show_names:
        parts += _render_line_names(series, area)
    return Chart(*size, label, "".join(parts))


def _group(key: str, body: str) -> str:
    return f'<g data-key="{escape(key)}">{body}</g>' if key else body


def _widen_range(ends: tuple[float, float]) -> tuple[float, float]:
    """The range, or a little room around its only value."""
    low, high = ends
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _band(band: Band, area: _PlotArea) -> str:
    left, right = area.x(band.low), area.x(band.high)
    size = {"width": max(1.0, right - left), "height": area.floor - area.top}
    return element("rect", "band", x=left, y=area.top, **size)


def _band_name(band: Band, area: _PlotArea) -> str:
    left, right = area.x(band.low), area.x(band.high)
    if not band.name or right - left < 6.5 * len(band.name):
        return ""
    return text_element(band.name, (left + right) / 2, area.floor - 6, "band-name mid")


def _render_axes(area: _PlotArea, axis: IndexAxis, y_name: str, percent: bool) -> Iterable[str]:
    y_ticks = choose_ticks(*area.y_range, 5 if area.height > 150 else 3)
    step = y_ticks[1] - y_ticks[0] if len(y_ticks) > 1 else None
    for value in y_ticks:
        y = area.y(value)
        tick_label = f"{100 * value:.3g} %" if percent else format_number(value, step)
        yield element("path", "grid", d=f"M{area.left:g} {y:.1f}H{area.width - area.right:g}")
        yield text_element(tick_label, area.left - 6, y + 4, "end")
    for value in axis.ticks or choose_ticks(*area.x_range, 4 if area.plot_width < 400 else 8):
        x = area.x(value)
        yield element("path", "base", d=f"M{x:.1f} {area.floor:g}v4")
        yield text_element(axis.format(value), x, area.floor + 16, "mid")
    yield element("path", "base", d=f"M{area.left:g} {area.floor:g}h{area.plot_width:g}")
    yield text_element(axis.name, area.left + area.plot_width / 2, area.floor + 31, "mid")
    if y_name:
        turned = f"translate(9 {(area.top + area.floor) / 2:.1f}) rotate(-90)"
        yield element("text", "mid", escape(y_name), transform=turned)


def _points(x: Iterable[float], y: Iterable[float]) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _render_line(line: Series, area: _PlotArea) -> str:
    x, spread = area.x(np.asarray(line.x, dtype=float)), ""
    if line.spread is not None:
        lower, upper = map(area.clipped_y, line.spread)
        outline = f"{_points(x, lower)} {_points(x[::-1], upper[::-1])}"
        spread = element("polygon", f"spread {line.style}", points=outline)
    style = f"line {line.style}{' dashed' if line.dashed else ''}"
    return spread + element("polyline", style, points=_points(x, area.clipped_y(line.y)))


def _render_line_names(series: Sequence[Series], area: _PlotArea) -> Iterable[str]:
    """Each line's name at its right end, moved apart where they would meet."""
    ordered = sorted(series, key=lambda line: -line.y[-1])
    ends = area.clipped_y([line.y[-1] for line in ordered])
    spacing = NAME_SPACING_UNITS * np.arange(len(ends))
    places = spacing + np.maximum.accumulate(ends - spacing)
    places[-1:] = np.minimum(places[-1:], area.floor)
    places = spacing + np.minimum.accumulate((places - spacing)[::-1])[::-1]
    edge = area.width - area.right
    for line, end, place in zip(ordered, ends, places, strict=True):
        style = line.style.split()[0]
        name = line.name if len(line.name) < 22 else f"{line.name[:20]}…"
        path = f"M{area.x(line.x[-1]):.1f} {end:.1f}L{edge + 10:.1f} {place:.1f}"
        leader = element("path", f"leader {style}", d=path)
        yield _group(line.key, leader + text_element(name, edge + 14, place + 4, style))
