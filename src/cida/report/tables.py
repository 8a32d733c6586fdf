"""Tables written for files and the terminal: CSV, LaTeX, Markdown and rich."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO

from rich.table import Table as RichTable

from cida.runs.result_table import Cell, ResultTable

_LATEX_ESCAPES = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "…": r"\ldots{}", "\n": " ", "\r": " "}
    | {"→": r"$\rightarrow$", "≤": r"$\leq$", "≥": r"$\geq$", "²": r"$^2$"}
)


def render_csv(table: ResultTable) -> str:
    """The table with a head line; emphasis is not marked."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_escape_formula, table.columns))
    for row in table.rows:
        cells = table.cells(row)
        writer.writerow(_escape_formula(str(c)) if c.is_text else str(c) for c in cells)
    return text.getvalue()


def _escape_formula(text: str) -> str:
    """A text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text.startswith(("=", "@", "+", "-", "\t", "\r")) else text


def render_latex(table: ResultTable) -> str:
    """A tabular without packages, the best in bold; what LaTeX reads as commands is escaped."""

    def cell(c: Cell) -> str:
        value = c.value_text.translate(_LATEX_ESCAPES)
        return (f"\\textbf{{{value}}}" if c.is_best else value) + c.note.translate(_LATEX_ESCAPES)

    columns = f"l{'r' * (len(table.columns) - 1)}"
    head = " & ".join(name.translate(_LATEX_ESCAPES) for name in table.columns)
    rows = "".join(" & ".join(map(cell, table.cells(row))) + " \\\\\n" for row in table.rows)
    return (
        f"\\begin{{tabular}}{{{columns}}}\n\\hline\n{head} \\\\\n\\hline\n{rows}\\hline\n"
        "\\end{tabular}\n"
    )


def render_markdown(table: ResultTable) -> str:
    """The table in Markdown, the best in bold."""

    def cell(c: Cell) -> str:
        return f"**{c.value_text}**{c.note}" if c.is_best else str(c)

    rows = [table.columns, ["---"] * len(table.columns)]
    rows += [[cell(c) for c in table.cells(row)] for row in table.rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


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
