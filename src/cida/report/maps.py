"""How right each method is where u is a place: maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cida.diagnostics.view import View
from cida.report.chapters import Method, Task
from cida.report.palette import index_colour
from cida.report.parts import Part, charts_of, figure, ramp, soft
from cida.report.svg import Chart, together
from cida.report.ticks import index_words, number_words

__all__ = ["map_along", "target_words"]

Array = np.ndarray[Any, Any]

SIDE = 10  # cells of a map along each index column
FEWEST_ROWS = 3  # of a cell


def map_along(task: Task, level: int) -> Part | None:
    """A map a method: the share that is right, or how far off numbers are."""
    shown = [method for method in task.methods if method.views]
    if not shown or task.view is None:
        return None
    view = task.view
    low, high = view.u.min(0), view.u.max(0)
    scores = {method.key: _grid(method.views, low, high) for method in shown}
    top = 1.0
    if task.regression:
        top = max(float(np.nanmax(grid)) for grid in scores.values()) or 1.0
    source = _source_cells(view, low, high)
    panels = [(m, _heat(m, scores[m.key], source, view, low, high, top)) for m in shown]
    what = "mean distance from the truth" if task.regression else "share that is right"
    ends = ("0", number_words(top)) if task.regression else ("0 %", "100 %")
    rows = sum(len(v.u) for v in shown[0].views)
    html = soft(
        f"The {what} in cells of the map, from {rows:,} rows of each method that are kept with the "
        "runs; source cells have a green frame, cells with too few rows are grey."
    )
    html += ramp(*ends) + charts_of([figure(c, m.title, target_words(m), level) for m, c in panels])
    named = [(m.title, c) for m, c in panels]
    return Part(
        f"Accuracy along {' and '.join(view.index)}",
        html,
        {"accuracy": together(named, 3, f"{what}, on a map")},
    )


def _right(view: View) -> tuple[Array, Array]:
    """Which rows have a known truth, and of each how right it is (a distance in a regression)."""
    known = np.isfinite(view.truth)
    if view.classes is None:
        return known, np.abs(view.predicted[:, 0] - view.truth)
    return known, (view.predicted.argmax(1) == view.truth).astype(float)


def _places(u: Array, low: Array, high: Array) -> Array:
    shares = (u - low) / np.maximum(high - low, 1e-12)
    places: Array = np.clip((shares * SIDE).astype(int), 0, SIDE - 1)
    return places


def _grid(views: Sequence[View], low: Array, high: Array) -> Array:
    total, count = np.zeros((SIDE, SIDE)), np.zeros((SIDE, SIDE))
    for view in views:
        known, right = _right(view)
        places = _places(view.u, low, high)[known]
        np.add.at(total, tuple(places.T), right[known])
        np.add.at(count, tuple(places.T), 1)
    return np.where(count >= FEWEST_ROWS, total / np.maximum(count, 1), np.nan)


def _source_cells(view: View, low: Array, high: Array) -> Array:
    places = _places(view.u, low, high)
    count, sources = np.zeros((SIDE, SIDE)), np.zeros((SIDE, SIDE))
    np.add.at(count, tuple(places.T), 1)
    np.add.at(sources, tuple(places.T), view.source)
    return sources > 0.5 * np.maximum(count, 1)


def _heat(
    method: Method, grid: Array, source: Array, view: View, low: Array, high: Array, top: float
) -> Chart:
    left, size = 40, 22
    parts = []
    for (a, b), score in np.ndenumerate(grid):
        x, y = left + size * a, size * (SIDE - 1 - b)
        box = f'x="{x}" y="{y}" width="{size - 1}" height="{size - 1}"'
        empty = not np.isfinite(score)
        fill = 'class="empty"' if empty else f'fill="{index_colour(float(score) / top)}"'
        parts.append(f"<rect {fill} {box}/>")
    for a, b in np.argwhere(source):
        x, y = left + size * int(a), size * (SIDE - 1 - int(b))
        parts.append(
            f'<rect class="frame" x="{x}" y="{y}" width="{size - 1}" height="{size - 1}"/>'
        )
    floor = size * SIDE
    across, up = index_words(view, 0), index_words(view, 1)
    for share in (0, 1):
        at = low + share * (high - low)
        anchor = ("", " end")[share]
        x, y = left + share * floor, floor - share * (floor - 10)
        parts.append(
            f'<text class="{anchor.strip()}" x="{x}" y="{floor + 14}">{across(at[0])}</text>'
        )
        parts.append(f'<text class="end" x="{left - 5}" y="{y}">{up(at[1])}</text>')
    known = grid[np.isfinite(grid)]
    label = f"{method.title}: on a map of {' and '.join(view.index)}"
    if len(known):
        label += f", cells from {known.min():.2f} to {known.max():.2f}"
    return Chart(left + floor, floor + 20, label, "".join(parts))


def target_words(method: Method) -> str:
    """The mean on the target, where it was scored."""
    return "" if method.target is None else f"target {100 * method.target:.1f} %"
