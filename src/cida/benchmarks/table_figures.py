"""Figures of the experiments on real tables: scores along the index; needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cida.benchmarks.catalogue import BENCHMARKS
from cida.benchmarks.figures import SOURCE, STYLE, write_figures
from cida.benchmarks.recipes import METHODS
from cida.benchmarks.runner import Row
from cida.benchmarks.sleep_figures import SHOWN, against_index, finish
from cida.benchmarks.tabular import TableRows

__all__ = ["draw_figures", "line_figure", "map_figure"]

ON_THE_MAP = ("source-only", "histogram", "oracle")
BOOSTING = {"color": "#b03a3a", "linestyle": ":"}


def draw_figures(
    samples: Mapping[str, TableRows], rows: Sequence[Row], folder: Path
) -> dict[str, str]:
    """Writes each figure as PNG and SVG; gives the SVG texts by title."""
    figures = {}
    with mpl.rc_context(STYLE):
        for name, sample in samples.items():
            mine = [row for row in rows if row.task == name]
            draw = line_figure if sample.u.shape[1] == 1 else map_figure
            file = BENCHMARKS[name].task or "scores"
            figures[BENCHMARKS[name].title] = (file, draw(sample, mine))
        return write_figures(figures, folder)


def line_figure(sample: TableRows, rows: Sequence[Row]) -> Figure:
    """The mean score of each method in cells along an index of one number."""
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    axes = figure.subplots()
    known = sample.u[sample.source, 0]
    axes.axvspan(known.min(), known.max(), color=SOURCE, alpha=0.12, lw=0)
    looks = {"boosting": BOOSTING, **SHOWN}
    for method, look in looks.items():
        mine = [row for row in rows if row.method == method]
        if mine:
            places, scores = against_index(mine)
            axes.plot(places, scores, marker="o", ms=3, label=_title(method), **look)
    axes.set_xlabel("age, years")
    axes.set_ylabel("accuracy %")
    finish(figure, [axes])
    return figure


def map_figure(sample: TableRows, rows: Sequence[Row]) -> Figure:
    """The mean score in each cell of a map, the more rows the larger the dot."""
    methods = [m for m in ON_THE_MAP if any(row.method == m for row in rows)]
    figure = Figure(figsize=(3.6 * max(1, len(methods)) + 0.8, 3.8), layout="constrained")
    panels: list[Axes] = list(figure.subplots(1, max(1, len(methods)), squeeze=False).flat)
    for axes, method in zip(panels, methods, strict=False):
        _places(axes, sample)
        cells = _cells([row for row in rows if row.method == method])
        dots = axes.scatter(
            cells[:, 1], cells[:, 0], s=cells[:, 3], c=cells[:, 2], cmap="viridis", vmin=50,
            vmax=90, edgecolors="white", zorder=2,
        )  # fmt: skip
        axes.set_title(_title(method), fontsize=9)
        axes.set_xlabel("longitude")
        axes.xaxis.set_major_locator(MaxNLocator(3))
    panels[0].set_ylabel("latitude")
    if methods:
        figure.colorbar(dots, ax=panels, label="score %", shrink=0.8)
    return figure


def _places(axes: Axes, sample: TableRows) -> None:
    """Every row as a grain, those of the source in green."""
    for rows, colour in ((sample.source, SOURCE), (~sample.source, "#9aa7b8")):
        place = sample.u[rows][::4]
        axes.plot(place[:, 1], place[:, 0], ",", color=colour, alpha=0.5)


def _cells(rows: Sequence[Row]) -> np.ndarray[Any, Any]:
    """Latitude, longitude, mean score in per cent and size of the dot of each cell."""
    found = []
    for cell in zip(*(row.by_index for row in rows), strict=True):
        middle = [(low + high) / 2 for low, high in zip(cell[0]["lo"], cell[0]["hi"], strict=True)]
        score = 100 * mean(one["accuracy"] for one in cell)
        found.append([*middle, score, 20 + cell[0]["n"] / 10])
    return np.array(found)


def _title(method: str) -> str:
    return METHODS[method][0] if method in METHODS else "Gradient boosting"
