"""Figures like the paper's (1 and 2), and accuracy against u; needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Rectangle
from sklearn.svm import SVC

from cida.datasets import IndexedData
from cida.experiments import figures
from cida.experiments.figures import Runs, SyntheticTasks

POSITIVE_COLOR, NEGATIVE_COLOR = "#d62728", "#1f4fd8"
MAX_PANEL_COLUMNS = 4
RBF_GAMMA = 2.0  # of the kernel, for z-scored inputs: a reach of about half a deviation
MIN_LOG10_C, MAX_LOG10_C = -3.0, 2.0  # of the machine's C; beyond it noise takes minutes to fit
MAX_FITTING_ACCURACY = 0.99


def draw_figures(data_by_task: SyntheticTasks, runs: Runs, folder: Path) -> dict[str, str]:
    """Writes each figure as PNG and SVG; returns the files by title. The first seed is drawn."""
    (data,) = (task_data.data for task_data in data_by_task.values())
    predictions = partial(plot_toy_predictions, data, figures.first_seed_runs(runs))
    drawings = {
        "The world and each method's predictions": ("figure", predictions),
        "Accuracy against u": ("accuracy", partial(plot_toy_accuracy, data, runs)),
    }
    return figures.save_figures(drawings, folder)


def plot_toy_predictions(data: IndexedData, runs: Runs) -> Figure:
    """Domains by colour, the truth, and a panel a method with the boundary of its predictions."""
    n_panels = 2 + len(runs)
    n_columns = min(MAX_PANEL_COLUMNS, n_panels)
    figure, axes = figures.make_panels(n_panels, n_columns, 2.6, 0, 3.1 * n_columns)
    _draw_domains_panel(data, axes[0])
    _draw_class_panel(data, data.y, axes[1], "Ground truth")
    predictions = {o.recipe.method: o.model.predict(data.x, domain_index=data.u) for o in runs}
    svms = fit_equal_boundaries(data.x, predictions)
    for run, ax in zip(runs, axes[2:], strict=False):
        title = f"{run.recipe.title}: {100 * run.result.target_score:.1f} %"
        _draw_class_panel(data, predictions[run.recipe.method], ax, title)
        if run.recipe.method in svms:
            limits = (ax.get_xlim(), ax.get_ylim())
            grid = np.stack(np.meshgrid(*(np.linspace(*ends, 160) for ends in limits)))
            height = svms[run.recipe.method].decision_function(grid.reshape(2, -1).T)
            ax.contour(*grid, height.reshape(160, 160), [0.0], colors="black", linewidths=1.3)
    return figure


def _draw_domains_panel(data: IndexedData, ax: Axes) -> None:
    look: dict[str, Any] = {"cmap": "viridis", "s": 3, "linewidths": 0, "rasterized": True}
    points = ax.scatter(data.x[:, 0], data.x[:, 1], c=data.u, **look)
    ax.figure.colorbar(points, ax=ax, pad=0.01, aspect=30).set_label("u")
    _draw_frame(data, ax, "Domains, coloured by u")


def _draw_class_panel(data: IndexedData, labels: np.ndarray, ax: Axes, title: str) -> None:
    x, positive = data.x, labels == 1
    ax.plot(*x[positive].T, ".", color=POSITIVE_COLOR, markersize=2.2, rasterized=True)
    ax.plot(*x[~positive].T, "x", color=NEGATIVE_COLOR, markersize=2.4, mew=0.5, rasterized=True)
    _draw_frame(data, ax, title)


def _draw_frame(data: IndexedData, ax: Axes, title: str) -> None:
    """The source domains boxed, and a little room around the points."""
    source = data.x[data.source]
    low, high = source.min(0) - 0.06, source.max(0) + 0.06
    edge: dict[str, Any] = {"edgecolor": figures.SOURCE_COLOR, "linewidth": 1.6}
    ax.add_patch(Rectangle(low, *(high - low), fill=False, **edge))
    lower, upper = data.x.min(0) - 0.25, data.x.max(0) + 0.25
    ax.set(xlim=(lower[0], upper[0]), ylim=(lower[1], upper[1]), xticks=[], yticks=[])
    ax.set_title(title, fontsize=9)


def plot_toy_accuracy(data: IndexedData, runs: Runs) -> Figure:
    """A panel a method: the mean over seeds at each u, and the band from worst to best seed."""
    by_method = figures.scores_by_method(runs)
    n_columns = min(MAX_PANEL_COLUMNS, len(by_method))
    layout = ConstrainedLayoutEngine(wspace=0.06)  # for the numbers at the ends of two axes
    size = (len(by_method), n_columns, 2.0, 0.3, 3.1 * n_columns)
    figure, axes = figures.make_panels(*size, layout, sharex=True, sharey=True)
    domains = np.unique(data.u)
    for (title, (scores, target)), ax in zip(by_method.items(), axes, strict=False):
        figures.shade_source(ax, domains[0], data.u[data.source].max())
        ax.axhline(50, color="0.7", linewidth=0.8, linestyle=":")
        ax.fill_between(domains, scores.min(0), scores.max(0), alpha=0.25, linewidth=0)
        ax.plot(domains, scores.mean(0), linewidth=1.6)
        ax.set_title(f"{title}: {target:.1f} %", fontsize=9)
        ax.set(xlim=(domains[0], domains[-1]), ylim=(0, 103))
        ax.set_xticks([domains[0], (domains[0] + domains[-1]) / 2, domains[-1]])
    figure.supxlabel("u (source shaded)", fontsize=9)
    figure.supylabel("accuracy %", fontsize=9)
    return figure


def fit_equal_boundaries(x: np.ndarray, predictions: Mapping[str, np.ndarray]) -> dict[str, SVC]:
    """One machine for each set of predictions, all with the same fitting accuracy.

    As in the paper's supplement: a network's boundary is drawn as that of an SVM fitted to what it
    predicts, and for fairness all fit equally well. The level is what the worst can reach, at most
    99 %; each C is found by bisection. Predictions of a single class have no boundary.
    """
    labels = {name: said for name, said in predictions.items() if len(np.unique(said)) > 1}
    tightest = {name: _fit_svm(x, said, MAX_LOG10_C) for name, said in labels.items()}
    accuracies = [fitting_accuracy(tightest[name], x, said) for name, said in labels.items()]
    goal = min([MAX_FITTING_ACCURACY, *accuracies])
    return {name: _fit_at_accuracy(tightest[name], goal, x, said) for name, said in labels.items()}


def fitting_accuracy(svm: SVC, x: np.ndarray, predicted: np.ndarray) -> float:
    """The share of rows on which the machine says what the model said."""
    return float((svm.predict(x) == predicted).mean())


def _fit_svm(x: np.ndarray, predicted: np.ndarray, log_c: float) -> SVC:
    return SVC(C=10**log_c, gamma=RBF_GAMMA).fit(x, predicted)


def _fit_at_accuracy(tightest: SVC, goal: float, x: np.ndarray, predicted: np.ndarray) -> SVC:
    """The machine nearest to the level, by bisection of C from the tightest down."""
    low, high, best_fit = MIN_LOG10_C, MAX_LOG10_C, tightest
    best_error = abs(fitting_accuracy(tightest, x, predicted) - goal)
    for _ in range(12):
        if best_error < 0.001:
            break
        log_c = (low + high) / 2
        svm = _fit_svm(x, predicted, log_c)
        accuracy = fitting_accuracy(svm, x, predicted)
        if abs(accuracy - goal) < best_error:
            best_fit, best_error = svm, abs(accuracy - goal)
        low, high = (low, log_c) if accuracy > goal else (log_c, high)
    return best_fit
