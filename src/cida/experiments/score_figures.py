"""Scores of every method in every synthetic task, and along the index; needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from cida.experiments.figures import (
    MATPLOTLIB_STYLE,
    METHOD_LINE_STYLES,
    add_shared_legend,
    make_panels,
    mean_score_by_bin,
    save_figures,
    shade_source,
)
from cida.experiments.registry import TASK_SPECS
from cida.experiments.task_data import SyntheticTaskData
from cida.methods import METHODS
from cida.runs.records import RunResult

__all__ = ["draw_figures", "plot_accuracy_by_index", "plot_score_matrix"]

N_SYNTHETIC_PANEL_COLUMNS = 4
SYNTHETIC_LINE_STYLES = {
    **METHOD_LINE_STYLES,
    "default": {"color": "#d62728"},
    "given-prediction": {"color": "#0e8a7c", "linestyle": ":"},
}
MIN_COLOR_SCORE, MAX_COLOR_SCORE = 45.0, 100.0


def draw_figures(
    data_by_task: Mapping[str, SyntheticTaskData], results: Sequence[RunResult], folder: Path
) -> dict[str, str]:
    """Writes each figure as PNG and SVG; returns the files by title."""
    with mpl.rc_context(MATPLOTLIB_STYLE):
        figures = {"Every method in every world": ("scores", plot_score_matrix(results))}
        one_dimensional = {name: one for name, one in data_by_task.items() if one.data.u.ndim == 1}
        if one_dimensional:
            figures["Along the index"] = ("along", plot_accuracy_by_index(one_dimensional, results))
        return save_figures(figures, folder)


def plot_score_matrix(results: Sequence[RunResult]) -> Figure:
    """The mean target score of each method (a line) in each world (a column), in per cent."""
    tasks = list(dict.fromkeys(row.task for row in results))
    methods = list(dict.fromkeys(row.method for row in results))
    scores = np.array(
        [[_mean_target_score(results, task, method) for task in tasks] for method in methods]
    )
    figure = Figure(
        figsize=(max(10.0, 2.8 + 0.72 * len(tasks)), 1.6 + 0.34 * len(methods)),
        layout="constrained",
    )
    axes = figure.subplots()
    axes.imshow(
        scores, cmap="RdYlGn", vmin=MIN_COLOR_SCORE, vmax=MAX_COLOR_SCORE, aspect="auto", alpha=0.75
    )
    for line, column in np.ndindex(scores.shape):
        if np.isfinite(scores[line, column]):
            axes.text(column, line, f"{scores[line, column]:.1f}", ha="center", va="center")
    titles = [TASK_SPECS[task].title for task in tasks]
    axes.set_xticks(range(len(tasks)), titles, rotation=35, ha="left")
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(methods)), [METHODS[method].title for method in methods])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure


def plot_accuracy_by_index(
    data_by_task: Mapping[str, SyntheticTaskData], results: Sequence[RunResult]
) -> Figure:
    """The mean score of each method in cells along an index of one number, a panel a world."""
    figure, grid = make_panels(len(data_by_task), N_SYNTHETIC_PANEL_COLUMNS, 2.1, 0.8)
    for axes, (name, task_data) in zip(grid, data_by_task.items(), strict=True):
        source_index = task_data.data.u[task_data.data.source]
        shade_source(axes, source_index.min(), source_index.max())
        for method, line_style in SYNTHETIC_LINE_STYLES.items():
            method_results = [row for row in results if (row.task, row.method) == (name, method)]
            if method_results:
                axes.plot(
                    *mean_score_by_bin(method_results), label=METHODS[method].title, **line_style
                )
        axes.set_title(TASK_SPECS[name].title, fontsize=9)
        axes.set_ylim(0 if not task_data.regression else -5, 105)
    add_shared_legend(figure, grid[:1])
    return figure


def _mean_target_score(results: Sequence[RunResult], task: str, method: str) -> float:
    scores = [r.target_score for r in results if (r.task, r.method) == (task, method)]
    return 100 * mean(scores) if scores else math.nan
