"""Where the rows of a user's own table are along the index, and what is predicted of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cida.report.blocks import Section, panel_size, render_figure, render_legend, render_panels
from cida.report.build import MethodView, TaskView
from cida.report.charts import Chart, Series, facet, line_chart
from cida.report.sections.accuracy_section import find_source_bands
from cida.report.ticks import axis_name, first_index_column, index_formatter
from cida.runs.snapshot import Snapshot

__all__ = ["build_predictions_section"]

Array = np.ndarray[Any, Any]

N_PREDICTION_CELLS = 30
MAX_CLASS_LINES = 6  # lines that can be told apart
MIN_ROWS_PER_LINE_POINT = 5  # of a cell: fewer say nothing


def build_predictions_section(task: TaskView, level: int) -> Section | None:
    """Rows along the index, and the means of what each method predicts there."""
    method_snapshots = [(m, m.snapshots[0]) for m in task.methods if m.snapshots]
    if not method_snapshots:
        return None
    first_snapshot = method_snapshots[0][1]
    size = panel_size(1 + len(method_snapshots))
    rows, key = _rows_chart(first_snapshot, size)
    panels = [
        render_figure(
            rows, "Where the rows are", "each point is one cell", level, render_legend(key)
        )
    ]
    charts = [("Where the rows are", rows)]
    for method, snapshot in method_snapshots:
        chart_and_lines = _predicted_chart(method, snapshot, size)
        if chart_and_lines is not None:
            chart, lines = chart_and_lines
            title = "What is predicted" + (
                f" by {method.title}" if len(method_snapshots) > 1 else ""
            )
            caption = "means over the rows of a cell, labelled or not"
            panels.append(render_figure(chart, title, caption, level, render_legend(lines)))
            charts.append((title, chart))
    facet_chart = facet(charts, 2, "rows and predictions along the index")
    return Section(
        f"Along {axis_name(first_snapshot)}",
        render_panels(panels, is_wide=True),
        {"predictions": facet_chart},
    )


def _edges(u: Array) -> Array:
    low, high = float(u.min()), float(u.max())
    return np.linspace(low, high if high > low else low + 1, N_PREDICTION_CELLS + 1)


def _rows_chart(snapshot: Snapshot, size: tuple[float, float]) -> tuple[Chart, list[Series]]:
    u = first_index_column(snapshot)
    edges = _edges(u)
    middle = ((edges[1:] + edges[:-1]) / 2).tolist()
    series = []
    for name, rows, style in (
        ("source", snapshot.source, "s3"),
        ("target", ~snapshot.source, "s0"),
    ):
        share = np.histogram(u[rows], edges)[0] / len(u)
        series.append(Series(name, middle, share.tolist(), style))
    max_share = max(max(line.y) for line in series) or 1.0
    label = (
        f"rows along {axis_name(snapshot)}: {int(snapshot.source.sum()):,} of the source, "
        f"{int((~snapshot.source).sum()):,} of the target are shown"
    )
    ends = (float(edges[0]), float(edges[-1]))
    chart = line_chart(
        series,
        label,
        axis_name(snapshot),
        "share of the rows",
        (0, max_share),
        (),
        ends,
        size,
        index_formatter(snapshot),
        percent=True,
    )
    return chart, series


def _predicted_chart(
    method: MethodView, snapshot: Snapshot, size: tuple[float, float]
) -> tuple[Chart, list[Series]] | None:
    u = first_index_column(snapshot)
    edges = _edges(u)
    cell_numbers = np.clip(np.digitize(u, edges) - 1, 0, N_PREDICTION_CELLS - 1)
    dense_cells = [
        k for k in range(N_PREDICTION_CELLS) if (cell_numbers == k).sum() >= MIN_ROWS_PER_LINE_POINT
    ]
    if not dense_cells:
        return None
    middle = [float(edges[k] + edges[k + 1]) / 2 for k in dense_cells]
    means = np.array([snapshot.predicted[cell_numbers == k].mean(0) for k in dense_cells])
    names = snapshot.classes or ("prediction",)
    largest = np.argsort(-means.mean(0), kind="stable")[:MAX_CLASS_LINES]
    series = [
        Series(names[k], middle, means[:, k].tolist(), f"s{number}")
        for number, k in enumerate(sorted(largest.tolist()), 1)
    ]
    is_classification = snapshot.classes is not None
    descriptions = [f"{line.name} from {line.y[0]:.2f} to {line.y[-1]:.2f}" for line in series]
    chart = line_chart(
        series,
        f"{method.title}: mean predictions along {axis_name(snapshot)}; {'; '.join(descriptions)}",
        axis_name(snapshot),
        "mean probability" if is_classification else "mean prediction",
        (0.0, 1.0) if is_classification else _pad_range(means),
        find_source_bands(snapshot),
        (float(edges[0]), float(edges[-1])),
        size,
        index_formatter(snapshot),
        percent=is_classification,
    )
    return chart, series


def _pad_range(values: Array) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = 0.08 * (high - low) or 1.0
    return low - margin, high + margin
