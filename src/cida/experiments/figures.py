"""What the figures of all experiments share, and those of synthetic tasks; needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO
from itertools import chain
from pathlib import Path
from statistics import mean
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cida.experiments.registry import TASK_SPECS
from cida.experiments.runner import CompletedRun
from cida.experiments.task_data import SyntheticTaskData
from cida.io.files import write_atomically
from cida.methods import METHODS
from cida.runs.records import RunResult

NamedFigure = tuple[str, Callable[[], Figure]]  # the file without suffix, and what draws it
Results = Sequence[RunResult]
Runs = Sequence[CompletedRun]
SyntheticTasks = Mapping[str, SyntheticTaskData]
LEGEND_AT = "outside upper center"
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
N_SYNTHETIC_PANEL_COLUMNS = 4
SYNTHETIC_LINE_STYLES = {
    **METHOD_LINE_STYLES,
    "default": {"color": "#d62728"},
    "given-prediction": {"color": "#0e8a7c", "linestyle": ":"},
}
COLOR_SCORE_RANGE = (45.0, 100.0)


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


def add_shared_legend(figure: Figure, panels: Sequence[Axes], location: Any = LEGEND_AT) -> None:
    """One legend for all panels, each label once."""
    pairs = [zip(*axes.get_legend_handles_labels(), strict=True) for axes in panels]
    handles = {label: handle for handle, label in chain(*pairs)}
    options: dict[str, Any] = {"loc": location, "ncols": len(handles), "frameon": False}
    figure.legend(list(handles.values()), list(handles), **options)


def mean_score_by_bin(results: Results) -> tuple[list[float], list[float]]:
    """The middle of each bin along u and its mean score over seeds in per cent.

    Bins of another seed may be a little elsewhere: the first of each are taken together, and so on.
    """
    cells = list(zip(*(row.by_index for row in results), strict=False))
    middles = [mean((one["lo"] + one["hi"]) / 2 for one in cell) for cell in cells]
    return middles, [100 * mean(one["score"] for one in cell) for cell in cells]


def plot_method_scores(axes: Axes, results: Results, line_styles: Any, **options: Any) -> None:
    """A line along u for each of these methods that has results."""
    for method, line_style in line_styles.items():
        own_results = [result for result in results if result.method == method]
        if own_results:
            label = METHODS[method].title if method in METHODS else method.capitalize()
            line = {"label": label, **line_style, **options}
            axes.plot(*mean_score_by_bin(own_results), **line)


def scores_by_method(runs: Runs) -> dict[str, tuple[Any, float]]:
    """By title, in per cent: the scores of each seed in each bin, and the mean of the target's."""
    titles = dict.fromkeys(run.recipe.title for run in runs)
    by_title = {t: [run.result for run in runs if run.recipe.title == t] for t in titles}
    return {
        title: (
            100 * np.array([[cell["score"] for cell in result.by_index] for result in results]),
            100 * float(np.mean([result.target_score for result in results])),
        )
        for title, results in by_title.items()
    }


def first_seed_runs(runs: Runs) -> list[CompletedRun]:
    """Those of the first seed."""
    return [run for run in runs if run.result.seed == runs[0].result.seed]


def save_figures(figures: Mapping[str, NamedFigure], folder: Path) -> dict[str, str]:
    """Draws each figure and writes it as PNG and SVG; returns the SVG files by title."""
    with mpl.rc_context(MATPLOTLIB_STYLE):
        for name, draw in figures.values():
            figure = draw()
            # No date inside: the same file on a second run.
            for kind, options in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 150})):
                buffer = BytesIO()
                figure.savefig(buffer, format=kind, **options)
                write_atomically(folder / f"{name}.{kind}", buffer.getvalue())
    return {title: f"{name}.svg" for title, (name, _) in figures.items()}


def draw_figures(data_by_task: SyntheticTasks, results: Results, folder: Path) -> dict[str, str]:
    """Writes each figure as PNG and SVG; returns the files by title."""
    figures = {"Every method in every world": ("scores", partial(plot_score_matrix, results))}
    on_lines = {name: data for name, data in data_by_task.items() if data.data.u.ndim == 1}
    if on_lines:
        draw = partial(plot_accuracy_by_index, on_lines, results)
        figures["Along the index"] = ("along", draw)
    return save_figures(figures, folder)


def plot_score_matrix(results: Results) -> Figure:
    """The mean target score of each method (a line) in each world (a column), in per cent."""
    tasks = list(dict.fromkeys(row.task for row in results))
    methods = list(dict.fromkeys(row.method for row in results))
    scores = np.full((len(methods), len(tasks)), np.nan)
    for line, column in np.ndindex(scores.shape):
        key = (tasks[column], methods[line])
        own_scores = [r.target_score for r in results if (r.task, r.method) == key]
        scores[line, column] = 100 * mean(own_scores) if own_scores else np.nan
    size = (max(10.0, 2.8 + 0.72 * len(tasks)), 1.6 + 0.34 * len(methods))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    low, high = COLOR_SCORE_RANGE
    axes.imshow(scores, cmap="RdYlGn", vmin=low, vmax=high, aspect="auto", alpha=0.75)
    for (line, column), score in np.ndenumerate(scores):
        if np.isfinite(score):
            axes.text(column, line, f"{score:.1f}", ha="center", va="center")
    titles = [TASK_SPECS[task].title for task in tasks]
    axes.set_xticks(range(len(tasks)), titles, rotation=35, ha="left")
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(methods)), [METHODS[method].title for method in methods])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure


def plot_accuracy_by_index(data_by_task: SyntheticTasks, results: Results) -> Figure:
    """The mean score of each method in cells along an index of one number, a panel a world."""
    figure, grid = make_panels(len(data_by_task), N_SYNTHETIC_PANEL_COLUMNS, 2.1, 0.8)
    for axes, (name, task_data) in zip(grid, data_by_task.items(), strict=True):
        source_index = task_data.data.u[task_data.data.source]
        shade_source(axes, source_index.min(), source_index.max())
        own_results = [result for result in results if result.task == name]
        plot_method_scores(axes, own_results, SYNTHETIC_LINE_STYLES)
        axes.set_title(TASK_SPECS[name].title, fontsize=9)
        axes.set_ylim(0 if not task_data.regression else -5, 105)
    add_shared_legend(figure, grid[:1])
    return figure
