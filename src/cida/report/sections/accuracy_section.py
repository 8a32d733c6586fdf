"""Accuracy along u: a line a method, with the band of its seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cida.report.blocks import (
    Section,
    render_details,
    render_figure,
    render_legend,
    render_note,
    render_panels,
    render_scrollable,
)
from cida.report.build import MethodView, TaskView
from cida.report.charts import Band, Chart, Series, facet, line_chart
from cida.report.sections.map_section import build_map_section, format_target_score
from cida.report.tables import render_html
from cida.report.ticks import (
    axis_name,
    first_index_column,
    format_number,
    index_formatter,
    periodic_ticks,
)
from cida.runs.records import RunResult
from cida.runs.result_table import Cell, CellValue, ResultTable, percent
from cida.runs.snapshot import Snapshot

__all__ = ["build_accuracy_section", "find_source_bands"]

Array = np.ndarray[Any, Any]

N_SOURCE_BAND_BINS = 60  # that the index range is cut into, to see where the source is
SCORE_AXIS_FLOORS = (0.0, 0.5, 0.8)  # of an axis of accuracies
MIN_DRAWN_R2 = -1.0  # of R2: a worse one is drawn there
LARGE_CHART_SIZE = (820.0, 360.0)
MAX_BANDED_LINES = 3  # that can be told apart with their bands in one chart


def build_accuracy_section(task: TaskView, level: int) -> Section | None:
    """What each method is worth along u; nothing for runs that were not scored."""
    scored_methods = [method for method in task.methods if method.results]
    if not scored_methods:
        return None
    cells = scored_methods[0].results[0].by_index
    if cells and isinstance(cells[0]["lo"], list):
        return build_map_section(task, level) if len(cells[0]["lo"]) == 2 else None
    return _build_line_section(task, scored_methods, level) if cells else None


# --- an index of one number ----------------------------------------------------------------------


@dataclass(frozen=True)
class _ScoreCurve:
    """The scores of a method: where, their mean over seeds, the worst and the best."""

    x: list[float]
    mean: list[float]
    worst: list[float]
    best: list[float]
    n_seeds: int


def _build_line_section(
    task: TaskView, scored_methods: Sequence[MethodView], level: int
) -> Section:
    snapshot, metric_name = task.snapshot, _metric_name(task)
    curves = {method.key: _score_curve(method.results) for method in scored_methods}
    cells = [cell for method in scored_methods for row in method.results for cell in row.by_index]
    x_range = (min(cell["lo"] for cell in cells), max(cell["hi"] for cell in cells))
    bands = find_source_bands(snapshot) if snapshot is not None else []
    if bands and snapshot is not None:  # where only the target was scored, the source is beside it
        u = first_index_column(snapshot)
        x_range = (min(x_range[0], float(u.min())), max(x_range[1], float(u.max())))
    x_ticks = periodic_ticks(snapshot, 8)
    if x_ticks:
        x_range = (min(x_range[0], x_ticks[0]), max(x_range[1], x_ticks[-1]))
    min_score = min(min(course.worst) for course in curves.values())
    y_range = (_axis_floor(min_score), 1.0)
    series = [_series(method, curves[method.key]) for method in scored_methods]
    chart_options: dict[str, Any] = {
        "x_name": axis_name(snapshot),
        "y_name": metric_name,
        "y_range": y_range,
        "bands": bands,
        "x_range": x_range,
        "x_words": index_formatter(snapshot),
        "percent": True,
    }
    label = f"{metric_name} against {axis_name(snapshot)}. " + _describe_lines(
        scored_methods, curves
    )
    full_chart = line_chart(
        series, label, size=LARGE_CHART_SIZE, show_names=True, x_ticks=x_ticks, **chart_options
    )
    seeds = max(course.n_seeds for course in curves.values())
    note = "" if seeds == 1 else f" Bands run from the worst to the best of {seeds} seeds."
    source_note = " The source is shaded." if bands else ""
    html = render_note(f"The mean in each cell along {axis_name(snapshot)}.{note}{source_note}")
    chart = render_scrollable(
        full_chart.to_inline_svg(), f"{metric_name} against {axis_name(snapshot)}, chart"
    )
    is_crowded = len(scored_methods) > MAX_BANDED_LINES
    kind = (
        "big many" if is_crowded else "big"
    )  # bands of many hide each other: one at a time is shown
    html += (
        "<figure "
        f"class='{kind}'>{render_legend(series, 'Methods, to show or hide')}{chart}</figure>"
    )
    plain_series = [replace(line, spread=None) for line in series] if is_crowded else series
    figures = {
        "accuracy": line_chart(
            plain_series,
            label,
            size=LARGE_CHART_SIZE,
            show_names=True,
            x_ticks=x_ticks,
            **chart_options,
        )
    }
    if is_crowded:
        panels = [
            (m, _panel(m, curves[m.key], scored_methods[0], curves, chart_options))
            for m in scored_methods
        ]
        panel_figures = [
            render_figure(c, m.title, format_target_score(m), level) for m, c in panels
        ]
        html += render_details("One method at a time", render_panels(panel_figures), is_open=True)
        titled_charts = [(m.title, c) for m, c in panels]
        figures["accuracy-by-method"] = facet(titled_charts, 3, f"{metric_name} of each method")
    table_rows = _score_rows(scored_methods, curves, index_formatter(snapshot), axis_name(snapshot))
    html += render_details(
        "The same as a table",
        render_html(table_rows, f"{metric_name} in % along {axis_name(snapshot)}"),
    )
    return Section(
        f"{metric_name.capitalize()} along {axis_name(snapshot)}",
        html,
        figures,
        {"accuracy": table_rows},
    )


def _axis_floor(min_score: float) -> float:
    """Where the axis begins: at 0, unless all lines are high above it or one is below."""
    if min_score < 0:
        return max(MIN_DRAWN_R2, min_score)
    return max((floor for floor in SCORE_AXIS_FLOORS if floor <= min_score - 0.02), default=0.0)


def _metric_name(task: TaskView) -> str:
    return "R²" if task.is_regression else "accuracy"


def _score_curve(results: Sequence[RunResult]) -> _ScoreCurve:
    first = results[0].by_index
    centers = np.array([(cell["lo"] + cell["hi"]) / 2 for cell in first], dtype=float)
    scores = []
    for row in results:
        own_centers = np.array(
            [(cell["lo"] + cell["hi"]) / 2 for cell in row.by_index], dtype=float
        )
        own_scores = np.array([cell["score"] for cell in row.by_index], dtype=float)
        scores.append(
            own_scores
            if len(own_scores) == len(centers)
            else np.interp(centers, own_centers, own_scores)
        )
    score_matrix = np.array(scores)
    mean, worst, best = score_matrix.mean(0), score_matrix.min(0), score_matrix.max(0)
    return _ScoreCurve(centers.tolist(), mean.tolist(), worst.tolist(), best.tolist(), len(results))


def _series(method: MethodView, curve: _ScoreCurve) -> Series:
    spread = (curve.worst, curve.best) if curve.n_seeds > 1 else None
    return Series(method.title, curve.x, curve.mean, method.style, spread, key=method.key)


def _panel(
    method: MethodView,
    curve: _ScoreCurve,
    baseline: MethodView,
    curves: dict[str, _ScoreCurve],
    chart_options: dict[str, Any],
) -> Chart:
    """A method alone, above the first one's line for comparison."""
    baseline_curve = curves[baseline.key]
    series = [
        Series(baseline.title, baseline_curve.x, baseline_curve.mean, f"{baseline.style} faint")
    ]
    spread = (curve.worst, curve.best) if curve.n_seeds > 1 else None
    if method is not baseline:
        series.append(Series(method.title, curve.x, curve.mean, method.style, spread))
    else:
        series = [Series(method.title, curve.x, curve.mean, method.style, spread)]
    label = _describe_lines([method], curves)
    x_ticks = periodic_ticks(method.snapshots[0] if method.snapshots else None, 4)
    return line_chart(
        series, label, size=(300, 180), x_ticks=x_ticks, **{**chart_options, "y_name": ""}
    )


