"""Figures of the experiments on real tables: scores along the index; needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cida.experiments import figures
from cida.experiments.figures import Results
from cida.experiments.real_tables.table_tasks import TableTaskData
from cida.experiments.registry import TASK_SPECS
from cida.methods import METHODS

MAP_METHODS = ("source-only", "histogram", "oracle")
BOOSTING_LINE_STYLE = {"color": "#b03a3a", "linestyle": ":", "label": "Gradient boosting"}


def draw_figures(
    data_by_task: Mapping[str, TableTaskData], results: Results, folder: Path
) -> dict[str, str]:
    """Writes each figure as PNG and SVG; returns the files by title."""
    drawings = {}
    for name, sample in data_by_task.items():
        own_results = [result for result in results if result.task == name]
        draw = plot_scores_by_index if sample.u.shape[1] == 1 else plot_score_map
        file = TASK_SPECS[name].task_name or "scores"
        drawings[TASK_SPECS[name].title] = (file, partial(draw, sample, own_results))
    return figures.save_figures(drawings, folder)


def plot_scores_by_index(task_data: TableTaskData, results: Results) -> Figure:
    """The mean score of each method in cells along an index of one number."""
    figure, (axes,) = figures.make_panels(1, 1, 3.8, 0)
    source_index = task_data.u[task_data.source_mask, 0]
    figures.shade_source(axes, source_index.min(), source_index.max())
    line_styles = {"boosting": BOOSTING_LINE_STYLE, **figures.METHOD_LINE_STYLES}
    figures.plot_method_scores(axes, results, line_styles, marker="o", ms=3)
    axes.set_xlabel("age, years")
    axes.set_ylabel("accuracy %")
    figures.add_shared_legend(figure, [axes])
    return figure


def plot_score_map(task_data: TableTaskData, results: Results) -> Figure:
    """The mean score in each cell of a map, the more rows the larger the dot."""
    methods = [m for m in MAP_METHODS if any(row.method == m for row in results)]
    n_panels = max(1, len(methods))
    figure, panels = figures.make_panels(n_panels, n_panels, 3.8, 0, 3.6 * n_panels + 0.8)
    source = task_data.source_mask
    for axes, method in zip(panels, methods, strict=False):
        for rows, color in ((source, figures.SOURCE_COLOR), (~source, figures.TARGET_COLOR)):
            place = task_data.u[rows][::4]  # every fourth row as a grain
            axes.plot(place[:, 1], place[:, 0], ",", color=color, alpha=0.5)
        cells = _mean_score_cells([row for row in results if row.method == method])
        latitude, longitude, score, size = cells.T
        colors: dict[str, Any] = {"c": score, "cmap": "viridis", "vmin": 50, "vmax": 90}
        dots = axes.scatter(longitude, latitude, s=size, edgecolors="white", zorder=2, **colors)
        axes.set_title(METHODS[method].title, fontsize=9)
        axes.set_xlabel("longitude")
        axes.xaxis.set_major_locator(MaxNLocator(3))
    panels[0].set_ylabel("latitude")
    if methods:
        figure.colorbar(dots, ax=panels, label="score %", shrink=0.8)
    return figure


def _mean_score_cells(results: Results) -> np.ndarray[Any, Any]:
    """Latitude, longitude, mean score in per cent and size of the dot of each cell."""
    dots = []
    for cell in zip(*(row.by_index for row in results), strict=True):
        middle = [(low + high) / 2 for low, high in zip(cell[0]["lo"], cell[0]["hi"], strict=True)]
        score = 100 * mean(one["score"] for one in cell)
        dots.append([*middle, score, 20 + cell[0]["n"] / 10])
    return np.array(dots)
