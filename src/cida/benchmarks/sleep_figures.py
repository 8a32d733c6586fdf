"""Figures of the sleep experiments: who is in them, and accuracy against age; needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cida.benchmarks.catalogue import BENCHMARKS
from cida.benchmarks.figures import SOURCE, STYLE, write_figures
from cida.benchmarks.recipes import METHODS
from cida.benchmarks.runner import Row
from cida.benchmarks.sleep import AGE_BIN_YEARS, Nights, People

__all__ = [
    "SHOWN",
    "accuracy_figure",
    "against_index",
    "ages_figure",
    "draw_figures",
    "finish",
]

COLUMNS = 3
# Enough to read: where one began, where one could end, and who adapts.
SHOWN: dict[str, dict[str, Any]] = {
    "source-only": {"color": "#7a8594"},
    "dann": {"color": "#c97a12"},
    "cida": {"color": "#7b4bb3"},
    "pcida": {"color": "#0e8a7c"},
    "histogram": {"color": "#1f4fd8"},
    "oracle": {"color": "#1c2430", "linestyle": "--"},
}


def draw_figures(nights: Mapping[str, Nights], rows: Sequence[Row], folder: Path) -> dict[str, str]:
    """Writes each figure as PNG and SVG; gives the SVG texts by title."""
    with mpl.rc_context(STYLE):
        figures = {
            "Who is in it, by age": ("ages", ages_figure(nights)),
            "Accuracy against age": ("accuracy", accuracy_figure(nights, rows)),
        }
        return write_figures(figures, folder)


def ages_figure(nights: Mapping[str, Nights]) -> Figure:
    """The ages of the source and of the target people of each task."""
    figure, panels = _panels(nights)
    for axes, sample in zip(panels, nights.values(), strict=True):
        groups = [
            _ages(sample.source, sample.scored_source),
            _ages(sample.target, sample.scored_target),
        ]
        ages = np.concatenate(groups)
        edges = list(range(math.floor(ages.min()), math.ceil(ages.max()) + 3, 2))
        axes.hist(
            groups, edges, stacked=True, color=[SOURCE, "#9aa7b8"], label=["source", "target"]
        )
        axes.set_ylabel("people")
    finish(figure, panels)
    return figure


def accuracy_figure(nights: Mapping[str, Nights], rows: Sequence[Row]) -> Figure:
    """The mean accuracy of each method in bins of five years of the target's ages."""
    figure, panels = _panels(nights)
    for axes, (name, sample) in zip(panels, nights.items(), strict=True):
        _shade(axes, _ages(sample.source, sample.scored_source))
        for method, look in SHOWN.items():
            mine = [row for row in rows if (row.task, row.method) == (name, method)]
            if mine:
                ages, scores = against_index(mine)
                axes.plot(ages, scores, marker="o", ms=3, label=METHODS[method][0], **look)
        axes.set_ylabel("accuracy %")
    finish(figure, panels)
    return figure


def _panels(nights: Mapping[str, Nights]) -> tuple[Figure, list[Axes]]:
    columns = min(COLUMNS, len(nights))
    lines = math.ceil(len(nights) / columns)
    figure = Figure(figsize=(11, 2.6 * lines + 0.4), layout="constrained")
    panels: list[Axes] = list(figure.subplots(lines, columns, squeeze=False).flat)
    for axes, name in zip(panels, nights, strict=False):
        axes.set_title(BENCHMARKS[name].title, fontsize=9)
        axes.set_xlabel("age, years")
    for axes in panels[len(nights) :]:
        axes.set_axis_off()
    return figure, panels[: len(nights)]


def finish(figure: Figure, panels: Sequence[Axes]) -> None:
    """One legend above all panels."""
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)


def _ages(*people: People) -> np.ndarray[Any, Any]:
    return np.concatenate([part.store.subjects["age"][part.numbers] for part in people])


def _shade(axes: Axes, ages: np.ndarray[Any, Any]) -> None:
    """The ages that have source people: without a hole of more than a bin."""
    known = np.unique(ages)
    edges = np.split(known, np.flatnonzero(np.diff(known) > AGE_BIN_YEARS) + 1)
    for part in edges:
        axes.axvspan(part[0], part[-1], color=SOURCE, alpha=0.12, lw=0)


def against_index(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """The middle of each bin, and the mean over seeds."""
    bins: dict[float, list[float]] = {}
    for row in rows:
        for cell in row.by_index:
            bins.setdefault((cell["lo"] + cell["hi"]) / 2, []).append(100 * cell["accuracy"])
    ages = sorted(bins)
    return ages, [mean(bins[age]) for age in ages]
