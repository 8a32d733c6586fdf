"""The report on disk, and its charts and tables as files of their own."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

from cida.benchmarks.tables import Cells
from cida.files import write_atomically
from cida.report.page import Page

__all__ = ["FILES", "csv_text", "latex_text", "need_resvg", "png_bytes", "write_report"]

FILES = "report-files"
ZOOM = 2  # of a PNG: sharp on paper
_NUMBER = re.compile(r"[-+][\d.,e+ %±-]*$")

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "→": r"$\rightarrow$", "≤": r"$\leq$",
    "≥": r"$\geq$", "²": r"$^2$", "…": r"\ldots{}", "\n": " ", "\r": " ",
}  # fmt: skip


def write_report(page: Page, path: Path, files: bool) -> list[Path]:
    """The page; with ``files`` also SVG, PNG, CSV and LaTeX beside it. Gives what was written."""
    if files:
        need_resvg()
    write_atomically(path, page.html.encode())
    return [path, *(_write_files(page, path.parent / FILES) if files else [])]


def _write_files(page: Page, folder: Path) -> list[Path]:
    if not folder.resolve().is_relative_to(folder.parent.resolve()):
        raise ValueError(
            f"{folder} is a link to {folder.resolve()}, out of the report's folder; remove it."
        )
    written = []
    for name, chart in page.figures.items():
        text = chart.file()
        written += [
            _write(folder / f"{name}.svg", text.encode()),
            _write(folder / f"{name}.png", png_bytes(text)),
        ]
    for name, cells in page.tables.items():
        written += [
            _write(folder / f"{name}.csv", csv_text(cells).encode()),
            _write(folder / f"{name}.tex", latex_text(cells).encode()),
        ]
    return written


def _write(path: Path, content: bytes) -> Path:
    write_atomically(path, content)
    return path


def need_resvg() -> None:
    """Says in one sentence what PNG files need."""
    if find_spec("resvg_py") is None:
        raise ImportError(
            "PNG files of the figures need resvg-py, which is not installed; pip install "
            "'cida[plot]', or add --no-files for the report alone."
        )


def png_bytes(svg: str) -> bytes:
    """The SVG as pixels."""
    drawn = import_module("resvg_py").svg_to_bytes(svg_string=svg, zoom=ZOOM)
    return bytes(drawn)


def csv_text(found: Sequence[Cells]) -> str:
    """The table with a head line; what is bold elsewhere is not marked."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_no_formula(name) for name in found[0])
    writer.writerows(
        [_no_formula(line[name].replace("**", "")) for name in found[0]] for line in found
    )
    return text.getvalue()


def _no_formula(words: str) -> str:
    """A cell that a spreadsheet takes for a text: a name may begin as a formula does."""
    if words[:1] in ("=", "@", "\t", "\r") or (
        words[:1] in ("+", "-") and not _NUMBER.match(words)
    ):
        return f"'{words}"
    return words


def latex_text(found: Sequence[Cells]) -> str:
    """A tabular without packages, the best in bold; what LaTeX reads as commands is escaped."""
    columns = "l" + "r" * (len(found[0]) - 1)
    head = " & ".join(_escaped(name) for name in found[0])
    lines = [" & ".join(_latex_cell(line[name]) for name in found[0]) for line in found]
    body = "".join(f"{line} \\\\\n" for line in lines)
    return (
        f"\\begin{{tabular}}{{{columns}}}\n\\hline\n{head} \\\\\n\\hline\n{body}\\hline\n"
        "\\end{tabular}\n"
    )


def _latex_cell(words: str) -> str:
    if words.startswith("**"):
        bold, _, rest = words[2:].partition("**")
        return f"\\textbf{{{_escaped(bold)}}}{_escaped(rest)}"
    return _escaped(words)


def _escaped(words: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in words)
