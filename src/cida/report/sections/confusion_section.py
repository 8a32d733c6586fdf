"""Confusion along u: in each cell, what the rows of each class are predicted as."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cida.report.blocks import Html, Section
from cida.report.build import MethodView, ReportView, TaskView
from cida.report.charts import Array, Chart, element, facet, text_element
from cida.report.index_axis import index_axis, index_period, index_values
from cida.report.ticks import format_edges, format_number
from cida.runs.result_table import Cell, CellValue, ResultTable

MAX_CONFUSION_CELLS = 8
MEAN_ROWS_PER_CELL = 30  # of a cell on average, where there are that many
MAX_CONFUSION_CLASSES = 20
MIN_LABELLED_ROWS = 20  # of which a truth is known, in all
SIDE_UNITS, MARGIN_UNITS = 88.0, 42.0  # of a matrix, and of the names beside it
NUMBER_STYLES = {1: " large", 2: " large", 3: "", 4: " small"}  # by classes; of more, no numbers


@dataclass(frozen=True)
class _ConfusionCell:
    """The rows between ``lo`` and ``hi``: ``counts[truth, predicted]``."""

    lo: float
    hi: float
    counts: Array

    @property
    def n_rows(self) -> int:
        return int(self.counts.sum())

    @property
    def shares(self) -> Array:
        """Of each true class, the share predicted as each; NaN where it has no row."""
        rows = self.counts.sum(1, keepdims=True)
        return np.where(rows > 0, self.counts / np.maximum(rows, 1), np.nan)


def build_confusion_section(report: ReportView, task: TaskView) -> Section | None:
    """A strip of small matrices a method; nothing where there are no classes or no known truth."""
    cells_by_key = {m.key: cells for m in task.methods if (cells := _cells(m))}
    methods = [method for method in task.methods if method.key in cells_by_key]
    if not methods or task.snapshot is None or task.snapshot.classes is None:
        return None
    classes, axis = task.snapshot.classes, index_axis(task.snapshot)
    format_edge = axis.format
    if format_edge is format_number:
        edges = [edge for cells in cells_by_key.values() for c in cells for edge in (c.lo, c.hi)]
        format_edge = format_edges(edges).__getitem__
    strips: dict[str, dict[str, Any]] = {}
    lines: list[dict[str, CellValue]] = []
    for method in methods:
        cells = cells_by_key[method.key]
        rows = sum(cell.n_rows for cell in cells)
        accuracy = sum(float(np.trace(cell.counts)) for cell in cells) / max(rows, 1)
        strips[method.key] = {
            "title": method.title,
            "caption": f"{rows:,} rows, {100 * accuracy:.1f} % of them right",
            "charts": [_matrix(cell, classes, format_edge) for cell in cells],
        }
        for cell in cells:  # every count, for a file
            lo, hi = (Cell(edge, display=format_edge(edge)) for edge in (cell.lo, cell.hi))
            for name, counts in zip(classes, cell.counts.tolist(), strict=True):
                line: dict[str, CellValue] = {"method": method.title, f"{axis.name} from": lo}
                line |= {f"{axis.name} to": hi, "true": name}
                line |= {f"as {k}": Cell(n, ".0f") for k, n in zip(classes, counts, strict=True)}
                lines.append(line)
    charts = []
    for strip in strips.values():
        matrices = [("", chart) for chart in strip["charts"]]
        charts.append((strip["title"], facet(matrices, MAX_CONFUSION_CELLS, strip["title"])))
    seeds = max(len(m.snapshots) for m in methods)
    block = Html("confusion", task=task, classes=classes, seeds=seeds, strips=strips)
    figures = {"confusion": facet(charts, 1, f"confusion along {axis.name}")}
    tables = {"confusion": ResultTable.of(lines)}
    return Section(f"Confusion along {axis.name}", [block], figures, tables)


def _cells(method: MethodView) -> list[_ConfusionCell]:
    """Up to eight cells along the first index column, with the rows of all seeds.

    They cover the rows whose truth is known, and end at the last of them before a gap.
    """
    classified = [view for view in method.snapshots if view.classes is not None]
    n_classes = len(classified[0].classes or ()) if classified else 0
    if not 0 < n_classes <= MAX_CONFUSION_CLASSES:
        return []
    snapshots = [view for view in classified if len(view.classes or ()) == n_classes]
    truth = np.concatenate([view.truth for view in snapshots])
    is_labelled = np.isfinite(truth)
    if is_labelled.sum() < MIN_LABELLED_ROWS:
        return []
    u = np.concatenate([index_values(view) for view in snapshots])[is_labelled]
    predicted = np.concatenate([view.predicted.argmax(1) for view in snapshots])[is_labelled]
    period = index_period(snapshots[0])
    edges = _edges(u, period)
    numbers = np.clip(np.digitize(u, edges) - 1, 0, len(edges) - 2)
    counts = np.zeros((len(edges) - 1, n_classes, n_classes))
    np.add.at(counts, (numbers, truth[is_labelled].astype(int), predicted), 1)
    is_occupied = counts.any((1, 2))
    # A circle goes on at its start; the ends of a line are rows already.
    around = np.pad(is_occupied, 1, "wrap") if period else np.pad(is_occupied, 1, constant_values=1)
    cells = []
    for k in np.flatnonzero(is_occupied):
        lo = edges[k] if around[k] else u[numbers == k].min()
        hi = edges[k + 1] if around[k + 2] else u[numbers == k].max()
        cells.append(_ConfusionCell(float(lo), float(hi), counts[k]))
    return cells


def _edges(u: Array, period: float) -> Array:
    """Of even cells; on a circle they go all round."""
    if period:
        return np.linspace(0, period, MAX_CONFUSION_CELLS + 1)
    values = np.unique(u)
    if len(values) <= MAX_CONFUSION_CELLS:  # each value of u is a cell of its own
        return np.concatenate([values[:1], (values[1:] + values[:-1]) / 2, values[-1:]])
    count = min(MAX_CONFUSION_CELLS, max(2, len(u) // MEAN_ROWS_PER_CELL))
    return np.linspace(values[0], values[-1], count + 1)


def _matrix(
    cell: _ConfusionCell, classes: tuple[str, ...], format_edge: Callable[[float], str]
) -> Chart:
    n_classes, size = len(classes), SIDE_UNITS / len(classes)
    whole = {"x": MARGIN_UNITS, "y": 0.0, "width": SIDE_UNITS, "height": SIDE_UNITS}
    parts = [element("rect", "empty", **whole)]
    for (row, column), share in np.ndenumerate(cell.shares):
        x, y = MARGIN_UNITS + column * size, row * size
        if share > 0.005:
            place = {"x": x, "y": y, "width": size, "height": size}
            parts.append(element("rect", "share", opacity=f"{share:.2f}", **place))
        if n_classes in NUMBER_STYLES and np.isfinite(share):
            style = f"mid {'on' if share > 0.5 else 'off'}{NUMBER_STYLES[n_classes]}"
            baseline = y + size / 2 + (5 if n_classes < 3 else 4)
            parts.append(text_element(f"{100 * share:.0f}", x + size / 2, baseline, style))
    for row, name in enumerate(classes if n_classes <= 10 else ()):
        short = name if len(name) < 6 else f"{name[:5]}…"
        style = "end small" if n_classes > 4 or len(name) > 5 else "end"
        parts.append(text_element(short, MARGIN_UNITS - 4, (row + 0.5) * size + 3, style))
    lo, hi = format_edge(cell.lo), format_edge(cell.hi)
    span, rows = f"{lo} to {hi}" if lo != hi else lo, f"{cell.n_rows:,} rows"
    middle = MARGIN_UNITS + SIDE_UNITS / 2
    parts.append(text_element(span, middle, SIDE_UNITS + 14, "mid strong"))
    parts.append(text_element(rows, middle, SIDE_UNITS + 26, "mid small"))
    recalls = [
        f"{name} {100 * share:.0f} %"
        for name, share in zip(classes, np.diag(cell.shares), strict=True)
        if np.isfinite(share)
    ]
    label = f"{span}, {rows}; right by class: {', '.join(recalls)}"
    return Chart(MARGIN_UNITS + SIDE_UNITS + 2, SIDE_UNITS + 30, label, "".join(parts))
