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

from cida.experiments.figures import (
    MATPLOTLIB_STYLE,
    METHOD_LINE_STYLES,
    SOURCE_COLOR,
    TARGET_COLOR,
    add_shared_legend,
    make_panels,
    mean_score_by_bin,
    save_figures,
    shade_source,
)
from cida.experiments.real_tables.table_tasks import TableTaskData
from cida.experiments.registry import TASK_SPECS
from cida.methods import METHODS
from cida.runs.records import RunResult

__all__ = ["draw_figures", "plot_score_map", "plot_scores_by_index"]

MAP_METHODS = ("source-only", "histogram", "oracle")
BOOSTING_LINE_STYLE = {"color": "#b03a3a", "linestyle": ":"}


def draw_figures(
    data_by_task: Mapping[str, TableTaskData], results: Sequence[RunResult], folder: Path
) -> dict[str, str]:
    """Writes each figure as PNG and SVG; returns the files by title."""
    figures = {}
    with mpl.rc_context(MATPLOTLIB_STYLE):
        for name, sample in data_by_task.items():
            task_results = [row for row in results if row.task == name]
            draw = plot_scores_by_index if sample.u.shape[1] == 1 else plot_score_map
            file = TASK_SPECS[name].task_name or "scores"
            figures[TASK_SPECS[name].title] = (file, draw(sample, task_results))
        return save_figures(figures, folder)


def plot_scores_by_index(task_data: TableTaskData, results: Sequence[RunResult]) -> Figure:
    """The mean score of each method in cells along an index of one number."""
    figure, (axes,) = make_panels(1, 1, 3.8, 0)
    source_index = task_data.u[task_data.source_mask, 0]
    shade_source(axes, source_index.min(), source_index.max())
    line_styles = {"boosting": BOOSTING_LINE_STYLE, **METHOD_LINE_STYLES}
    for method, line_style in line_styles.items():
        method_results = [row for row in results if row.method == method]
        if method_results:
            index_values, scores = mean_score_by_bin(method_results)
            axes.plot(
                index_values, scores, marker="o", ms=3, label=_method_title(method), **line_style
            )
    axes.set_xlabel("age, years")
    axes.set_ylabel("accuracy %")
    add_shared_legend(figure, [axes])
    return figure


def plot_score_map(task_data: TableTaskData, results: Sequence[RunResult]) -> Figure:
    """The mean score in each cell of a map, the more rows the larger the dot."""
    methods = [m for m in MAP_METHODS if any(row.method == m for row in results)]
    n_panels = max(1, len(methods))
    figure, panels = make_panels(n_panels, n_panels, 3.8, 0, 3.6 * n_panels + 0.8)
    for axes, method in zip(panels, methods, strict=False):
        _draw_locations(axes, task_data)
        cells = _mean_score_cells([row for row in results if row.method == method])
        dots = axes.scatter(
            cells[:, 1],
            cells[:, 0],
            s=cells[:, 3],
            c=cells[:, 2],
            cmap="viridis",
            vmin=50,
            vmax=90,
            edgecolors="white",
            zorder=2,
        )
        axes.set_title(_method_title(method), fontsize=9)
        axes.set_xlabel("longitude")
        axes.xaxis.set_major_locator(MaxNLocator(3))
    panels[0].set_ylabel("latitude")
    if methods:
        figure.colorbar(dots, ax=panels, label="score %", shrink=0.8)
    return figure


def _draw_locations(axes: Axes, task_data: TableTaskData) -> None:
    """Every row as a grain, those of the source in green."""
    for rows, colour in (
        (task_data.source_mask, SOURCE_COLOR),
        (~task_data.source_mask, TARGET_COLOR),
    ):
        place = task_data.u[rows][::4]
        axes.plot(place[:, 1], place[:, 0], ",", color=colour, alpha=0.5)


def _mean_score_cells(results: Sequence[RunResult]) -> np.ndarray[Any, Any]:
    """Latitude, longitude, mean score in per cent and size of the dot of each cell."""
    dots = []
    for cell in zip(*(row.by_index for row in results), strict=True):
        middle = [(low + high) / 2 for low, high in zip(cell[0]["lo"], cell[0]["hi"], strict=True)]
        score = 100 * mean(one["score"] for one in cell)
        dots.append([*middle, score, 20 + cell[0]["n"] / 10])
    return np.array(dots)


def _method_title(method: str) -> str:
    return METHODS[method].title if method in METHODS else "Gradient boosting"
