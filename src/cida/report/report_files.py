"""The report on disk, and its charts and tables as files of their own."""

from __future__ import annotations

from html.parser import HTMLParser
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from cida.io.files import write_atomically
from cida.report.render import GENERATOR, Page
from cida.report.tables import render_csv, render_latex

FILES_FOLDER = "report-files"
PNG_ZOOM = 2  # of a PNG: sharp on paper
MAX_HEAD_BYTES = 1000  # in which a report says what made it


def write_report(page: Page, path: Path, with_files: bool) -> None:
    """The page; ``with_files`` also SVG, PNG, CSV and LaTeX beside it."""
    if with_files:
        check_resvg_installed()
    write_atomically(path, page.html.encode())
    if with_files:
        _write_files(page, path.parent / FILES_FOLDER)


def _write_files(page: Page, folder: Path) -> None:
    if not folder.resolve().is_relative_to(folder.parent.resolve()):
        raise ValueError(
            f"{folder} is a link to {folder.resolve()}, out of the report's folder; remove it."
        )
    for name, chart in page.figures.items():
        svg = chart.to_standalone_svg()
        write_atomically(folder / f"{name}.svg", svg.encode())
        write_atomically(folder / f"{name}.png", render_png(svg))
    for name, table in page.tables.items():
        write_atomically(folder / f"{name}.csv", render_csv(table).encode())
        write_atomically(folder / f"{name}.tex", render_latex(table).encode())


class _GeneratorReader(HTMLParser):
    """Finds what a page says that it was made by."""

    generator = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "meta" and values.get("name") == "generator":
            self.generator = values.get("content") or ""


def is_report(path: Path) -> bool:
    """Whether the file is a report of cida, by the meta tag that names its generator."""
    reader = _GeneratorReader()
    with path.open("rb") as file:
        reader.feed(file.read(MAX_HEAD_BYTES).decode(errors="replace"))
    return reader.generator.split()[:1] == [GENERATOR]


def check_resvg_installed() -> None:
    """Says in one sentence what PNG files need."""
    if find_spec("resvg_py") is None:
        raise ImportError(
            "PNG files of the figures need resvg-py, which is not installed; pip install "
            "'cida[plot]', or add --no-files for the report alone."
        )


def render_png(svg: str) -> bytes:
    """The SVG as pixels."""
    return bytes(import_module("resvg_py").svg_to_bytes(svg_string=svg, zoom=PNG_ZOOM))
