"""How right each method is where u is a place: maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cida.report.blocks import Section, render_color_ramp, render_figure, render_note, render_panels
from cida.report.build import MethodView, TaskView
from cida.report.charts import Chart, facet
from cida.report.theme import index_color
from cida.report.ticks import format_number, index_formatter
from cida.runs.snapshot import Snapshot

__all__ = ["build_map_section", "format_target_score"]

Array = np.ndarray[Any, Any]

CELLS_PER_MAP_SIDE = 10  # cells of a map along each index column
MIN_ROWS_PER_MAP_CELL = 3  # of a cell


def build_map_section(task: TaskView, level: int) -> Section | None:
    """A map a method: the share that is right, or how far off numbers are."""
    methods = [method for method in task.methods if method.snapshots]
    if not methods or task.snapshot is None:
        return None
    snapshot = task.snapshot
    low, high = snapshot.u.min(0), snapshot.u.max(0)
    scores = {method.key: _score_grid(method.snapshots, low, high) for method in methods}
    max_score = 1.0
    if task.is_regression:
        max_score = max(float(np.nanmax(grid)) for grid in scores.values()) or 1.0
    source = _source_cells(snapshot, low, high)
    panels = [
        (m, _heatmap(m, scores[m.key], source, snapshot, low, high, max_score)) for m in methods
    ]
    metric_name = "mean distance from the truth" if task.is_regression else "share that is right"
    ends = ("0", format_number(max_score)) if task.is_regression else ("0 %", "100 %")
    rows = sum(len(v.u) for v in methods[0].snapshots)
    html = render_note(
        f"The {metric_name} in cells of the map, from {rows:,} rows of each method that are "
        "kept with the "
        "runs; source cells have a green frame, cells with too few rows are grey."
    )
    html += render_color_ramp(*ends) + render_panels(
        [render_figure(c, m.title, format_target_score(m), level) for m, c in panels]
    )
    titled_charts = [(m.title, c) for m, c in panels]
    return Section(
        f"Accuracy along {' and '.join(snapshot.index_names)}",
        html,
        {"accuracy": facet(titled_charts, 3, f"{metric_name}, on a map")},
    )


def _row_scores(snapshot: Snapshot) -> tuple[Array, Array]:
    """Which rows have a known truth, and of each how right it is (a distance in a regression)."""
    is_labelled = np.isfinite(snapshot.truth)
    if snapshot.classes is None:
        return is_labelled, np.abs(snapshot.predicted[:, 0] - snapshot.truth)
    return is_labelled, (snapshot.predicted.argmax(1) == snapshot.truth).astype(float)


def _cell_indices(u: Array, low: Array, high: Array) -> Array:
    shares = (u - low) / np.maximum(high - low, 1e-12)
    indices: Array = np.clip((shares * CELLS_PER_MAP_SIDE).astype(int), 0, CELLS_PER_MAP_SIDE - 1)
    return indices


def _score_grid(snapshots: Sequence[Snapshot], low: Array, high: Array) -> Array:
    total, count = (
        np.zeros((CELLS_PER_MAP_SIDE, CELLS_PER_MAP_SIDE)),
        np.zeros((CELLS_PER_MAP_SIDE, CELLS_PER_MAP_SIDE)),
    )
    for snapshot in snapshots:
        is_labelled, row_scores = _row_scores(snapshot)
        cells = _cell_indices(snapshot.u, low, high)[is_labelled]
        np.add.at(total, tuple(cells.T), row_scores[is_labelled])
        np.add.at(count, tuple(cells.T), 1)
    return np.where(count >= MIN_ROWS_PER_MAP_CELL, total / np.maximum(count, 1), np.nan)


def _source_cells(snapshot: Snapshot, low: Array, high: Array) -> Array:
    cells = _cell_indices(snapshot.u, low, high)
    count, sources = (
        np.zeros((CELLS_PER_MAP_SIDE, CELLS_PER_MAP_SIDE)),
        np.zeros((CELLS_PER_MAP_SIDE, CELLS_PER_MAP_SIDE)),
    )
    np.add.at(count, tuple(cells.T), 1)
    np.add.at(sources, tuple(cells.T), snapshot.source)
    return sources > 0.5 * np.maximum(count, 1)


def _heatmap(
    method: MethodView,
    grid: Array,
    source: Array,
    snapshot: Snapshot,
    low: Array,
    high: Array,
    max_score: float,
) -> Chart:
    left, size = 40, 22
    parts = []
    for (a, b), score in np.ndenumerate(grid):
        x, y = left + size * a, size * (CELLS_PER_MAP_SIDE - 1 - b)
        box = f'x="{x}" y="{y}" width="{size - 1}" height="{size - 1}"'
        empty = not np.isfinite(score)
        fill = 'class="empty"' if empty else f'fill="{index_color(float(score) / max_score)}"'
        parts.append(f"<rect {fill} {box}/>")
    for a, b in np.argwhere(source):
        x, y = left + size * int(a), size * (CELLS_PER_MAP_SIDE - 1 - int(b))
        parts.append(
            f'<rect class="frame" x="{x}" y="{y}" width="{size - 1}" height="{size - 1}"/>'
        )
    floor = size * CELLS_PER_MAP_SIDE
    across, up = index_formatter(snapshot, 0), index_formatter(snapshot, 1)
    for share in (0, 1):
        corner = low + share * (high - low)
        anchor = ("", " end")[share]
        x, y = left + share * floor, floor - share * (floor - 10)
        parts.append(
            f'<text class="{anchor.strip()}" x="{x}" y="{floor + 14}">{across(corner[0])}</text>'
        )
        parts.append(f'<text class="end" x="{left - 5}" y="{y}">{up(corner[1])}</text>')
    scores = grid[np.isfinite(grid)]
    label = f"{method.title}: on a map of {' and '.join(snapshot.index_names)}"
    if len(scores):
        label += f", cells from {scores.min():.2f} to {scores.max():.2f}"
    return Chart(left + floor, floor + 20, label, "".join(parts))


def format_target_score(method: MethodView) -> str:
    """The mean on the target, where it was scored."""
    return "" if method.target_score is None else f"target {100 * method.target_score:.1f} %"
