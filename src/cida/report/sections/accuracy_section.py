"""Accuracy along u: a line a method, with the band of its seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cida.report.blocks import Html, Panel, Section, facet_panels
from cida.report.build import MethodView, ReportView, TaskView
from cida.report.charts import Array, IndexAxis, Series, line_chart
from cida.report.index_axis import index_axis, periodic_axis
from cida.report.sections.map_section import build_map_section
from cida.report.ticks import format_number
from cida.runs.result_table import Cell, CellValue, ResultTable, percent

SCORE_AXIS_FLOORS = (0.0, 0.5, 0.8)  # of an axis of accuracies
MIN_DRAWN_R2 = -1.0  # of R2: a worse one is drawn there
LARGE_CHART_SIZE = (820.0, 360.0)
MAX_BANDED_LINES = 3  # that can be told apart with their bands in one chart


def build_accuracy_section(report: ReportView, task: TaskView) -> Section | None:
    """What each method is worth along u; nothing for runs that were not scored."""
    methods = [method for method in task.methods if method.results]
    cells = methods[0].results[0].by_index if methods else []
    if not cells:
        return None
    if isinstance(cells[0]["lo"], list):
        return build_map_section(task) if len(cells[0]["lo"]) == 2 else None
    return _build_line_section(task, [_ScoreCurve.of(method) for method in methods])


@dataclass(frozen=True)
class _ScoreCurve:
    """The scores of a method in cells along u, a row a seed."""

    method: MethodView
    x: Array
    scores: Array

    @classmethod
    def of(cls, method: MethodView) -> _ScoreCurve:
        curves = []
        for row in method.results:
            centers = np.array([(cell["lo"] + cell["hi"]) / 2 for cell in row.by_index], float)
            curves.append((centers, np.array([cell["score"] for cell in row.by_index], float)))
        x = curves[0][0]
        scores = [y if len(y) == len(x) else np.interp(x, own_x, y) for own_x, y in curves]
        return cls(method, x, np.array(scores))

    @property
    def mean(self) -> Array:
        mean: Array = self.scores.mean(0)
        return mean

    @property
    def series(self) -> Series:
        """The mean over seeds, and the band from the worst to the best of them."""
        worst, best = self.scores.min(0).tolist(), self.scores.max(0).tolist()
        spread = (worst, best) if len(self.scores) > 1 else None
        x, y, method = self.x.tolist(), self.mean.tolist(), self.method
        return Series(method.title, x, y, method.style, spread, key=method.key)

    def describe(self) -> str:
        """The line for who does not see it."""
        mean, low = self.mean, int(np.argmin(self.mean))
        return (
            f"{self.method.title}: from {100 * mean[0]:.0f} % to {100 * mean[-1]:.0f} %, the least "
            f"{100 * mean[low]:.0f} % at {format_number(self.x[low])}"
        )


def _build_line_section(task: TaskView, curves: Sequence[_ScoreCurve]) -> Section:
    metric, axis = "R²" if task.is_regression else "accuracy", _axis(task)
    y_range = (_axis_floor(min(float(curve.scores.min()) for curve in curves)), 1.0)
    series = [curve.series for curve in curves]
    words = "; ".join(curve.describe() for curve in curves)
    label = f"{metric} against {axis.name}. {words}."
    wide_axis = periodic_axis(axis, task.snapshot, 8)
    options: dict[str, Any] = {"size": LARGE_CHART_SIZE, "percent": True, "show_names": True}
    chart = line_chart(series, label, wide_axis, metric, y_range, **options)
    figures, panels = {"accuracy": chart}, []
    # Bands of many lines hide each other: the page shows one at a time, and a file none.
    if len(curves) > MAX_BANDED_LINES:
        plain = [replace(line, spread=None) for line in series]
        figures["accuracy"] = line_chart(plain, label, wide_axis, metric, y_range, **options)
        small_axis = periodic_axis(axis, task.snapshot, 4)
        panels = [_panel(curve, curves[0], small_axis, y_range) for curve in curves]
        figures["accuracy-by-method"] = facet_panels(panels, f"{metric} of each method")
    table = _score_table(curves, axis)
    values = {"axis": axis, "metric": metric, "curves": curves, "chart": chart}
    block = Html("accuracy", **values, panels=panels, scores=table)
    title = f"{metric.capitalize()} along {axis.name}"
    return Section(title, [block], figures, {"accuracy": table})


def _axis(task: TaskView) -> IndexAxis:
    """From the first cell to the last; where only the target was scored, the source is beside."""
    axis = index_axis(task.snapshot)
    edges = [cell[end] for row in task.results for cell in row.by_index for end in ("lo", "hi")]
    edges += axis.ends if axis.bands and axis.ends else ()
    return replace(axis, ends=(min(edges), max(edges)))


def _axis_floor(min_score: float) -> float:
    """Where the axis begins: at 0, unless all lines are high above it or one is below."""
    if min_score < 0:
        return max(MIN_DRAWN_R2, min_score)
    return max((floor for floor in SCORE_AXIS_FLOORS if floor <= min_score - 0.02), default=0.0)


def _panel(
    curve: _ScoreCurve, baseline: _ScoreCurve, axis: IndexAxis, y_range: tuple[float, float]
) -> Panel:
    """A method alone, above the first one's line for comparison."""
    series = [replace(curve.series, key="")]
    if curve is not baseline:
        faint = f"{baseline.method.style} faint"
        series.insert(0, replace(baseline.series, style=faint, spread=None, key=""))
    label = f"{curve.describe()}."
    chart = line_chart(series, label, axis, "", y_range, (300, 180), percent=True)
    return Panel(curve.method.title, chart, curve.method.target_score_text)


def _score_table(curves: Sequence[_ScoreCurve], axis: IndexAxis) -> ResultTable:
    """A row for each cell, a column a method; of methods with other cells the nearest."""
    lines = []
    for center in curves[0].x.tolist():
        line: dict[str, CellValue] = {axis.name: Cell(center, display=axis.format(center))}
        for curve in curves:
            nearest = int(np.argmin(np.abs(curve.x - center)))
            line[curve.method.title] = percent(float(curve.mean[nearest]))
        lines.append(line)
    return ResultTable.of(lines)
