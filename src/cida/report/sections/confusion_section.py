"""Confusion along u: in each cell, what the rows of each class are predicted as."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from cida.report.blocks import Section, render_details, render_note
from cida.report.build import MethodView, TaskView
from cida.report.charts import Chart, facet
from cida.report.ticks import (
    axis_name,
    first_index_column,
    format_edges,
    format_number,
    index_formatter,
)
from cida.runs.result_table import Cell, CellValue, ResultTable
from cida.runs.snapshot import Snapshot
from cida.spaces import Periodic

__all__ = ["build_confusion_section"]

Array = np.ndarray[Any, Any]

MAX_CONFUSION_CELLS = 8  # at most
MEAN_ROWS_PER_CELL = 30  # of a cell on average, where there are that many
MATRIX_SIDE_UNITS = 88.0  # of a matrix
MAX_CLASSES_WITH_NUMBERS = 4  # classes, of which each share can be written out
MAX_CONFUSION_CLASSES = 20
MIN_LABELLED_ROWS = 20  # of which a truth is known, in all
LABEL_MARGIN_UNITS = 42.0
MAX_MATRIX_PIXELS = 230  # pixels of a matrix, where there are few
NUMBER_CSS_CLASSES = {
    1: " large",
    2: " large",
    3: "",
}  # how they are written, by how many classes there are


@dataclass(frozen=True)
class _ConfusionCell:
    """The rows between ``lo`` and ``hi``: ``counts[truth, predicted]``."""

    lo: float
    hi: float
    counts: Array

    @property
    def shares(self) -> Array:
        """Of each true class, the share predicted as each; NaN where it has no row."""
        rows = self.counts.sum(1, keepdims=True)
        return np.where(rows > 0, self.counts / np.maximum(rows, 1), np.nan)


def build_confusion_section(task: TaskView, level: int) -> Section | None:
    """A strip of small matrices a method; nothing where there are no classes or no known truth."""
    cells_by_method = {m.key: _cells(m) for m in task.methods}
    methods = [method for method in task.methods if cells_by_method[method.key]]
    snapshot = task.snapshot
    if not methods or snapshot is None or snapshot.classes is None:
        return None
    classes = snapshot.classes
    format_edge = _edge_formatter(
        [cell for m in methods for cell in cells_by_method[m.key]], snapshot
    )
    strips = {
        m.key: [_matrix(cell, classes, format_edge) for cell in cells_by_method[m.key]]
        for m in methods
    }
    parts = {m.key: _strip(m, strips[m.key], cells_by_method[m.key], level) for m in methods}
    main = task.main_method if task.main_method in methods else methods[0]
    rest = "".join(parts[m.key] for m in methods if m is not main)
    name = axis_name(snapshot)
    seeds = max(len(m.snapshots) for m in methods)
    html = render_note(
        f"Rows of a matrix are true classes, columns are predictions, both in the order "
        f"{', '.join(classes)}; the stronger the colour, the larger the share of the "
        "true class. On the diagonal is what is right. From the rows that are kept with the runs"
        + (f", {seeds} seeds together." if seeds > 1 else ".")
    )
    html += parts[main.key]
    html += render_details(task.others_label(len(methods) - 1), rest)
    rows = [
        (m.title, facet([("", c) for c in strips[m.key]], MAX_CONFUSION_CELLS, m.title))
        for m in methods
    ]
    facet_chart = facet(rows, 1, f"confusion along {name}")
    table = ResultTable.of(
        line
        for m in methods
        for line in _confusion_lines(m, cells_by_method[m.key], snapshot, format_edge)
    )
    return Section(
        f"Confusion along {name}", html, {"confusion": facet_chart}, {"confusion": table}
    )


def _cells(method: MethodView) -> list[_ConfusionCell]:
    """Up to eight cells along the first index column, with the rows of all seeds.

    They cover the rows whose truth is known, and end at the last of them before a gap.
    """
    snapshots = [view for view in method.snapshots if view.classes is not None]
    if not snapshots or len(snapshots[0].classes or ()) > MAX_CONFUSION_CLASSES:
        return []
    n_classes = len(snapshots[0].classes or ())
    matching_snapshots = [view for view in snapshots if len(view.classes or ()) == n_classes]
    u = np.concatenate([first_index_column(view) for view in matching_snapshots])
    truth = np.concatenate([view.truth for view in matching_snapshots])
    predicted = np.concatenate([view.predicted.argmax(1) for view in matching_snapshots])
    is_labelled = np.isfinite(truth)
    if is_labelled.sum() < MIN_LABELLED_ROWS:
        return []
    u, truth, predicted = u[is_labelled], truth[is_labelled].astype(int), predicted[is_labelled]
    edges = _edges(u, snapshots[0])
    cell_numbers = np.clip(np.digitize(u, edges) - 1, 0, len(edges) - 2)
    is_occupied = np.bincount(cell_numbers, minlength=len(edges) - 1) > 0
    circle = isinstance(snapshots[0].space.column_spaces[0], Periodic)
    # A circle goes on at its start; the ends of a line are rows already.
    occupied_around = (
        [is_occupied[-1], *is_occupied, is_occupied[0]] if circle else [True, *is_occupied, True]
    )
    cells = []
    for number in np.flatnonzero(is_occupied):
        rows = cell_numbers == number
        lo = edges[number] if occupied_around[number] else u[rows].min()
        hi = edges[number + 1] if occupied_around[number + 2] else u[rows].max()
        counts = np.zeros((n_classes, n_classes))
        np.add.at(counts, (truth[rows], predicted[rows]), 1)
        cells.append(_ConfusionCell(float(lo), float(hi), counts))
    return cells


def _edges(u: Array, snapshot: Snapshot) -> Array:
    """Of even cells; on a circle they go all round."""
    first = snapshot.space.column_spaces[0]
    if isinstance(first, Periodic):
        return np.linspace(0, first.period, MAX_CONFUSION_CELLS + 1)
    low, high = float(u.min()), float(u.max())
    values = np.unique(u)
    if len(values) <= MAX_CONFUSION_CELLS:  # each value of u is a cell of its own
        middles = (values[1:] + values[:-1]) / 2
        return np.concatenate([[low], middles, [high]])
    count = min(MAX_CONFUSION_CELLS, max(2, len(u) // MEAN_ROWS_PER_CELL))
    return np.linspace(low, high, count + 1)


def _edge_formatter(cells: Sequence[_ConfusionCell], snapshot: Snapshot) -> Callable[[float], str]:
    """How the edges of all these cells are written."""
    formatter = index_formatter(snapshot)
    if formatter is not format_number:
        return formatter
    return format_edges([edge for cell in cells for edge in (cell.lo, cell.hi)]).__getitem__


def _matrix(
    cell: _ConfusionCell, classes: tuple[str, ...], format_edge: Callable[[float], str]
) -> Chart:
    n_classes = len(classes)
    size = MATRIX_SIDE_UNITS / n_classes
    parts = [
        f'<rect class="empty" x="{LABEL_MARGIN_UNITS:g}" y="0" width="{MATRIX_SIDE_UNITS:g}" '
        f'height="{MATRIX_SIDE_UNITS:g}"/>'
    ]
    shares = cell.shares
    for (row, column), share in np.ndenumerate(shares):
        x, y = LABEL_MARGIN_UNITS + column * size, row * size
        if share > 0.005:
            parts.append(
                f'<rect class="share" opacity="{share:.2f}" x="{x:.1f}" y="{y:.1f}" '
                f'width="{size:.1f}" height="{size:.1f}"/>'
            )
        if n_classes <= MAX_CLASSES_WITH_NUMBERS and np.isfinite(share):
            kind = f"{'on' if share > 0.5 else 'off'}{NUMBER_CSS_CLASSES.get(n_classes, ' small')}"
            place = f'x="{x + size / 2:.1f}" y="{y + size / 2 + (5 if n_classes < 3 else 4):.1f}"'
            parts.append(f'<text class="mid {kind}" {place}>{100 * share:.0f}</text>')
    for row, name in enumerate(classes):
        if n_classes <= 10:
            short = name if len(name) < 6 else f"{name[:5]}…"
            y = (row + 0.5) * size + 3
            kind = "end small" if n_classes > 4 or len(name) > 5 else "end"
            parts.append(
                f'<text class="{kind}" x="{LABEL_MARGIN_UNITS - 4:g}" '
                f'y="{y:.1f}">{escape(short)}</text>'
            )
    middle = LABEL_MARGIN_UNITS + MATRIX_SIDE_UNITS / 2
    lo, hi = format_edge(cell.lo), format_edge(cell.hi)
    span = f"{lo} to {hi}" if lo != hi else lo
    rows = int(cell.counts.sum())
    parts.append(
        f'<text class="mid strong" x="{middle:g}" '
        f'y="{MATRIX_SIDE_UNITS + 14:g}">{escape(span)}</text>'
    )
    parts.append(
        f'<text class="mid small" x="{middle:g}" y="{MATRIX_SIDE_UNITS + 26:g}">{rows:,} '
        "rows</text>"
    )
    return Chart(
        LABEL_MARGIN_UNITS + MATRIX_SIDE_UNITS + 2,
        MATRIX_SIDE_UNITS + 30,
        _label(cell, classes, span, rows),
        "".join(parts),
    )


def _label(cell: _ConfusionCell, classes: tuple[str, ...], span: str, rows: int) -> str:
    class_recalls = [
        f"{name} {100 * share:.0f} %"
        for name, share in zip(classes, np.diag(cell.shares), strict=True)
        if np.isfinite(share)
    ]
    return f"{span}, {rows:,} rows; right by class: {', '.join(class_recalls)}"


def _strip(method: MethodView, charts: list[Chart], cells: list[_ConfusionCell], level: int) -> str:
    rows = int(sum(cell.counts.sum() for cell in cells))
    accuracy = sum(float(np.trace(cell.counts)) for cell in cells) / max(rows, 1)
    matrices = "".join(chart.to_inline_svg() for chart in charts)
    return (
        f"<figure><h{level}>{escape(method.title)}</h{level}>"
        f"<figcaption>{rows:,} rows, {100 * accuracy:.1f} % of them right</figcaption>"
        "<div class='strip' "
        f"style='max-width:{MAX_MATRIX_PIXELS * len(charts)}px'>{matrices}</div></figure>"
    )


def _confusion_lines(
    method: MethodView,
    cells: list[_ConfusionCell],
    snapshot: Snapshot,
    format_edge: Callable[[float], str],
) -> list[dict[str, CellValue]]:
    """Every count, for a file."""
    name = axis_name(snapshot)
    return [
        {
            "method": method.title,
            f"{name} from": Cell(cell.lo, display=format_edge(cell.lo)),
            f"{name} to": Cell(cell.hi, display=format_edge(cell.hi)),
            "true": snapshot.classes[row],
            **{
                f"as {said}": Cell(float(n), ".0f")
                for said, n in zip(snapshot.classes, cell.counts[row], strict=True)
            },
        }
        for cell in cells
        for row in range(len(snapshot.classes or ()))
        if snapshot.classes is not None
    ]
