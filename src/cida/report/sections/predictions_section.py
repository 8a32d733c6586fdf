"""Where the rows of a user's own table are along the index, and what is predicted of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cida.report.blocks import Html, Panel, Section, facet_panels, panel_size
from cida.report.build import MethodView, ReportView, TaskView
from cida.report.charts import Array, IndexAxis, Series, line_chart, pad_range
from cida.report.index_axis import index_axis, index_values
from cida.runs.snapshot import Snapshot

N_PREDICTION_CELLS = 30
MAX_CLASS_LINES = 6  # lines that can be told apart
MIN_ROWS_PER_LINE_POINT = 5  # of a cell: fewer say nothing


def build_predictions_section(report: ReportView, task: TaskView) -> Section | None:
    """Rows along the index, and the means of what each method predicts there."""
    methods = [m for m in task.methods if m.snapshots]
    if not methods or not task.is_user_table:
        return None
    size = panel_size(1 + len(methods))
    panels = [_rows_panel(methods[0].snapshots[0], size)]
    for method in methods:
        title = "What is predicted" + (f" by {method.title}" if len(methods) > 1 else "")
        panel = _predicted_panel(method, title, size)
        panels += [panel] if panel is not None else []
    files = {"predictions": facet_panels(panels, "rows and predictions along the index", columns=2)}
    title = f"Along {methods[0].snapshots[0].index_names[0]}"
    return Section(title, [Html("predictions", panels=panels)], files)


def _axis_and_edges(snapshot: Snapshot) -> tuple[IndexAxis, Array]:
    axis = index_axis(snapshot)
    low, high = axis.ends or (0.0, 1.0)
    edges = np.linspace(low, high if high > low else low + 1, N_PREDICTION_CELLS + 1)
    return replace(axis, ends=(float(edges[0]), float(edges[-1]))), edges


def _rows_panel(snapshot: Snapshot, size: tuple[float, float]) -> Panel:
    axis, edges = _axis_and_edges(snapshot)
    u, middle = index_values(snapshot), ((edges[1:] + edges[:-1]) / 2).tolist()
    series = [
        Series(name, middle, (np.histogram(u[rows], edges)[0] / len(u)).tolist(), style)
        for name, rows, style in (
            ("source", snapshot.source, "s3"),
            ("target", ~snapshot.source, "s0"),
        )
    ]
    n_source = int(snapshot.source.sum())
    label = (
        f"rows along {axis.name}: {n_source:,} of the source, {len(u) - n_source:,} of the target "
        "are shown"
    )
    y_range = (0, max(max(line.y) for line in series) or 1.0)
    axis = replace(axis, bands=())
    chart = line_chart(series, label, axis, "share of the rows", y_range, size, percent=True)
    return Panel("Where the rows are", chart, "each point is one cell", series)


def _predicted_panel(method: MethodView, title: str, size: tuple[float, float]) -> Panel | None:
    snapshot = method.snapshots[0]
    axis, edges = _axis_and_edges(snapshot)
    cells = np.clip(np.digitize(index_values(snapshot), edges) - 1, 0, N_PREDICTION_CELLS - 1)
    counts = np.bincount(cells, minlength=N_PREDICTION_CELLS)
    dense_cells = np.flatnonzero(counts >= MIN_ROWS_PER_LINE_POINT)
    if not len(dense_cells):
        return None
    middle = [float(edges[k] + edges[k + 1]) / 2 for k in dense_cells]
    means = np.array([snapshot.predicted[cells == k].mean(0) for k in dense_cells])
    names = snapshot.classes or ("prediction",)
    largest = np.argsort(-means.mean(0), kind="stable")[:MAX_CLASS_LINES]
    series = [
        Series(names[k], middle, means[:, k].tolist(), f"s{number}")
        for number, k in enumerate(sorted(largest.tolist()), 1)
    ]
    is_class = snapshot.classes is not None
    lines = "; ".join(f"{line.name} from {line.y[0]:.2f} to {line.y[-1]:.2f}" for line in series)
    label = f"{method.title}: mean predictions along {axis.name}; {lines}"
    y_name = "mean probability" if is_class else "mean prediction"
    y_range = (0.0, 1.0) if is_class else pad_range(means, 0.08)
    chart = line_chart(series, label, axis, y_name, y_range, size, percent=is_class)
    return Panel(title, chart, "means over the rows of a cell, labelled or not", series)
