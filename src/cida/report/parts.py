"""The parts that reports are put together from: tables, figures, sections."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from cida.benchmarks.suites import PAPERS_LINE
from cida.benchmarks.tables import Cells
from cida.report.palette import index_colour
from cida.report.svg import Chart, Series

__all__ = [
    "Part",
    "charts_of",
    "figure",
    "folded",
    "legend",
    "listed",
    "panel_size",
    "pictures",
    "ramp",
    "slug",
    "soft",
    "table",
    "wide",
]

FEW = 2  # panels that fill a row of the page between them
PAPERS = "paper: "  # how a line of the paper's begins, where it has a method's name
SHORT = 12  # letters, up to which a column's head needs no room of its own
LONG = 30  # letters, from which on a cell is broken into lines


@dataclass(frozen=True)
class Part:
    """A piece of the page: its HTML below a heading, and what of it is written to files."""

    title: str
    html: str
    figures: Mapping[str, Chart] = field(default_factory=dict)
    tables: Mapping[str, Sequence[Cells]] = field(default_factory=dict)


def slug(words: str) -> str:
    """A name for files and places in the page: small letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:60] or "run"


def soft(words: str) -> str:
    """A remark."""
    return f"<p class='soft'>{escape(words)}</p>" if words else ""


def listed(lines: Sequence[str], kind: str = "") -> str:
    """Sentences, one below the other."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    mark = f" class='{kind}'" if kind else ""
    return f"<ul{mark}>{items}</ul>" if lines else ""


def wide(html: str, name: str) -> str:
    """A box of its own to scroll in, also by keyboard, so that the page never scrolls sideways."""
    label = escape(name, quote=True)
    return f'<div class="wide" role="region" aria-label="{label}" tabindex="0">{html}</div>'


def folded(summary: str, html: str, opened: bool = False) -> str:
    """What is opened on demand, and always in print."""
    state = " open" if opened else ""
    return f"<details{state}><summary>{escape(summary)}</summary>{html}</details>" if html else ""


def figure(chart: Chart, title: str, caption: str = "", level: int = 3, extra: str = "") -> str:
    """A chart with a heading and a caption."""
    words = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    head = f"<h{level}>{escape(title)}</h{level}>" if title else ""
    return f"<figure>{head}{words}{extra}{chart.inline()}</figure>"


def panel_size(count: int) -> tuple[float, float]:
    """Of a chart among so many side by side: a few have the room that more would fill."""
    return (440.0, 230.0) if count <= FEW else (320.0, 200.0)


def charts_of(panels: Sequence[str], roomy: bool = False) -> str:
    """Figures side by side, as many as there is room for; ``roomy`` if of `panel_size`."""
    kind = {1: " one", 2: " two"}.get(len(panels), "") if roomy else ""
    return f"<div class='panels{kind}'>{''.join(panels)}</div>"


def legend(series: Sequence[Series], name: str = "") -> str:
    """What the lines are; where lines have keys, buttons that turn them on and off."""
    items = []
    for line in series:
        dash = " dashed" if line.dashed else ""
        stroke = (
            '<svg class="chart" viewBox="0 0 26 10" aria-hidden="true">'
            f'<path class="line {line.style}{dash}" d="M1 5H25"/></svg>'
        )
        words = f"{stroke}{escape(line.name)}"
        if line.key:
            key = escape(line.key, quote=True)
            words = (
                f'<button type="button" aria-pressed="true" data-toggles="{key}">{words}</button>'
            )
        items.append(f"<li>{words}</li>")
    label = f' aria-label="{escape(name, quote=True)}"' if name else ""
    return f"<ul class='legend'{label}>{''.join(items)}</ul>"


def pictures(found: Mapping[str, str], words: str, level: int = 3) -> str:
    """Figures as images of their own, so that their styles do not meet the page's."""
    parts = [soft(words)]
    for title, picture in found.items():
        data = b64encode(picture.encode()).decode()
        image = (
            f"<img class='picture' alt='{escape(title, quote=True)}' "
            f"src='data:image/svg+xml;base64,{data}'>"
        )
        parts.append(f"<figure><h{level}>{escape(title)}</h{level}>{image}</figure>")
    return "".join(parts)


def ramp(low: str, high: str) -> str:
    """The colours of a number, from its least to its most."""
    stops = ",".join(index_colour(k / 8) for k in range(9))
    return (
        f"<div class='ramp' style='background:linear-gradient(90deg,{stops})'></div>"
        f"<div class='ends'><span>{escape(low)}</span><span>{escape(high)}</span></div>"
    )


def table(found: Sequence[Cells], caption: str, best: str = "", sortable: bool = True) -> str:
    """A table with a caption, its columns to sort by; ``best`` is the first cell of a line.

    A line of the paper's goes with the line above it, or, where it has a name, below all others.
    """
    text = [not all(_is_number(line[name]) for line in found) for name in found[0]]
    head = "".join(
        f'<th scope="col"{_kind(words)}{_room(name)}>{escape(name)}</th>'
        for name, words in zip(found[0], text, strict=True)
    )
    body: list[str] = []
    last: list[str] = []
    for line in found:
        first, *others = (line[name] for name in found[0])
        data = "".join(map(_data, others, text[1:]))
        row = f'<tr{_line_kind(first, best)}><th scope="row">{_cell(first)}</th>{data}</tr>'
        (last if first.startswith(PAPERS) else body).append(row)
    sort = " class='sortable'" if sortable and len(body) > 1 else ""
    after = f"<tbody>{''.join(last)}</tbody>" if last else ""
    html = (
        f"<table{sort}><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody>{after}</table>"
    )
    return wide(html, caption)


def _line_kind(first: str, best: str) -> str:
    if first == PAPERS_LINE:
        return " class='soft below'"
    if first.startswith(PAPERS):
        return " class='soft'"
    return " class='best'" if best and first == best else ""


def _data(words: str, text: bool) -> str:
    """A cell; sentences are broken into lines."""
    return f"<td{_kind(text, len(words) > LONG)}>{_cell(words)}</td>"


def _kind(text: bool, long: bool = False) -> str:
    names = " ".join(name for name, is_it in (("text", text), ("long", long)) if is_it)
    return f' class="{names}"' if names else ""


def _room(head: str) -> str:
    """Above a narrow column a head of many words has two lines, not one a word."""
    letters = -(-len(head) // 2) + 2  # half of it, and the arrow to sort by
    return f' style="min-width:{letters}ch"' if len(head) > SHORT and " " in head else ""


def _is_number(words: str) -> bool:
    return re.match(r"(\*\*)?[+-]?[\d.,]*\d|$|not known", words) is not None


def _cell(words: str) -> str:
    """Bold where Markdown has it."""
    bold = re.fullmatch(r"\*\*(.*?)\*\*(.*)", words, re.DOTALL)
    if bold:
        return f"<b>{escape(bold[1])}</b>{escape(bold[2])}"
    return escape(words)
