"""Figures like the paper's (1 and 2), and accuracy against u; needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Rectangle
from sklearn.svm import SVC

from cida.datasets import IndexedData
from cida.experiments.circle_sine.boundary import fit_equal_boundaries
from cida.experiments.figures import (
    MATPLOTLIB_STYLE,
    SOURCE_COLOR,
    make_panels,
    save_figures,
    shade_source,
)
from cida.experiments.runner import CompletedRun
from cida.experiments.task_data import SyntheticTaskData

__all__ = ["draw_figures", "plot_toy_accuracy", "plot_toy_predictions"]

Array = np.ndarray[Any, Any]

POSITIVE_COLOR, NEGATIVE_COLOR = "#d62728", "#1f4fd8"
MAX_PANEL_COLUMNS = 4


def draw_figures(
    data_by_task: Mapping[str, SyntheticTaskData], runs: Sequence[CompletedRun], folder: Path
) -> dict[str, str]:
    """Writes each figure as PNG and SVG; returns the files by title. The first seed is drawn."""
    (data,) = (task_data.data for task_data in data_by_task.values())
    first_seed_runs = [o for o in runs if o.result.seed == runs[0].result.seed]
    with mpl.rc_context(MATPLOTLIB_STYLE):
        figures = {
            "The world and each method's predictions": (
                "figure",
                plot_toy_predictions(data, first_seed_runs),
            ),
            "Accuracy against u": ("accuracy", plot_toy_accuracy(data, runs)),
        }
        return save_figures(figures, folder)


def plot_toy_predictions(data: IndexedData, runs: Sequence[CompletedRun]) -> Figure:
    """Domains by colour, the truth, and a panel a method with the boundary of its predictions."""
    n_panels = 2 + len(runs)
    n_columns = min(MAX_PANEL_COLUMNS, n_panels)
    figure, axes = make_panels(n_panels, n_columns, 2.6, 0, 3.1 * n_columns)
    _draw_domains_panel(data, axes[0])
    _draw_class_panel(data, data.y, axes[1], "Ground truth")
    predictions = {o.recipe.method: o.model.predict(data.x, domain_index=data.u) for o in runs}
    svms = fit_equal_boundaries(data.x, predictions)
    for run, ax in zip(runs, axes[2:], strict=False):
        title = f"{run.recipe.title}: {100 * run.result.target_score:.1f} %"
        _draw_class_panel(data, predictions[run.recipe.method], ax, title)
        if run.recipe.method in svms:
            _draw_boundary(svms[run.recipe.method], ax)
    return figure


def _draw_domains_panel(data: IndexedData, ax: Axes) -> None:
    points = ax.scatter(
        data.x[:, 0], data.x[:, 1], c=data.u, cmap="viridis", s=3, linewidths=0, rasterized=True
    )
    bar = ax.figure.colorbar(points, ax=ax, pad=0.01, aspect=30)
    bar.set_label("u")
    _draw_frame(data, ax, "Domains, coloured by u")


def _draw_class_panel(data: IndexedData, labels: Array, ax: Axes, title: str) -> None:
    x = data.x
    positive = labels == 1
    ax.plot(*x[positive].T, ".", color=POSITIVE_COLOR, markersize=2.2, rasterized=True)
    ax.plot(*x[~positive].T, "x", color=NEGATIVE_COLOR, markersize=2.4, mew=0.5, rasterized=True)
    _draw_frame(data, ax, title)


def _draw_frame(data: IndexedData, ax: Axes, title: str) -> None:
    """The source domains boxed, and a little room around the points."""
    source = data.x[data.source]
    low, high = source.min(0) - 0.06, source.max(0) + 0.06
    ax.add_patch(Rectangle(low, *(high - low), fill=False, edgecolor=SOURCE_COLOR, linewidth=1.6))
    lower, upper = data.x.min(0) - 0.25, data.x.max(0) + 0.25
    ax.set(xlim=(lower[0], upper[0]), ylim=(lower[1], upper[1]), xticks=[], yticks=[])
    ax.set_title(title, fontsize=9)


def _draw_boundary(svm: SVC, ax: Axes) -> None:
    grid_x, grid_y = np.meshgrid(np.linspace(*ax.get_xlim(), 160), np.linspace(*ax.get_ylim(), 160))
    decision = svm.decision_function(np.stack([grid_x.ravel(), grid_y.ravel()], axis=1))
    ax.contour(
        grid_x, grid_y, decision.reshape(grid_x.shape), [0.0], colors="black", linewidths=1.3
    )


def plot_toy_accuracy(data: IndexedData, runs: Sequence[CompletedRun]) -> Figure:
    """A panel a method: the mean over seeds at each u, and the band from worst to best seed."""
    by_method: dict[str, list[CompletedRun]] = {}
    for run in runs:
        by_method.setdefault(run.recipe.title, []).append(run)
    n_columns = min(MAX_PANEL_COLUMNS, len(by_method))
    layout = ConstrainedLayoutEngine(wspace=0.06)  # for the numbers at the ends of two axes
    figure, axes = make_panels(
        len(by_method), n_columns, 2.0, 0.3, 3.1 * n_columns, layout, sharex=True, sharey=True
    )
    domains = np.unique(data.u)
    for (title, method_runs), ax in zip(by_method.items(), axes, strict=False):
        scores = 100 * np.array(
            [[cell["score"] for cell in o.result.by_index] for o in method_runs]
        )
        shade_source(ax, domains[0], data.u[data.source].max())
        ax.axhline(50, color="0.7", linewidth=0.8, linestyle=":")
        ax.fill_between(domains, scores.min(0), scores.max(0), alpha=0.25, linewidth=0)
        ax.plot(domains, scores.mean(0), linewidth=1.6)
        target = 100 * np.mean([o.result.target_score for o in method_runs])
        ax.set_title(f"{title}: {target:.1f} %", fontsize=9)
        ax.set(xlim=(domains[0], domains[-1]), ylim=(0, 103))
        ax.set_xticks([domains[0], (domains[0] + domains[-1]) / 2, domains[-1]])
    figure.supxlabel("u (source shaded)", fontsize=9)
    figure.supylabel("accuracy %", fontsize=9)
    return figure
