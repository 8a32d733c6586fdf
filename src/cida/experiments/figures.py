"""What the figures of all experiments share: style, panels, legends, files; needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from statistics import mean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cida.io.files import write_atomically
from cida.runs.records import RunResult

__all__ = [
    "MATPLOTLIB_STYLE",
    "METHOD_LINE_STYLES",
    "SOURCE_COLOR",
    "TARGET_COLOR",
    "add_shared_legend",
    "make_panels",
    "mean_score_by_bin",
    "save_figures",
    "shade_source",
]

SOURCE_COLOR, TARGET_COLOR = "#2e9e3f", "#9aa7b8"
MATPLOTLIB_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "cida",  # the same file on a second run
}
# Enough to read: where one began, where one could end, and who adapts.
METHOD_LINE_STYLES: Mapping[str, dict[str, Any]] = {
    "source-only": {"color": "#7a8594"},
    "dann": {"color": "#c97a12"},
    "cida": {"color": "#7b4bb3"},
    "pcida": {"color": "#0e8a7c"},
    "histogram": {"color": "#1f4fd8"},
    "oracle": {"color": "#1c2430", "linestyle": "--"},
}


def make_panels(
    n_panels: int,
    n_columns: int,
    panel_height_inches: float,
    extra_height_inches: float = 0.4,
    width_inches: float = 11.0,
    layout: Any = "constrained",
    **options: Any,
) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels in rows; those that are left over are not shown."""
    n_rows = math.ceil(n_panels / n_columns)
    size = (width_inches, panel_height_inches * n_rows + extra_height_inches)
    figure = Figure(figsize=size, layout=layout)
    panels: list[Axes] = list(figure.subplots(n_rows, n_columns, squeeze=False, **options).flat)
    for spare in panels[n_panels:]:
        spare.set_visible(False)
    return figure, panels[:n_panels]


def shade_source(axes: Axes, low: float, high: float, **options: Any) -> None:
    """The range of the source along u in green."""
    axes.axvspan(low, high, color=SOURCE_COLOR, alpha=0.12, linewidth=0, **options)


def add_shared_legend(
    figure: Figure, panels: Sequence[Axes], location: Any = "outside upper center"
) -> None:
    """One legend for all panels, each label once."""
    handle_by_label: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        handle_by_label |= dict(zip(labels, handles, strict=True))
    labels = list(handle_by_label)
    figure.legend(
        list(handle_by_label.values()), labels, loc=location, ncols=len(labels), frameon=False
    )


def mean_score_by_bin(results: Sequence[RunResult]) -> tuple[list[float], list[float]]:
    """The middle of each bin along u and its mean score over seeds in per cent.

    Bins of another seed may be a little elsewhere: the first of each are taken together, and so on.
    """
    cells = list(zip(*(row.by_index for row in results), strict=False))
    middles = [mean((one["lo"] + one["hi"]) / 2 for one in cell) for cell in cells]
    return middles, [100 * mean(one["score"] for one in cell) for cell in cells]


def save_figures(figures: Mapping[str, tuple[str, Figure]], folder: Path) -> dict[str, str]:
    """Writes each figure under its name as PNG and SVG; returns the SVG files by title."""
    file_by_title = {}
    for title, (name, figure) in figures.items():
        file_by_title[title] = f"{name}.svg"
        write_atomically(folder / f"{name}.svg", _render_figure(figure, "svg"))
        write_atomically(folder / f"{name}.png", _render_figure(figure, "png"))
    return file_by_title


def _render_figure(figure: Figure, file_format: str) -> bytes:
    buffer = BytesIO()
    # No date inside: the same file on a second run.
    options = {"metadata": {"Date": None}} if file_format == "svg" else {"dpi": 150}
    figure.savefig(buffer, format=file_format, **options)
    return buffer.getvalue()
