"""The report on disk, and its charts and tables as files of their own."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from cida.io.files import write_atomically
from cida.report.render import Page
from cida.report.tables import render_csv, render_latex

__all__ = [
    "FILES_FOLDER",
    "check_resvg_installed",
    "render_png",
    "write_report",
]

FILES_FOLDER = "report-files"
PNG_ZOOM = 2  # of a PNG: sharp on paper


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
    for name, table in page.tables.items():
        written += [
            _write_file(folder / f"{name}.csv", render_csv(table).encode()),
            _write_file(folder / f"{name}.tex", render_latex(table).encode()),
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
