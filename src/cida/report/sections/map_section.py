"""How right each method is where u is a place: maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cida.report.blocks import Html, Panel, Section, facet_panels
from cida.report.build import MethodView, TaskView
from cida.report.charts import Array, Chart, element, text_element
from cida.report.index_axis import index_axis, predicted_values
from cida.report.theme import index_color
from cida.report.ticks import format_number
from cida.runs.snapshot import Snapshot

CELLS_PER_MAP_SIDE = 10  # cells of a map along each index column
MIN_ROWS_PER_MAP_CELL = 3
CELL_UNITS, LEFT_UNITS = 22, 40


def build_map_section(task: TaskView) -> Section | None:
    """A map a method: the share that is right, or how far off numbers are."""
    methods = [method for method in task.methods if method.snapshots]
    snapshot = task.snapshot
    if snapshot is None:
        return None
    grids = {m.key: _score_grid(m.snapshots, snapshot) for m in methods}
    metric, ends, max_score = "share that is right", ("0 %", "100 %"), 1.0
    if task.is_regression:
        max_score = max(float(np.nanmax(grid)) for grid in grids.values()) or 1.0
        metric, ends = "mean distance from the truth", ("0", format_number(max_score))
    panels = [
        Panel(m.title, _heatmap(m, grids[m.key], snapshot, max_score), m.target_score_text)
        for m in methods
    ]
    n_rows = sum(len(view.u) for view in methods[0].snapshots)
    maps = Html("maps", metric=metric, rows=n_rows, low=ends[0], high=ends[1], panels=panels)
    title = f"Accuracy along {' and '.join(snapshot.index_names)}"
    return Section(title, [maps], {"accuracy": facet_panels(panels, f"{metric}, on a map")})


def _cell_sums(u: Array, ranges: Snapshot, values: Array | float = 1.0) -> Array:
    """The sum of the values in each cell."""
    low, high = ranges.u.min(0), ranges.u.max(0)
    shares = (u - low) / np.maximum(high - low, 1e-12)
    cells = np.clip((shares * CELLS_PER_MAP_SIDE).astype(int), 0, CELLS_PER_MAP_SIDE - 1)
    sums = np.zeros((CELLS_PER_MAP_SIDE, CELLS_PER_MAP_SIDE))
    np.add.at(sums, tuple(cells.T), values)
    return sums


def _score_grid(snapshots: Sequence[Snapshot], ranges: Snapshot) -> Array:
    """The mean score in each cell of the rows whose truth is known."""
    total = count = np.zeros((CELLS_PER_MAP_SIDE, CELLS_PER_MAP_SIDE))
    for snapshot in snapshots:
        is_labelled = np.isfinite(snapshot.truth)
        predicted, truth = predicted_values(snapshot)[is_labelled], snapshot.truth[is_labelled]
        scores = np.abs(predicted - truth) if snapshot.classes is None else predicted == truth
        total = total + _cell_sums(snapshot.u[is_labelled], ranges, scores)
        count = count + _cell_sums(snapshot.u[is_labelled], ranges)
    return np.where(count >= MIN_ROWS_PER_MAP_CELL, total / np.maximum(count, 1), np.nan)


def _heatmap(method: MethodView, grid: Array, snapshot: Snapshot, max_score: float) -> Chart:
    def cell(a: int, b: int, css_class: str = "", **fill: str) -> str:
        x, y = LEFT_UNITS + CELL_UNITS * a, CELL_UNITS * (CELLS_PER_MAP_SIDE - 1 - b)
        side = CELL_UNITS - 1
        return element("rect", css_class, x=x, y=y, width=side, height=side, **fill)

    parts = [
        cell(a, b, fill=index_color(float(score) / max_score))
        if np.isfinite(score)
        else cell(a, b, "empty")
        for (a, b), score in np.ndenumerate(grid)
    ]
    n_rows = _cell_sums(snapshot.u, snapshot)
    is_source = _cell_sums(snapshot.u, snapshot, snapshot.source) > 0.5 * np.maximum(n_rows, 1)
    parts += [cell(a, b, "frame") for a, b in np.argwhere(is_source).tolist()]
    floor = CELL_UNITS * CELLS_PER_MAP_SIDE
    low, high = snapshot.u.min(0), snapshot.u.max(0)
    across, up = (index_axis(snapshot, k).format for k in (0, 1))
    for corner, x, y, anchor in ((low, 0, floor, ""), (high, floor, 10, "end")):
        parts.append(text_element(across(corner[0]), LEFT_UNITS + x, floor + 14, anchor))
        parts.append(text_element(up(corner[1]), LEFT_UNITS - 5, y, "end"))
    label = f"{method.title}: on a map of {' and '.join(snapshot.index_names)}"
    scores = grid[np.isfinite(grid)]
    if len(scores):
        label += f", cells from {scores.min():.2f} to {scores.max():.2f}"
    return Chart(LEFT_UNITS + floor, floor + 20, label, "".join(parts))
