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

from cida.experiments.circle_sine.toy_figures import MATPLOTLIB_STYLE, SOURCE_COLOR, save_figures
from cida.experiments.registry import TASK_SPECS
from cida.experiments.sleep.sleep_data import AGE_BIN_YEARS, SleepTaskData, SubjectGroup
from cida.methods import METHODS
from cida.runs.records import RunResult

__all__ = [
    "METHOD_LINE_STYLES",
    "add_shared_legend",
    "draw_figures",
    "mean_score_by_index",
    "plot_accuracy_by_age",
    "plot_ages",
]

N_SLEEP_PANEL_COLUMNS = 3
# Enough to read: where one began, where one could end, and who adapts.
METHOD_LINE_STYLES: dict[str, dict[str, Any]] = {
    "source-only": {"color": "#7a8594"},
    "dann": {"color": "#c97a12"},
    "cida": {"color": "#7b4bb3"},
    "pcida": {"color": "#0e8a7c"},
    "histogram": {"color": "#1f4fd8"},
    "oracle": {"color": "#1c2430", "linestyle": "--"},
}


def draw_figures(
    data_by_task: Mapping[str, SleepTaskData], results: Sequence[RunResult], folder: Path
) -> dict[str, str]:
    """Writes each figure as PNG and SVG; gives the SVG texts by title."""
    with mpl.rc_context(MATPLOTLIB_STYLE):
        figures = {
            "Who is in it, by age": ("ages", plot_ages(data_by_task)),
            "Accuracy against age": ("accuracy", plot_accuracy_by_age(data_by_task, results)),
        }
        return save_figures(figures, folder)


def plot_ages(data_by_task: Mapping[str, SleepTaskData]) -> Figure:
    """The ages of the source and of the target people of each task."""
    figure, panels = _make_panels(data_by_task)
    for axes, sample in zip(panels, data_by_task.values(), strict=True):
        groups = [
            _subject_ages(sample.source, sample.scored_source),
            _subject_ages(sample.target, sample.scored_target),
        ]
        ages = np.concatenate(groups)
        edges = list(range(math.floor(ages.min()), math.ceil(ages.max()) + 3, 2))
        axes.hist(
            groups, edges, stacked=True, color=[SOURCE_COLOR, "#9aa7b8"], label=["source", "target"]
        )
        axes.set_ylabel("people")
    add_shared_legend(figure, panels)
    return figure


def plot_accuracy_by_age(
    data_by_task: Mapping[str, SleepTaskData], results: Sequence[RunResult]
) -> Figure:
    """The mean accuracy of each method in bins of five years of the target's ages."""
    figure, panels = _make_panels(data_by_task)
    for axes, (name, sample) in zip(panels, data_by_task.items(), strict=True):
        _shade_source_ages(axes, _subject_ages(sample.source, sample.scored_source))
        for method, line_style in METHOD_LINE_STYLES.items():
            method_results = [row for row in results if (row.task, row.method) == (name, method)]
            if method_results:
                ages, scores = mean_score_by_index(method_results)
                axes.plot(ages, scores, marker="o", ms=3, label=METHODS[method].title, **line_style)
        axes.set_ylabel("accuracy %")
    add_shared_legend(figure, panels)
    return figure


def _make_panels(data_by_task: Mapping[str, SleepTaskData]) -> tuple[Figure, list[Axes]]:
    columns = min(N_SLEEP_PANEL_COLUMNS, len(data_by_task))
    n_rows = math.ceil(len(data_by_task) / columns)
    figure = Figure(figsize=(11, 2.6 * n_rows + 0.4), layout="constrained")
    panels: list[Axes] = list(figure.subplots(n_rows, columns, squeeze=False).flat)
    for axes, name in zip(panels, data_by_task, strict=False):
        axes.set_title(TASK_SPECS[name].title, fontsize=9)
        axes.set_xlabel("age, years")
    for axes in panels[len(data_by_task) :]:
        axes.set_axis_off()
    return figure, panels[: len(data_by_task)]


def add_shared_legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """One legend above all panels."""
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)


def _subject_ages(*groups: SubjectGroup) -> np.ndarray[Any, Any]:
    return np.concatenate([part.store.subjects["age"][part.subject_numbers] for part in groups])


def _shade_source_ages(axes: Axes, ages: np.ndarray[Any, Any]) -> None:
    """The ages that have source people: without a hole of more than a bin."""
    unique_ages = np.unique(ages)
    edges = np.split(unique_ages, np.flatnonzero(np.diff(unique_ages) > AGE_BIN_YEARS) + 1)
    for part in edges:
        axes.axvspan(part[0], part[-1], color=SOURCE_COLOR, alpha=0.12, lw=0)


def mean_score_by_index(results: Sequence[RunResult]) -> tuple[list[float], list[float]]:
    """The middle of each bin, and the mean over seeds."""
    bins: dict[float, list[float]] = {}
    for row in results:
        for cell in row.by_index:
            bins.setdefault((cell["lo"] + cell["hi"]) / 2, []).append(100 * cell["score"])
    ages = sorted(bins)
    return ages, [mean(bins[age]) for age in ages]
