"""What all reports look like: templates, colours for a light and for a dark page, styles."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cida.runs.result_table import ResultTable

N_LINE_STYLES = 12  # s0 ... s11: colours of lines, all at least 3:1 against the page


def read_static(name: str) -> Markup:
    """A file that reports are made with: ours, and therefore not escaped."""
    return Markup(files("cida.report").joinpath("static", name).read_text(encoding="utf-8"))


@cache
def templates() -> Environment:
    """The templates of reports; what they are given is escaped."""
    made = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    made.loader, made.undefined = PackageLoader("cida.report"), StrictUndefined
    made.filters |= {"index_color": index_color, "text_columns": _text_columns}
    made.globals |= {"colors": COLORS, "static": read_static, "chart_css": render_chart_css}
    return made


def _text_columns(table: ResultTable) -> set[str]:
    """The columns that have words in them."""
    return {name for row in table.rows for name, cell in row.cells.items() if cell.is_text}


def macro(name: str, /, *values: Any, **named_values: Any) -> Markup:
    """What this macro of templates/sections.html writes."""
    macros = templates().get_template("sections.html").module
    written: Markup = getattr(macros, name)(*values, **named_values)
    return written


COLORS: dict[str, dict[str, str]] = json.loads(read_static("colors.json"))

# Nine stops of viridis: even steps of u look even, in grey and to colour-blind eyes too.
_VIRIDIS = bytes.fromhex("440154 472d7b 3b528b 2c728e 21918c 28ae80 5ec962 addc30 fde725")


def index_color(share: float) -> str:
    """The colour of an index value, given as its share of the whole range."""
    position = min(max(share, 0.0), 1.0) * 8
    low = min(int(position), 7)
    pairs = zip(_VIRIDIS[3 * low :], _VIRIDIS[3 * low + 3 : 3 * low + 6], strict=False)
    return f"#{bytes(round(a + (b - a) * (position - low)) for a, b in pairs).hex()}"


def render_chart_css(colors: dict[str, str] | None = None) -> Markup:
    """The style of all charts; with ``colors`` they are written out, for a file of its own."""
    rules = [str(read_static("chart.css"))]
    for name in (f"s{k}" for k in range(N_LINE_STYLES)):
        rules.append(f".{name} {{ stroke: var(--{name}); }}")
        rules.append(f".spread.{name} {{ fill: var(--{name}); }}")
        rules.append(f"svg.chart text.{name}, svg.file text.{name} {{ fill: var(--{name}); }}")
    text = "\n".join(rules)
    if colors is not None:
        text = re.sub(r"var\(--([a-z0-9]+)\)", lambda match: colors[match[1]], text)
    return Markup(text)
