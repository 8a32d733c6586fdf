"""Figures like the paper's (1 and 2), and accuracy against u; needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from io import BytesIO
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
from cida.experiments.runner import CompletedRun
from cida.io.files import write_atomically

__all__ = [
    "MATPLOTLIB_STYLE",
    "draw_figures",
    "plot_toy_accuracy",
    "plot_toy_predictions",
    "save_figures",
]

Array = np.ndarray[Any, Any]

POSITIVE_COLOR, NEGATIVE_COLOR, SOURCE_COLOR = "#d62728", "#1f4fd8", "#2e9e3f"
MAX_PANEL_COLUMNS = 4
MATPLOTLIB_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "cida",  # the same file on a second run
}


def draw_figures(data: IndexedData, runs: Sequence[CompletedRun], folder: Path) -> dict[str, str]:
    """Writes each figure as PNG and SVG; gives the SVG texts by title. The first seed is drawn."""
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


def save_figures(figures: Mapping[str, tuple[str, Figure]], folder: Path) -> dict[str, str]:
    """Writes each figure under its name as PNG and SVG; gives the SVG texts by title."""
    svg_by_title = {}
    for title, (name, figure) in figures.items():
        svg = _render_figure(figure, "svg")
        write_atomically(folder / f"{name}.svg", svg)
        write_atomically(folder / f"{name}.png", _render_figure(figure, "png"))
        svg_by_title[title] = svg.decode()
    return svg_by_title


def _render_figure(figure: Figure, file_format: str) -> bytes:
    buffer = BytesIO()
    # No date inside: the same file on a second run.
    options = {"metadata": {"Date": None}} if file_format == "svg" else {"dpi": 150}
    figure.savefig(buffer, format=file_format, **options)
    return buffer.getvalue()


def plot_toy_predictions(data: IndexedData, runs: Sequence[CompletedRun]) -> Figure:
    """Domains by colour, the truth, and a panel a method with the boundary of its predictions."""
    panels = 2 + len(runs)
    columns = min(MAX_PANEL_COLUMNS, panels)
    rows = math.ceil(panels / columns)
    figure = Figure(figsize=(3.1 * columns, 2.6 * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for spare in axes[panels:]:
        spare.set_visible(False)
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
    columns = min(MAX_PANEL_COLUMNS, len(by_method))
    rows = math.ceil(len(by_method) / columns)
    layout_engine = ConstrainedLayoutEngine(wspace=0.06)  # for the numbers at the ends of two axes
    figure = Figure(figsize=(3.1 * columns, 2.0 * rows + 0.3), layout=layout_engine)
    axes = list(figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat)
    for spare in axes[len(by_method) :]:
        spare.set_visible(False)
    domains = np.unique(data.u)
    for (title, method_runs), ax in zip(by_method.items(), axes, strict=False):
        scores = 100 * np.array(
            [[cell["score"] for cell in o.result.by_index] for o in method_runs]
        )
        ax.axvspan(
            domains[0], data.u[data.source].max(), color=SOURCE_COLOR, alpha=0.12, linewidth=0
        )
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
