"""The parts that reports are put together from: tables, figures, sections."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from cida.report.palette import index_color
from cida.report.svg import Chart, Series
from cida.report.task_tables import PAPER_ROW_LABEL
from cida.runs.records import TableLine

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
    "render_table",
    "slugify",
]

MAX_WIDE_PANELS = 2  # panels that fill a row of the page between them
PAPER_PREFIX = "paper: "  # how a line of the paper's begins, where it has a method's name
MAX_SHORT_HEADER_CHARS = 12  # letters, up to which a column's head needs no room of its own
MAX_UNBROKEN_CELL_CHARS = 30  # letters, from which on a cell is broken into lines


@dataclass(frozen=True)
class Section:
    """A piece of the page: its HTML below a heading, and what of it is written to files."""

    title: str
    html: str
    figures: Mapping[str, Chart] = field(default_factory=dict)
    tables: Mapping[str, Sequence[TableLine]] = field(default_factory=dict)


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


def render_table(
    rows: Sequence[TableLine], caption: str, best_row: str = "", sortable: bool = True
) -> str:
    """A table with a caption, its columns to sort by; ``best`` is the first cell of a line.

    A line of the paper's goes with the line above it, or, where it has a name, below all others.
    """
    is_text = [not all(_is_number(line[name]) for line in rows) for name in rows[0]]
    head = "".join(
        f'<th scope="col"{_cell_class(words)}{_header_width(name)}>{escape(name)}</th>'
        for name, words in zip(rows[0], is_text, strict=True)
    )
    body: list[str] = []
    paper_rows: list[str] = []
    for line in rows:
        first, *others = (line[name] for name in rows[0])
        data = "".join(map(_render_cell, others, is_text[1:]))
        row = (
            f"<tr{_row_class(first, best_row)}><th "
            f'scope="row">{_render_bold(first)}</th>{data}</tr>'
        )
        (paper_rows if first.startswith(PAPER_PREFIX) else body).append(row)
    sort = " class='sortable'" if sortable and len(body) > 1 else ""
    after = f"<tbody>{''.join(paper_rows)}</tbody>" if paper_rows else ""
    html = (
        f"<table{sort}><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody>{after}</table>"
    )
    return render_scrollable(html, caption)


def _row_class(first: str, best: str) -> str:
    if first == PAPER_ROW_LABEL:
        return " class='soft below'"
    if first.startswith(PAPER_PREFIX):
        return " class='soft'"
    return " class='best'" if best and first == best else ""


def _render_cell(content: str, is_text: bool) -> str:
    """A cell; sentences are broken into lines."""
    css_class = _cell_class(is_text, len(content) > MAX_UNBROKEN_CELL_CHARS)
    return f"<td{css_class}>{_render_bold(content)}</td>"


def _cell_class(is_text: bool, is_long: bool = False) -> str:
    names = " ".join(name for name, is_it in (("text", is_text), ("long", is_long)) if is_it)
    return f' class="{names}"' if names else ""


def _header_width(header: str) -> str:
    """Above a narrow column a head of many words has two lines, not one a word."""
    letters = -(-len(header) // 2) + 2  # half of it, and the arrow to sort by
    return (
        f' style="min-width:{letters}ch"'
        if len(header) > MAX_SHORT_HEADER_CHARS and " " in header
        else ""
    )


def _is_number(text: str) -> bool:
    return re.match(r"(\*\*)?[+-]?[\d.,]*\d|$|not known", text) is not None


def _render_bold(text: str) -> str:
    """Bold where Markdown has it."""
    bold = re.fullmatch(r"\*\*(.*?)\*\*(.*)", text, re.DOTALL)
    if bold:
        return f"<b>{escape(bold[1])}</b>{escape(bold[2])}"
    return escape(text)
