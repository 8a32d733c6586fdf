"""Accuracy along u: a line a method, with the band of its seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cida.benchmarks.runner import Row
from cida.benchmarks.tables import Cells
from cida.diagnostics.view import View
from cida.report.chapters import Method, Task
from cida.report.maps import map_along, target_words
from cida.report.parts import Part, charts_of, figure, folded, legend, soft, table, wide
from cida.report.svg import Band, Chart, Series, line_chart, together
from cida.report.ticks import axis_name, first_column, index_words, number_words, turn_ticks

__all__ = ["accuracy_along", "source_bands"]

Array = np.ndarray[Any, Any]

STRETCHES = 60  # that the index range is cut into, to see where the source is
FLOORS = (0.0, 0.5, 0.8)  # of an axis of accuracies
LOWEST = -1.0  # of R2: a worse one is drawn there
LARGE = (820.0, 360.0)
MOST_LINES = 3  # that can be told apart with their bands in one chart


def accuracy_along(task: Task, level: int) -> Part | None:
    """What each method is worth along u; nothing for runs that were not scored."""
    scored = [method for method in task.methods if method.rows]
    if not scored:
        return None
    cells = scored[0].rows[0].by_index
    if cells and isinstance(cells[0]["lo"], list):
        return map_along(task, level) if len(cells[0]["lo"]) == 2 else None
    return _lines(task, scored, level) if cells else None


# --- an index of one number ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Course:
    """The scores of a method: where, their mean over seeds, the worst and the best."""

    x: list[float]
    mean: list[float]
    worst: list[float]
    best: list[float]
    seeds: int


def _lines(task: Task, scored: Sequence[Method], level: int) -> Part:
    view, what = task.view, _metric(task)
    courses = {method.key: _course(method.rows) for method in scored}
    cells = [cell for method in scored for row in method.rows for cell in row.by_index]
    ends = (min(cell["lo"] for cell in cells), max(cell["hi"] for cell in cells))
    bands = source_bands(view) if view is not None else []
    if bands and view is not None:  # where only the target was scored, the source is beside it
        u = first_column(view)
        ends = (min(ends[0], float(u.min())), max(ends[1], float(u.max())))
    turn = turn_ticks(view, 8)
    if turn:
        ends = (min(ends[0], turn[0]), max(ends[1], turn[-1]))
    lowest = min(min(course.worst) for course in courses.values())
    y_range = (_floor(lowest), 1.0)
    series = [_series(method, courses[method.key]) for method in scored]
    shape: dict[str, Any] = {
        "x_name": axis_name(view), "y_name": what, "y_range": y_range, "bands": bands,
        "x_range": ends, "x_words": index_words(view), "percent": True,
    }  # fmt: skip
    label = f"{what} against {axis_name(view)}. " + _words(scored, courses)
    whole = line_chart(series, label, size=LARGE, named=True, x_ticks=turn, **shape)
    seeds = max(course.seeds for course in courses.values())
    note = "" if seeds == 1 else f" Bands run from the worst to the best of {seeds} seeds."
    shaded = " The source is shaded." if bands else ""
    html = soft(f"The mean in each cell along {axis_name(view)}.{note}{shaded}")
    chart = wide(whole.inline(), f"{what} against {axis_name(view)}, chart")
    many = len(scored) > MOST_LINES
    kind = "big many" if many else "big"  # bands of many hide each other: one at a time is shown
    html += f"<figure class='{kind}'>{legend(series, 'Methods, to show or hide')}{chart}</figure>"
    bare = [replace(line, spread=None) for line in series] if many else series
    figures = {"accuracy": line_chart(bare, label, size=LARGE, named=True, x_ticks=turn, **shape)}
    if many:
        panels = [(m, _panel(m, courses[m.key], scored[0], courses, shape)) for m in scored]
        made = [figure(c, m.title, target_words(m), level) for m, c in panels]
        html += folded("One method at a time", charts_of(made), opened=True)
        named = [(m.title, c) for m, c in panels]
        figures["accuracy-by-method"] = together(named, 3, f"{what} of each method")
    numbers = _table(scored, courses, index_words(view), axis_name(view))
    html += folded("The same as a table", table(numbers, f"{what} in % along {axis_name(view)}"))
    return Part(
        f"{what.capitalize()} along {axis_name(view)}", html, figures, {"accuracy": numbers}
    )


def _floor(lowest: float) -> float:
    """Where the axis begins: at 0, unless all lines are high above it or one is below."""
    if lowest < 0:
        return max(LOWEST, lowest)
    return max((floor for floor in FLOORS if floor <= lowest - 0.02), default=0.0)


def _metric(task: Task) -> str:
    return "R²" if task.regression else "accuracy"


def _course(rows: Sequence[Row]) -> _Course:
    first = rows[0].by_index
    places = np.array([(cell["lo"] + cell["hi"]) / 2 for cell in first], dtype=float)
    scores = []
    for row in rows:
        there = np.array([(cell["lo"] + cell["hi"]) / 2 for cell in row.by_index], dtype=float)
        got = np.array([cell["accuracy"] for cell in row.by_index], dtype=float)
        scores.append(got if len(got) == len(places) else np.interp(places, there, got))
    found = np.array(scores)
    mean, worst, best = found.mean(0), found.min(0), found.max(0)
    return _Course(places.tolist(), mean.tolist(), worst.tolist(), best.tolist(), len(rows))


def _series(method: Method, course: _Course) -> Series:
    spread = (course.worst, course.best) if course.seeds > 1 else None
    return Series(method.title, course.x, course.mean, method.style, spread, key=method.key)


def _panel(
    method: Method,
    course: _Course,
    base: Method,
    courses: dict[str, _Course],
    shape: dict[str, Any],
) -> Chart:
    """A method alone, above the first one's line for comparison."""
    below = courses[base.key]
    series = [Series(base.title, below.x, below.mean, f"{base.style} faint")]
    spread = (course.worst, course.best) if course.seeds > 1 else None
    if method is not base:
        series.append(Series(method.title, course.x, course.mean, method.style, spread))
    else:
        series = [Series(method.title, course.x, course.mean, method.style, spread)]
    label = _words([method], courses)
    few = turn_ticks(method.views[0] if method.views else None, 4)
    return line_chart(series, label, size=(300, 180), x_ticks=few, **{**shape, "y_name": ""})


