"""The report on disk, and its charts and tables as files of their own."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

from cida.io.files import write_atomically
from cida.report.page import Page
from cida.runs.records import TableLine

__all__ = [
    "FILES_FOLDER",
    "check_resvg_installed",
    "render_csv",
    "render_latex",
    "render_png",
    "write_report",
]

FILES_FOLDER = "report-files"
PNG_ZOOM = 2  # of a PNG: sharp on paper
_NUMBER_PATTERN = re.compile(r"[-+][\d.,e+ %±-]*$")

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


def write_report(page: Page, path: Path, with_files: bool) -> list[Path]:
    """The page; with ``files`` also SVG, PNG, CSV and LaTeX beside it. Gives what was written."""
    if with_files:
        check_resvg_installed()
    write_atomically(path, page.html.encode())
    return [path, *(_write_files(page, path.parent / FILES_FOLDER) if with_files else [])]


def _write_files(page: Page, folder: Path) -> list[Path]:
    if not folder.resolve().is_relative_to(folder.parent.resolve()):
        raise ValueError(
            f"{folder} is a link to {folder.resolve()}, out of the report's folder; remove it."
        )
    written = []
    for name, chart in page.figures.items():
        text = chart.to_standalone_svg()
        written += [
            _write_file(folder / f"{name}.svg", text.encode()),
            _write_file(folder / f"{name}.png", render_png(text)),
        ]
    for name, cells in page.tables.items():
        written += [
            _write_file(folder / f"{name}.csv", render_csv(cells).encode()),
            _write_file(folder / f"{name}.tex", render_latex(cells).encode()),
        ]
    return written


def _write_file(path: Path, content: bytes) -> Path:
    write_atomically(path, content)
    return path


def check_resvg_installed() -> None:
    """Says in one sentence what PNG files need."""
    if find_spec("resvg_py") is None:
        raise ImportError(
            "PNG files of the figures need resvg-py, which is not installed; pip install "
            "'cida[plot]', or add --no-files for the report alone."
        )


def render_png(svg: str) -> bytes:
    """The SVG as pixels."""
    image = import_module("resvg_py").svg_to_bytes(svg_string=svg, zoom=PNG_ZOOM)
    return bytes(image)


def render_csv(rows: Sequence[TableLine]) -> str:
    """The table with a head line; what is bold elsewhere is not marked."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_escape_formula(name) for name in rows[0])
    writer.writerows(
        [_escape_formula(line[name].replace("**", "")) for name in rows[0]] for line in rows
    )
    return text.getvalue()


def _escape_formula(text: str) -> str:
    """A cell that a spreadsheet takes for a text: a name may begin as a formula does."""
    if text[:1] in ("=", "@", "\t", "\r") or (
        text[:1] in ("+", "-") and not _NUMBER_PATTERN.match(text)
    ):
        return f"'{text}"
    return text


def render_latex(rows: Sequence[TableLine]) -> str:
    """A tabular without packages, the best in bold; what LaTeX reads as commands is escaped."""
    columns = "l" + "r" * (len(rows[0]) - 1)
    header = " & ".join(_escape_latex(name) for name in rows[0])
    lines = [" & ".join(_latex_cell(line[name]) for name in rows[0]) for line in rows]
    body = "".join(f"{line} \\\\\n" for line in lines)
    return (
        f"\\begin{{tabular}}{{{columns}}}\n\\hline\n{header} \\\\\n\\hline\n{body}\\hline\n"
        "\\end{tabular}\n"
    )


def _latex_cell(text: str) -> str:
    if text.startswith("**"):
        bold, _, rest = text[2:].partition("**")
        return f"\\textbf{{{_escape_latex(bold)}}}{_escape_latex(rest)}"
    return _escape_latex(text)


def _escape_latex(text: str) -> str:
    return "".join(_LATEX_ESCAPES.get(letter, letter) for letter in text)
