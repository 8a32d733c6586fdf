"""The parts that reports are put together from; how each is written says templates/blocks.html."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from markupsafe import Markup

from cida.report.build import TaskView
from cida.report.charts import Chart, Series, facet
from cida.report.theme import index_color, macro
from cida.runs.result_table import ResultTable

__all__ = [
    "Block",
    "Details",
    "Figure",
    "Html",
    "Legend",
    "Panels",
    "Paragraph",
    "Section",
    "TableBlock",
    "TextList",
    "color_ramp",
    "fold_others",
    "panel_size",
    "slugify",
]

MAX_WIDE_PANELS = 2  # panels that fill a row of the page between them


class Block(Protocol):
    """A piece of a section."""

    def to_html(self, level: int) -> Markup:
        """The HTML, in which headings have this level."""


@dataclass(frozen=True)
class Section:
    """What is below a heading, and which of it is written to files."""

    title: str
    blocks: Sequence[Block]
    figures: Mapping[str, Chart] = field(default_factory=dict)
    tables: Mapping[str, ResultTable] = field(default_factory=dict)


class _NamedBlock:
    """A block that the macro of its class's name writes."""

    def to_html(self, level: int) -> Markup:
        return macro(type(self).__name__, self, level)


@dataclass(frozen=True)
class Paragraph(_NamedBlock):
    """A remark, or other words."""

    text: str
    css_class: str = "soft"


@dataclass(frozen=True)
class TextList(_NamedBlock):
    """Sentences, one below the other."""

    lines: Sequence[str]
    css_class: str = ""


@dataclass(frozen=True)
class Details(_NamedBlock):
    """What is opened on demand, and always in print."""

    summary: str
    blocks: Sequence[Block]
    is_open: bool = False


@dataclass(frozen=True)
class TableBlock(_NamedBlock):
    """A table with a caption in a box of its own to scroll in, its columns to sort by."""

    table: ResultTable
    caption: str

    @property
    def text_columns(self) -> set[str]:
        """The columns that have words in them."""
        return {n for row in self.table.rows for n, cell in row.cells.items() if cell.is_text}


@dataclass(frozen=True)
class Figure(_NamedBlock):
    """Charts and what belongs to them, with a heading and a caption."""

    title: str
    blocks: Sequence[Block]
    caption: str = ""
    css_class: str = ""


@dataclass(frozen=True)
class Panels(_NamedBlock):
    """Figures side by side, as many as there is room for; ``is_wide`` if of `panel_size`."""

    figures: Sequence[Figure]
    is_wide: bool = False

    def to_chart(self, label: str, columns: int = 3) -> Chart:
        """All of their charts as one."""
        charts = [(f.title, b) for f in self.figures for b in f.blocks if isinstance(b, Chart)]
        return facet(charts, columns, label)


@dataclass(frozen=True)
class Legend(_NamedBlock):
    """What the lines are; where lines have keys, buttons that turn them on and off."""

    series: Sequence[Series]
    name: str = ""


@dataclass(frozen=True)
class Html:
    """What one section alone has, by the macro that writes it and its values."""

    name: str
    values: Mapping[str, Any]

    def to_html(self, level: int) -> Markup:
        return macro(self.name, level, **self.values)


def color_ramp(low: str, high: str) -> Html:
    """The colours of a number, from its least to its most."""
    stops = [index_color(k / 8) for k in range(9)]
    return Html("color_ramp", {"stops": stops, "low": low, "high": high})


def fold_others(task: TaskView, blocks_by_key: Mapping[str, Sequence[Block]]) -> list[Block]:
    """The method to look at first; those of the other methods are opened on demand."""
    main = (
        task.main_method.key if task.main_method.key in blocks_by_key else next(iter(blocks_by_key))
    )
    others = [block for key, blocks in blocks_by_key.items() if key != main for block in blocks]
    noun, count = "run" if task.is_user_table else "method", len(blocks_by_key) - 1
    summary = f"The other {noun}" if count == 1 else f"The other {count} {noun}s"
    return [*blocks_by_key[main], Details(summary, others)]


def panel_size(count: int) -> tuple[float, float]:
    """Of a chart among so many side by side: a few have the room that more would fill."""
    return (440.0, 230.0) if count <= MAX_WIDE_PANELS else (320.0, 200.0)


def slugify(text: str) -> str:
    """A name for files and places in the page: small letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "run"