def _words(methods: Sequence[Method], courses: dict[str, _Course]) -> str:
    """The lines for who does not see them."""
    told = []
    for method in methods:
        mean = courses[method.key].mean
        low = int(np.argmin(mean))
        told.append(
            f"{method.title}: from {100 * mean[0]:.0f} % to {100 * mean[-1]:.0f} %, the least "
            f"{100 * mean[low]:.0f} % at {number_words(courses[method.key].x[low])}"
        )
    return "; ".join(told) + "."


def _table(
    methods: Sequence[Method], courses: dict[str, _Course], words: Any, name: str
) -> list[Cells]:
    """A line a cell, a column a method; of methods with other cells the nearest."""
    first = courses[methods[0].key].x
    lines = []
    for place in first:
        line = {name: words(place)}
        for method in methods:
            course = courses[method.key]
            near = int(np.argmin(np.abs(np.array(course.x) - place)))
            line[method.title] = f"{100 * course.mean[near]:.1f}"
        lines.append(line)
    return lines


# --- where the source is -------------------------------------------------------------------------


def source_bands(view: View) -> list[Band]:
    """The stretches along the first index column where most rows are the source's.

    On a circle the source may lie on both sides of the seam: then there are two. Where u has a few
    values alone, each stands for its surroundings.
    """
    u, source = first_column(view), view.source
    values = np.unique(u)
    if not source.any() or source.all() or len(values) < 2:
        return []
    few = len(values) <= STRETCHES
    half = float(np.median(np.diff(values))) / 2 if few else 0.0
    edges = values if few else np.linspace(values[0], values[-1], STRETCHES + 1)[:-1]
    cell = np.searchsorted(edges, u, side="right") - 1
    bands: list[Band] = []
    mine: list[Array] = []
    for number in range(len(edges) + 1):
        rows = cell == number
        if rows.any() and source[rows].mean() > 0.5:
            mine.append(u[rows & source])
        elif mine and (rows.any() or number == len(edges)):  # where there is no row nothing ends
            ours = np.concatenate(mine)
            low = max(float(ours.min()) - half, float(values[0]))
            bands.append(Band(low, min(float(ours.max()) + half, float(values[-1])), "source"))
            mine = []
    return bands
