"""Figures of the bank of runs; needs matplotlib."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cida.experiments.figures import add_shared_legend, make_panels, save_figures
from cida.experiments.selection.model_bank import HEAD_AND_LAMBDA, HEAD_TITLES

HEAD_COLORS = dict(zip(HEAD_TITLES, ("#1f77b4", "#0e8a7c", "#d62728"), strict=True))
N_EXPECTED_PANEL_COLUMNS = 3
N_PLOTTED_VALIDATORS = 3  # validators: the default first


def draw_figures(samples: Mapping[str, Any], rows: Sequence[Any], folder: Path) -> dict[str, str]:
    """Writes figures of the analysis as PNG and SVG; returns the files by title."""
    groups = json.loads((folder / "selection.json").read_text())["groups"]
    figures = {
        "Score and true accuracy": ("scores", partial(plot_validator_scores, groups)),
        "Expected and true accuracy": ("expected", partial(plot_expected_accuracy, groups)),
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
    look: dict[str, Any] = {"marker": "o", "linestyle": ""}
    marks = [Line2D([], [], color=HEAD_COLORS[h], label=t, **look) for h, t in HEAD_TITLES.items()]
    figure.legend(handles=marks, loc="outside lower center", ncols=len(marks), frameon=False)
    return figure


def _draw_runs(axes: Axes, group: Mapping[str, Any], name: str) -> None:
    scores = np.array(group["scores"][name])
    truth = 100 * np.array(group["truth"])
    colors = [HEAD_COLORS[HEAD_AND_LAMBDA[method][0]] for method in group["methods"]]
    axes.scatter(truth, scores, c=colors, s=14, alpha=0.7, linewidths=0)
    best = int(scores.argmax())
    axes.scatter(truth[best], scores[best], s=60, facecolors="none", edgecolors="black")


def plot_expected_accuracy(groups: Sequence[Mapping[str, Any]]) -> Figure:
    """Along u of each group's kept run: what was expected, its interval, and the truth."""
    figure, panels = make_panels(len(groups), N_EXPECTED_PANEL_COLUMNS, 2.1, 0.5, 10.0)
    for axes, group in zip(panels, groups, strict=True):
        cells = group["expected_cells"]
        u = [cell["u"] for cell in cells]
        names = ("low", "high", "score", "truth")
        low, high, score, truth = ([100 * cell[name] for cell in cells] for name in names)
        axes.fill_between(u, low, high, color="#1f77b4", alpha=0.2, label="interval")
        axes.plot(u, score, color="#1f77b4", label="expected")
        axes.plot(u, truth, color="black", marker=".", linewidth=0.8, label="true")
        axes.set_title(f"{group['task'].partition('/')[2]}, seed {group['seed']}")
        axes.set_ylim(min(40, *low, *truth) - 1, 101)
        axes.set_ylabel("accuracy, %")
        axes.set_xlabel("u")
    add_shared_legend(figure, panels[:1], "outside lower center")
    return figure
