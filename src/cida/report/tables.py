"""Tables written five ways: HTML, CSV, LaTeX, Markdown, and for the terminal."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from html import escape
from io import StringIO

from rich.table import Table as RichTable

from cida.runs.result_table import Cell, ResultTable, RowRole, TableRow

__all__ = ["render_csv", "render_html", "render_latex", "render_markdown", "render_terminal"]

MAX_SHORT_HEADER_CHARS = 12  # up to which a column's head needs no width of its own
MAX_UNBROKEN_CELL_CHARS = 30  # from which on a cell is broken into lines

_ROW_CLASSES: dict[RowRole, str] = {
    "own": "",
    "best": " class='best'",
    "published": " class='soft'",
    "published-below": " class='soft below'",
}
_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "→": r"$\rightarrow$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "²": r"$^2$",
    "…": r"\ldots{}",
    "\n": " ",
    "\r": " ",
}


# --- HTML ----------------------------------------------------------------------------------------


def render_html(table: ResultTable, caption: str, sortable: bool = True) -> str:
    """A table with a caption in a box of its own to scroll in, its columns to sort by.

    A published row goes with the row above it, or below all others.
    """
    is_text = {name: any(row.cells[name].is_text for row in table.rows) for name in table.columns}
    head = "".join(
        f'<th scope="col"{_cell_class(is_text[name])}{_header_width(name)}>{escape(name)}</th>'
        for name in table.columns
    )
    body = [row for row in table.rows if row.role != "published"]
    after = [row for row in table.rows if row.role == "published"]
    sort = " class='sortable'" if sortable and len(body) > 1 else ""
    bodies = "".join(
        f"<tbody>{''.join(_html_row(row, is_text) for row in rows)}</tbody>"
        for rows in (body, after)
        if rows
    )
    label = escape(caption, quote=True)
    return (
        f'<div class="wide" role="region" aria-label="{label}" tabindex="0"><table{sort}>'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>{bodies}</table></div>"
    )


def _html_row(row: TableRow, is_text: dict[str, bool]) -> str:
    first, *others = is_text
    data = "".join(
        f"<td{_cell_class(is_text[name], len(str(row.cells[name])) > MAX_UNBROKEN_CELL_CHARS)}>"
        f"{_html_cell(row.cells[name])}</td>"
        for name in others
    )
    head = f'<th scope="row">{_html_cell(row.cells[first])}</th>'
    return f"<tr{_ROW_CLASSES[row.role]}>{head}{data}</tr>"


def _html_cell(cell: Cell) -> str:
    value = escape(cell.value_text)
    return (f"<b>{value}</b>" if cell.is_best else value) + escape(cell.note)


def _cell_class(is_text: bool, is_long: bool = False) -> str:
    names = " ".join(name for name, is_it in (("text", is_text), ("long", is_long)) if is_it)
    return f' class="{names}"' if names else ""


def _header_width(header: str) -> str:
    """Above a narrow column a head of many words has two lines, not one a word."""
    letters = -(-len(header) // 2) + 2  # half of it, and the arrow to sort by
    is_long = len(header) > MAX_SHORT_HEADER_CHARS and " " in header
    return f' style="min-width:{letters}ch"' if is_long else ""


# --- files ---------------------------------------------------------------------------------------


def render_csv(table: ResultTable) -> str:
    """The table with a head line; emphasis is not marked."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_escape_formula(name) for name in table.columns)
    for row in table.rows:
        cells = table.cells(row)
        writer.writerow(_escape_formula(str(c)) if c.is_text else str(c) for c in cells)
    return text.getvalue()


def _escape_formula(text: str) -> str:
    """A text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text.startswith(("=", "@", "+", "-", "\t", "\r")) else text


def render_latex(table: ResultTable) -> str:
    """A tabular without packages, the best in bold; what LaTeX reads as commands is escaped."""
    columns = "l" + "r" * (len(table.columns) - 1)
    header = " & ".join(map(_escape_latex, table.columns))
    lines = [" & ".join(map(_latex_cell, table.cells(row))) for row in table.rows]
    body = "".join(f"{line} \\\\\n" for line in lines)
    return (
        f"\\begin{{tabular}}{{{columns}}}\n\\hline\n{header} \\\\\n\\hline\n{body}\\hline\n"
        "\\end{tabular}\n"
    )


def _latex_cell(cell: Cell) -> str:
    value = _escape_latex(cell.value_text)
    return (f"\\textbf{{{value}}}" if cell.is_best else value) + _escape_latex(cell.note)


def _escape_latex(text: str) -> str:
    return "".join(_LATEX_ESCAPES.get(letter, letter) for letter in text)


def render_markdown(table: ResultTable) -> str:
    """The table in Markdown, the best in bold."""
    rows = [table.columns, ["---"] * len(table.columns)]
    rows += [[_markdown_cell(cell) for cell in table.cells(row)] for row in table.rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _markdown_cell(cell: Cell) -> str:
    return (f"**{cell.value_text}**" if cell.is_best else cell.value_text) + cell.note


# --- the terminal --------------------------------------------------------------------------------


def render_terminal(
    table: ResultTable, title: str, hidden_columns: Sequence[str] = ()
) -> RichTable:
    """The table for the terminal, without these columns."""
    shown = table.without_columns(hidden_columns)
    rich = RichTable(title=title)
    for number, name in enumerate(shown.columns):
        rich.add_column(name, justify="right" if number else "left", no_wrap=not number)
    for row in shown.rows:
        rich.add_row(*map(str, shown.cells(row)))
    return rich
