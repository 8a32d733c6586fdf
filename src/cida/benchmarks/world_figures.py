"""Figures of the worlds and of the moment ladder; needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cida.benchmarks.catalogue import BENCHMARKS
from cida.benchmarks.figures import SOURCE, STYLE, write_figures
from cida.benchmarks.recipes import METHODS
from cida.benchmarks.runner import Row
from cida.benchmarks.sleep_figures import SHOWN, finish
from cida.benchmarks.worlds import WorldPoints

__all__ = ["accuracy_figure", "draw_figures", "scores_figure"]

COLUMNS = 4
LOOKS = {
    **SHOWN,
    "default": {"color": "#d62728"},
    "given-prediction": {"color": "#0e8a7c", "linestyle": ":"},
}
LOWEST, HIGHEST = 45.0, 100.0


def draw_figures(
    samples: Mapping[str, WorldPoints], rows: Sequence[Row], folder: Path
) -> dict[str, str]:
    """Writes each figure as PNG and SVG; gives the SVG texts by title."""
    with mpl.rc_context(STYLE):
        figures = {"Every method in every world": ("scores", scores_figure(rows))}
        along = {name: one for name, one in samples.items() if one.world.u.ndim == 1}
        if along:
            figures["Along the index"] = ("along", accuracy_figure(along, rows))
        return write_figures(figures, folder)


def scores_figure(rows: Sequence[Row]) -> Figure:
    """The mean target score of each method (a line) in each world (a column), in per cent."""
    tasks = list(dict.fromkeys(row.task for row in rows))
    methods = list(dict.fromkeys(row.method for row in rows))
    scores = np.array([[_score(rows, task, method) for task in tasks] for method in methods])
    figure = Figure(
        figsize=(max(10.0, 2.8 + 0.72 * len(tasks)), 1.6 + 0.34 * len(methods)),
        layout="constrained",
    )
    axes = figure.subplots()
    axes.imshow(scores, cmap="RdYlGn", vmin=LOWEST, vmax=HIGHEST, aspect="auto", alpha=0.75)
    for line, column in np.ndindex(scores.shape):
        if np.isfinite(scores[line, column]):
            axes.text(column, line, f"{scores[line, column]:.1f}", ha="center", va="center")
    titles = [BENCHMARKS[task].title for task in tasks]
    axes.set_xticks(range(len(tasks)), titles, rotation=35, ha="left")
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(methods)), [METHODS[method][0] for method in methods])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure


def accuracy_figure(samples: Mapping[str, WorldPoints], rows: Sequence[Row]) -> Figure:
    """The mean score of each method in cells along an index of one number, a panel a world."""
    lines = math.ceil(len(samples) / COLUMNS)
    figure = Figure(figsize=(11, 0.8 + 2.1 * lines), layout="constrained")
    grid: list[Axes] = list(figure.subplots(lines, COLUMNS, squeeze=False).flat)
    for spare in grid[len(samples) :]:
        spare.set_visible(False)
    for axes, (name, sample) in zip(grid, samples.items(), strict=False):
        known = sample.world.u[sample.world.source]
        axes.axvspan(known.min(), known.max(), color=SOURCE, alpha=0.12, lw=0)
        for method, look in LOOKS.items():
            mine = [row for row in rows if (row.task, row.method) == (name, method)]
            if mine:
                axes.plot(*_along(mine), label=METHODS[method][0], **look)
        axes.set_title(BENCHMARKS[name].title, fontsize=9)
        axes.set_ylim(0 if not sample.regression else -5, 105)
    finish(figure, grid[: len(samples)])
    return figure


def _along(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """The middle of each cell and its mean score in per cent; cells differ a little by seed."""
    cells = list(zip(*(row.by_index for row in rows), strict=False))
    places = [mean((one["lo"] + one["hi"]) / 2 for one in cell) for cell in cells]
    return places, [100 * mean(one["accuracy"] for one in cell) for cell in cells]


def _score(rows: Sequence[Row], task: str, method: str) -> float:
    mine = [r.target_accuracy for r in rows if (r.task, r.method) == (task, method)]
    return 100 * mean(mine) if mine else math.nan
