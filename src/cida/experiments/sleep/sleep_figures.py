"""Figures of the sleep experiments: who is in them, and accuracy against age; needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cida.experiments import figures
from cida.experiments.figures import Results
from cida.experiments.registry import TASK_SPECS
from cida.experiments.sleep.sleep_data import AGE_BIN_YEARS, SleepTaskData, SubjectGroup

SleepTasks = Mapping[str, SleepTaskData]
N_SLEEP_PANEL_COLUMNS = 3


def draw_figures(data_by_task: SleepTasks, results: Results, folder: Path) -> dict[str, str]:
    """Writes each figure as PNG and SVG; returns the files by title."""
    accuracy = partial(plot_accuracy_by_age, data_by_task, results)
    drawings = {
        "Who is in it, by age": ("ages", partial(plot_ages, data_by_task)),
        "Accuracy against age": ("accuracy", accuracy),
    }
    return figures.save_figures(drawings, folder)


def plot_ages(data_by_task: SleepTasks) -> Figure:
    """The ages of the source and of the target people of each task."""
    figure, panels = _make_panels(data_by_task)
    for axes, sample in zip(panels, data_by_task.values(), strict=True):
        source = _subject_ages(sample.source, sample.scored_source)
        groups = [source, _subject_ages(sample.target, sample.scored_target)]
        ages = np.concatenate(groups)
        edges = list(range(math.floor(ages.min()), math.ceil(ages.max()) + 3, 2))
        colors, labels = [figures.SOURCE_COLOR, figures.TARGET_COLOR], ["source", "target"]
        axes.hist(groups, edges, stacked=True, color=colors, label=labels)
        axes.set_ylabel("people")
    figures.add_shared_legend(figure, panels[:1])
    return figure


def plot_accuracy_by_age(data_by_task: SleepTasks, results: Results) -> Figure:
    """The mean accuracy of each method in bins of five years of the target's ages."""
    figure, panels = _make_panels(data_by_task)
    for axes, (name, sample) in zip(panels, data_by_task.items(), strict=True):
        ages = np.unique(_subject_ages(sample.source, sample.scored_source))
        # The ages that have source people: without a hole of more than a bin.
        for part in np.split(ages, np.flatnonzero(np.diff(ages) > AGE_BIN_YEARS) + 1):
            figures.shade_source(axes, part[0], part[-1])
        own_results = [result for result in results if result.task == name]
        figures.plot_method_scores(axes, own_results, figures.METHOD_LINE_STYLES, marker="o", ms=3)
        axes.set_ylabel("accuracy %")
    figures.add_shared_legend(figure, panels[:1])
    return figure


def _make_panels(data_by_task: SleepTasks) -> tuple[Figure, list[Axes]]:
    n_columns = min(N_SLEEP_PANEL_COLUMNS, len(data_by_task))
    figure, panels = figures.make_panels(len(data_by_task), n_columns, 2.6)
    for axes, name in zip(panels, data_by_task, strict=True):
        axes.set_title(TASK_SPECS[name].title, fontsize=9)
        axes.set_xlabel("age, years")
    return figure, panels


def _subject_ages(*groups: SubjectGroup) -> np.ndarray[Any, Any]:
    return np.concatenate([part.store.subjects["age"][part.subject_numbers] for part in groups])
