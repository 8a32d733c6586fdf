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

from cida.benchmarks.boundary import equal_boundaries
from cida.benchmarks.runner import Outcome
from cida.datasets import World
from cida.files import write_atomically

__all__ = ["STYLE", "accuracy_figure", "draw_figures", "world_figure", "write_figures"]

Array = np.ndarray[Any, Any]

POSITIVE, NEGATIVE, SOURCE = "#d62728", "#1f4fd8", "#2e9e3f"
COLUMNS = 4
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "cida",  # the same file on a second run
}


def draw_figures(world: World, outcomes: Sequence[Outcome], folder: Path) -> dict[str, str]:
    """Writes each figure as PNG and SVG; gives the SVG texts by title. The first seed is drawn."""
    first = [o for o in outcomes if o.row.seed == outcomes[0].row.seed]
    with mpl.rc_context(STYLE):
        figures = {
            "The world and each method's predictions": ("figure", world_figure(world, first)),
            "Accuracy against u": ("accuracy", accuracy_figure(world, outcomes)),
        }
        return write_figures(figures, folder)


def write_figures(figures: Mapping[str, tuple[str, Figure]], folder: Path) -> dict[str, str]:
    """Writes each figure under its name as PNG and SVG; gives the SVG texts by title."""
    pictures = {}
    for title, (name, figure) in figures.items():
        picture = _as_bytes(figure, "svg")
        write_atomically(folder / f"{name}.svg", picture)
        write_atomically(folder / f"{name}.png", _as_bytes(figure, "png"))
        pictures[title] = picture.decode()
    return pictures


def _as_bytes(figure: Figure, kind: str) -> bytes:
    buffer = BytesIO()
    # No date inside: the same file on a second run.
    extra = {"metadata": {"Date": None}} if kind == "svg" else {"dpi": 150}
    figure.savefig(buffer, format=kind, **extra)
    return buffer.getvalue()


def world_figure(world: World, outcomes: Sequence[Outcome]) -> Figure:
    """Domains by colour, the truth, and a panel a method with the boundary of its predictions."""
    panels = 2 + len(outcomes)
    columns = min(COLUMNS, panels)
    rows = math.ceil(panels / columns)
    figure = Figure(figsize=(3.1 * columns, 2.6 * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for spare in axes[panels:]:
        spare.set_visible(False)
    _domains_panel(world, axes[0])
    _class_panel(world, world.y, axes[1], "Ground truth")
    said = {o.recipe.method: o.model.predict(world.x, domain_index=world.u) for o in outcomes}
    machines = equal_boundaries(world.x, said)
    for outcome, ax in zip(outcomes, axes[2:], strict=False):
        title = f"{outcome.recipe.title}: {100 * outcome.row.target_accuracy:.1f} %"
        _class_panel(world, said[outcome.recipe.method], ax, title)
        if outcome.recipe.method in machines:
            _boundary(machines[outcome.recipe.method], ax)
    return figure


def _domains_panel(world: World, ax: Axes) -> None:
    marks = ax.scatter(
        world.x[:, 0], world.x[:, 1], c=world.u, cmap="viridis", s=3, linewidths=0, rasterized=True
    )
    bar = ax.figure.colorbar(marks, ax=ax, pad=0.01, aspect=30)
    bar.set_label("u")
    _frame(world, ax, "Domains, coloured by u")


def _class_panel(world: World, labels: Array, ax: Axes, title: str) -> None:
    x = world.x
    positive = labels == 1
    ax.plot(*x[positive].T, ".", color=POSITIVE, markersize=2.2, rasterized=True)
    ax.plot(*x[~positive].T, "x", color=NEGATIVE, markersize=2.4, mew=0.5, rasterized=True)
    _frame(world, ax, title)


def _frame(world: World, ax: Axes, title: str) -> None:
    """The source domains boxed, and a little room around the points."""
    source = world.x[world.source]
    low, high = source.min(0) - 0.06, source.max(0) + 0.06
    ax.add_patch(Rectangle(low, *(high - low), fill=False, edgecolor=SOURCE, linewidth=1.6))
    least, most = world.x.min(0) - 0.25, world.x.max(0) + 0.25
    ax.set(xlim=(least[0], most[0]), ylim=(least[1], most[1]), xticks=[], yticks=[])
    ax.set_title(title, fontsize=9)


def _boundary(machine: SVC, ax: Axes) -> None:
    across, up = np.meshgrid(np.linspace(*ax.get_xlim(), 160), np.linspace(*ax.get_ylim(), 160))
    height = machine.decision_function(np.stack([across.ravel(), up.ravel()], axis=1))
    ax.contour(across, up, height.reshape(across.shape), [0.0], colors="black", linewidths=1.3)


def accuracy_figure(world: World, outcomes: Sequence[Outcome]) -> Figure:
    """A panel a method: the mean over seeds at each u, and the band from worst to best seed."""
    by_method: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_method.setdefault(outcome.recipe.title, []).append(outcome)
    columns = min(COLUMNS, len(by_method))
    rows = math.ceil(len(by_method) / columns)
    room = ConstrainedLayoutEngine(wspace=0.06)  # for the numbers at the ends of two axes
    figure = Figure(figsize=(3.1 * columns, 2.0 * rows + 0.3), layout=room)
    axes = list(figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat)
    for spare in axes[len(by_method) :]:
        spare.set_visible(False)
    domains = np.unique(world.u)
    for (title, mine), ax in zip(by_method.items(), axes, strict=False):
        scores = 100 * np.array([[cell["accuracy"] for cell in o.row.by_index] for o in mine])
        ax.axvspan(domains[0], world.u[world.source].max(), color=SOURCE, alpha=0.12, linewidth=0)
        ax.axhline(50, color="0.7", linewidth=0.8, linestyle=":")
        ax.fill_between(domains, scores.min(0), scores.max(0), alpha=0.25, linewidth=0)
        ax.plot(domains, scores.mean(0), linewidth=1.6)
        target = 100 * np.mean([o.row.target_accuracy for o in mine])
        ax.set_title(f"{title}: {target:.1f} %", fontsize=9)
        ax.set(xlim=(domains[0], domains[-1]), ylim=(0, 103))
        ax.set_xticks([domains[0], (domains[0] + domains[-1]) / 2, domains[-1]])
    figure.supxlabel("u (source shaded)", fontsize=9)
    figure.supylabel("accuracy %", fontsize=9)
    return figure