def _describe_lines(methods: Sequence[MethodView], curves: dict[str, _ScoreCurve]) -> str:
    """The lines for who does not see them."""
    sentences = []
    for method in methods:
        mean = curves[method.key].mean
        low = int(np.argmin(mean))
        sentences.append(
            f"{method.title}: from {100 * mean[0]:.0f} % to {100 * mean[-1]:.0f} %, the least "
            f"{100 * mean[low]:.0f} % at {format_number(curves[method.key].x[low])}"
        )
    return "; ".join(sentences) + "."


def _score_rows(
    methods: Sequence[MethodView],
    curves: dict[str, _ScoreCurve],
    format_index: Any,
    index_name: str,
) -> ResultTable:
    """A row for each cell, a column a method; of methods with other cells the nearest."""
    centers = curves[methods[0].key].x
    lines = []
    for center in centers:
        line: dict[str, CellValue] = {index_name: Cell(center, display=format_index(center))}
        for method in methods:
            curve = curves[method.key]
            nearest = int(np.argmin(np.abs(np.array(curve.x) - center)))
            line[method.title] = percent(curve.mean[nearest])
        lines.append(line)
    return ResultTable.of(lines)


# --- where the source is -------------------------------------------------------------------------


def find_source_bands(snapshot: Snapshot) -> list[Band]:
    """The stretches along the first index column where most rows are the source's.

    On a circle the source may lie on both sides of the seam: then there are two. Where u has a few
    values alone, each stands for its surroundings.
    """
    u, source = first_index_column(snapshot), snapshot.source
    values = np.unique(u)
    if not source.any() or source.all() or len(values) < 2:
        return []
    is_discrete = len(values) <= N_SOURCE_BAND_BINS
    half_step = float(np.median(np.diff(values))) / 2 if is_discrete else 0.0
    edges = (
        values if is_discrete else np.linspace(values[0], values[-1], N_SOURCE_BAND_BINS + 1)[:-1]
    )
    bins = np.searchsorted(edges, u, side="right") - 1
    bands: list[Band] = []
    source_values: list[Array] = []
    for number in range(len(edges) + 1):
        rows = bins == number
        if rows.any() and source[rows].mean() > 0.5:
            source_values.append(u[rows & source])
        elif source_values and (
            rows.any() or number == len(edges)
        ):  # where there is no row nothing ends
            band_values = np.concatenate(source_values)
            low = max(float(band_values.min()) - half_step, float(values[0]))
            bands.append(
                Band(low, min(float(band_values.max()) + half_step, float(values[-1])), "source")
            )
            source_values = []
    return bands
