"""The parts that reports are put together from: tables, figures, sections."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from cida.report.charts import Chart, Series
from cida.report.theme import index_color
from cida.runs.result_table import ResultTable

__all__ = [
    "Section",
    "panel_size",
    "render_color_ramp",
    "render_details",
    "render_figure",
    "render_images",
    "render_legend",
    "render_list",
    "render_note",
    "render_panels",
    "render_scrollable",
    "slugify",
]

MAX_WIDE_PANELS = 2  # panels that fill a row of the page between them


@dataclass(frozen=True)
class Section:
    """A piece of the page: its HTML below a heading, and what of it is written to files."""

    title: str
    html: str
    figures: Mapping[str, Chart] = field(default_factory=dict)
    tables: Mapping[str, ResultTable] = field(default_factory=dict)


def slugify(text: str) -> str:
    """A name for files and places in the page: small letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "run"


def render_note(text: str) -> str:
    """A remark."""
    return f"<p class='soft'>{escape(text)}</p>" if text else ""


def render_list(lines: Sequence[str], css_class: str = "") -> str:
    """Sentences, one below the other."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    mark = f" class='{css_class}'" if css_class else ""
    return f"<ul{mark}>{items}</ul>" if lines else ""


def render_scrollable(html: str, name: str) -> str:
    """A box of its own to scroll in, also by keyboard, so that the page never scrolls sideways."""
    label = escape(name, quote=True)
    return f'<div class="wide" role="region" aria-label="{label}" tabindex="0">{html}</div>'


def render_details(summary: str, html: str, is_open: bool = False) -> str:
    """What is opened on demand, and always in print."""
    state = " open" if is_open else ""
    return f"<details{state}><summary>{escape(summary)}</summary>{html}</details>" if html else ""


def render_figure(
    chart: Chart, title: str, caption: str = "", level: int = 3, extra: str = ""
) -> str:
    """A chart with a heading and a caption."""
    caption_html = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    head = f"<h{level}>{escape(title)}</h{level}>" if title else ""
    return f"<figure>{head}{caption_html}{extra}{chart.to_inline_svg()}</figure>"


def panel_size(count: int) -> tuple[float, float]:
    """Of a chart among so many side by side: a few have the room that more would fill."""
    return (440.0, 230.0) if count <= MAX_WIDE_PANELS else (320.0, 200.0)


def render_panels(panels: Sequence[str], is_wide: bool = False) -> str:
    """Figures side by side, as many as there is room for; ``roomy`` if of `panel_size`."""
    css_class = {1: " one", 2: " two"}.get(len(panels), "") if is_wide else ""
    return f"<div class='panels{css_class}'>{''.join(panels)}</div>"


def render_legend(series: Sequence[Series], name: str = "") -> str:
    """What the lines are; where lines have keys, buttons that turn them on and off."""
    items = []
    for line in series:
        dash = " dashed" if line.dashed else ""
        stroke = (
            '<svg class="chart" viewBox="0 0 26 10" aria-hidden="true">'
            f'<path class="line {line.style}{dash}" d="M1 5H25"/></svg>'
        )
        item = f"{stroke}{escape(line.name)}"
        if line.key:
            key = escape(line.key, quote=True)
            item = f'<button type="button" aria-pressed="true" data-toggles="{key}">{item}</button>'
        items.append(f"<li>{item}</li>")
    label = f' aria-label="{escape(name, quote=True)}"' if name else ""
    return f"<ul class='legend'{label}>{''.join(items)}</ul>"


def render_images(svg_by_title: Mapping[str, str], caption: str, level: int = 3) -> str:
    """Figures as images of their own, so that their styles do not meet the page's."""
    parts = [render_note(caption)]
    for title, picture in svg_by_title.items():
        data = b64encode(picture.encode()).decode()
        image = (
            f"<img class='picture' alt='{escape(title, quote=True)}' "
            f"src='data:image/svg+xml;base64,{data}'>"
        )
        parts.append(f"<figure><h{level}>{escape(title)}</h{level}>{image}</figure>")
    return "".join(parts)


def render_color_ramp(low: str, high: str) -> str:
    """The colours of a number, from its least to its most."""
    stops = ",".join(index_color(k / 8) for k in range(9))
    return (
        f"<div class='ramp' style='background:linear-gradient(90deg,{stops})'></div>"
        f"<div class='ends'><span>{escape(low)}</span><span>{escape(high)}</span></div>"
    )
