"""The parts that reports are put together from; templates/sections.html writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from cida.report.charts import Chart, Series, facet
from cida.report.theme import macro
from cida.runs.result_table import ResultTable

MAX_WIDE_PANELS = 2  # panels that fill a row of the page between them


class Html:
    """A block of a section: the macro of templates/sections.html that writes it, its values."""

    def __init__(self, name: str, /, **values: Any) -> None:
        self.name = name
        self.values = values

    def to_html(self, level: int) -> Markup:
        """The HTML, in which headings have this level."""
        return macro(self.name, level, **self.values)


@dataclass(frozen=True)
class Section:
    """What is below a heading, and which of it is written to files."""

    title: str
    blocks: Sequence[Html]
    figures: Mapping[str, Chart] = field(default_factory=dict)
    tables: Mapping[str, ResultTable] = field(default_factory=dict)


@dataclass(frozen=True)
class Panel:
    """A chart among others, with its heading, caption and legend."""

    title: str
    chart: Chart
    caption: str = ""
    legend: Sequence[Series] = ()


def facet_panels(panels: Sequence[Panel], label: str, columns: int = 3) -> Chart:
    """All of their charts as one."""
    return facet([(panel.title, panel.chart) for panel in panels], columns, label)


def panel_size(count: int) -> tuple[float, float]:
    """Of a chart among so many side by side: a few have the room that more would fill."""
    return (440.0, 230.0) if count <= MAX_WIDE_PANELS else (320.0, 200.0)


def slugify(text: str) -> str:
    """A name for files and places in the page: small letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "run"
