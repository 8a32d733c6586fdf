"""Figures of the bank of runs; needs matplotlib."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cida.experiments.figures import MATPLOTLIB_STYLE, add_shared_legend, make_panels, save_figures
from cida.experiments.selection.model_bank import HEAD_BY_METHOD, HEAD_TITLES

__all__ = ["draw_figures", "plot_expected_accuracy", "plot_validator_scores"]

HEAD_COLORS = dict(zip(HEAD_TITLES, ("#1f77b4", "#0e8a7c", "#d62728"), strict=True))
N_EXPECTED_PANEL_COLUMNS = 3
N_PLOTTED_VALIDATORS = 3  # validators: the default first


def draw_figures(samples: Mapping[str, Any], rows: Sequence[Any], folder: Path) -> dict[str, str]:
    """Writes figures of the analysis as PNG and SVG; returns the files by title."""
    groups = json.loads((folder / "selection.json").read_text())["groups"]
    with mpl.rc_context(MATPLOTLIB_STYLE):
        figures = {
            "Score and true accuracy": ("scores", plot_validator_scores(groups)),
            "Expected and true accuracy": ("expected", plot_expected_accuracy(groups)),
        }
        return save_figures(figures, folder)


def plot_validator_scores(groups: Sequence[Mapping[str, Any]]) -> Figure:
    """Each run of each world: its score by the first validators against its true accuracy."""
    tasks = list(dict.fromkeys(group["task"] for group in groups))
    names = list(groups[0]["scores"])[:N_PLOTTED_VALIDATORS]
    figure = Figure(figsize=(2.3 * len(tasks), 2.2 * len(names) + 0.6), layout="constrained")
    panels = figure.subplots(len(names), len(tasks), squeeze=False)
    for line, name in enumerate(names):
        for column, task in enumerate(tasks):
            axes = panels[line][column]
            for group in (g for g in groups if g["task"] == task):
                _draw_runs(axes, group, name)
            if line == 0:
                axes.set_title(task.partition("/")[2])
            if column == 0:
                axes.set_ylabel(f"{name}\nscore")
            if line == len(names) - 1:
                axes.set_xlabel("target accuracy, %")
    marks = [
        mpl.lines.Line2D([], [], marker="o", linestyle="", color=colour, label=HEAD_TITLES[head])
        for head, colour in HEAD_COLORS.items()
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=len(marks), frameon=False)
    return figure


def _draw_runs(axes: Axes, group: Mapping[str, Any], name: str) -> None:
    scores = np.array(group["scores"][name])
    truth = 100 * np.array(group["truth"])
    colors = [HEAD_COLORS[HEAD_BY_METHOD[method]] for method in group["methods"]]
    axes.scatter(truth, scores, c=colors, s=14, alpha=0.7, linewidths=0)
    best = int(scores.argmax())
    axes.scatter(truth[best], scores[best], s=60, facecolors="none", edgecolors="black")


def plot_expected_accuracy(groups: Sequence[Mapping[str, Any]]) -> Figure:
    """Along u of each group's kept run: what was expected, its interval, and the truth."""
    figure, panels = make_panels(len(groups), N_EXPECTED_PANEL_COLUMNS, 2.1, 0.5, 10.0)
    for axes, group in zip(panels, groups, strict=True):
        cells = group["expected_cells"]
        u = [cell["u"] for cell in cells]
        low, high, score, truth = (
            [100 * cell[name] for cell in cells] for name in ("low", "high", "score", "truth")
        )
        axes.fill_between(u, low, high, color="#1f77b4", alpha=0.2, label="interval")
        axes.plot(u, score, color="#1f77b4", label="expected")
        axes.plot(u, truth, color="black", marker=".", linewidth=0.8, label="true")
        axes.set_title(f"{group['task'].partition('/')[2]}, seed {group['seed']}")
        axes.set_ylim(min(40, *low, *truth) - 1, 101)
        axes.set_ylabel("accuracy, %")
        axes.set_xlabel("u")
    add_shared_legend(figure, panels[:1], "outside lower center")
    return figure
