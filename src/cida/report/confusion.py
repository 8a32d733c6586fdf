"""Confusion along u: in each cell, what the rows of each class are predicted as."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from cida.benchmarks.tables import Cells
from cida.diagnostics.view import View
from cida.report.chapters import Method, Task
from cida.report.parts import Part, folded, soft
from cida.report.svg import Chart, together
from cida.report.ticks import axis_name, edge_words, first_column, index_words, number_words
from cida.space import Periodic

__all__ = ["confusion_along"]

Array = np.ndarray[Any, Any]

CELLS = 8  # at most
ROWS = 30  # of a cell on average, where there are that many
SIDE = 88.0  # of a matrix
MOST_NUMBERS = 4  # classes, of which each share can be written out
MOST_CLASSES = 20
FEWEST_ROWS = 20  # of which a truth is known, in all
LEFT = 42.0
WIDEST = 230  # pixels of a matrix, where there are few
NUMBERS = {1: " large", 2: " large", 3: ""}  # how they are written, by how many classes there are


@dataclass(frozen=True)
class _Cell:
    """The rows between ``lo`` and ``hi``: ``counts[truth, predicted]``."""

    lo: float
    hi: float
    counts: Array

    @property
    def shares(self) -> Array:
        """Of each true class, the share predicted as each; NaN where it has no row."""
        rows = self.counts.sum(1, keepdims=True)
        return np.where(rows > 0, self.counts / np.maximum(rows, 1), np.nan)


def confusion_along(task: Task, level: int) -> Part | None:
    """A strip of small matrices a method; nothing where there are no classes or no known truth."""
    found = {m.key: _cells(m) for m in task.methods}
    shown = [method for method in task.methods if found[method.key]]
    view = task.view
    if not shown or view is None or view.classes is None:
        return None
    classes = view.classes
    words = _edge_words([cell for m in shown for cell in found[m.key]], view)
    strips = {m.key: [_matrix(cell, classes, words) for cell in found[m.key]] for m in shown}
    parts = {m.key: _strip(m, strips[m.key], found[m.key], level) for m in shown}
    main = task.main if task.main in shown else shown[0]
    rest = "".join(parts[m.key] for m in shown if m is not main)
    name = axis_name(view)
    seeds = max(len(m.views) for m in shown)
    html = soft(
        f"Rows of a matrix are true classes, columns are predictions, both in the order "
        f"{', '.join(classes)}; the stronger the colour, the larger the share of the "
        "true class. On the diagonal is what is right. From the rows that are kept with the runs"
        + (f", {seeds} seeds together." if seeds > 1 else ".")
    )
    html += parts[main.key]
    html += folded(task.others(len(shown) - 1), rest)
    rows = [(m.title, together([("", c) for c in strips[m.key]], CELLS, m.title)) for m in shown]
    whole = together(rows, 1, f"confusion along {name}")
    lines = [line for m in shown for line in _lines(m, found[m.key], view, words)]
    return Part(f"Confusion along {name}", html, {"confusion": whole}, {"confusion": lines})


def _cells(method: Method) -> list[_Cell]:
    """Up to eight cells along the first index column, with the rows of all seeds.

    They cover the rows whose truth is known, and end at the last of them before a gap.
    """
    views = [view for view in method.views if view.classes is not None]
    if not views or len(views[0].classes or ()) > MOST_CLASSES:
        return []
    count = len(views[0].classes or ())
    same = [view for view in views if len(view.classes or ()) == count]
    u = np.concatenate([first_column(view) for view in same])
    truth = np.concatenate([view.truth for view in same])
    said = np.concatenate([view.predicted.argmax(1) for view in same])
    known = np.isfinite(truth)
    if known.sum() < FEWEST_ROWS:
        return []
    u, truth, said = u[known], truth[known].astype(int), said[known]
    edges = _edges(u, views[0])
    place = np.clip(np.digitize(u, edges) - 1, 0, len(edges) - 2)
    has = np.bincount(place, minlength=len(edges) - 1) > 0
    circle = isinstance(views[0].space.columns[0], Periodic)
    # A circle goes on at its start; the ends of a line are rows already.
    around = [has[-1], *has, has[0]] if circle else [True, *has, True]
    cells = []
    for number in np.flatnonzero(has):
        rows = place == number
        lo = edges[number] if around[number] else u[rows].min()
        hi = edges[number + 1] if around[number + 2] else u[rows].max()
        counts = np.zeros((count, count))
        np.add.at(counts, (truth[rows], said[rows]), 1)
        cells.append(_Cell(float(lo), float(hi), counts))
    return cells


def _edges(u: Array, view: View) -> Array:
    """Of even cells; on a circle they go all round."""
    first = view.space.columns[0]
    if isinstance(first, Periodic):
        return np.linspace(0, first.period, CELLS + 1)
    low, high = float(u.min()), float(u.max())
    values = np.unique(u)
    if len(values) <= CELLS:  # each value of u is a cell of its own
        middles = (values[1:] + values[:-1]) / 2
        return np.concatenate([[low], middles, [high]])
    count = min(CELLS, max(2, len(u) // ROWS))
    return np.linspace(low, high, count + 1)


def _edge_words(cells: Sequence[_Cell], view: View) -> Callable[[float], str]:
    """How the edges of all these cells are written."""
    words = index_words(view)
    if words is not number_words:
        return words
    return edge_words([edge for cell in cells for edge in (cell.lo, cell.hi)]).__getitem__


def _matrix(cell: _Cell, classes: tuple[str, ...], words: Callable[[float], str]) -> Chart:
    count = len(classes)
    size = SIDE / count
    parts = [f'<rect class="empty" x="{LEFT:g}" y="0" width="{SIDE:g}" height="{SIDE:g}"/>']
    shares = cell.shares
    for (row, column), share in np.ndenumerate(shares):
        x, y = LEFT + column * size, row * size
        if share > 0.005:
            parts.append(
                f'<rect class="share" opacity="{share:.2f}" x="{x:.1f}" y="{y:.1f}" '
                f'width="{size:.1f}" height="{size:.1f}"/>'
            )
        if count <= MOST_NUMBERS and np.isfinite(share):
            kind = f"{'on' if share > 0.5 else 'off'}{NUMBERS.get(count, ' small')}"
            place = f'x="{x + size / 2:.1f}" y="{y + size / 2 + (5 if count < 3 else 4):.1f}"'
            parts.append(f'<text class="mid {kind}" {place}>{100 * share:.0f}</text>')
    for row, name in enumerate(classes):
        if count <= 10:
            short = name if len(name) < 6 else f"{name[:5]}…"
            y = (row + 0.5) * size + 3
            kind = "end small" if count > 4 or len(name) > 5 else "end"
            parts.append(
                f'<text class="{kind}" x="{LEFT - 4:g}" y="{y:.1f}">{escape(short)}</text>'
            )
    middle = LEFT + SIDE / 2
    lo, hi = words(cell.lo), words(cell.hi)
    span = f"{lo} to {hi}" if lo != hi else lo
    rows = int(cell.counts.sum())
    parts.append(f'<text class="mid strong" x="{middle:g}" y="{SIDE + 14:g}">{escape(span)}</text>')
    parts.append(f'<text class="mid small" x="{middle:g}" y="{SIDE + 26:g}">{rows:,} rows</text>')
    return Chart(LEFT + SIDE + 2, SIDE + 30, _label(cell, classes, span, rows), "".join(parts))


def _label(cell: _Cell, classes: tuple[str, ...], span: str, rows: int) -> str:
    right = [
        f"{name} {100 * share:.0f} %"
        for name, share in zip(classes, np.diag(cell.shares), strict=True)
        if np.isfinite(share)
    ]
    return f"{span}, {rows:,} rows; right by class: {', '.join(right)}"


def _strip(method: Method, charts: list[Chart], cells: list[_Cell], level: int) -> str:
    rows = int(sum(cell.counts.sum() for cell in cells))
    right = sum(float(np.trace(cell.counts)) for cell in cells) / max(rows, 1)
    drawn = "".join(chart.inline() for chart in charts)
    return (
        f"<figure><h{level}>{escape(method.title)}</h{level}>"
        f"<figcaption>{rows:,} rows, {100 * right:.1f} % of them right</figcaption>"
        f"<div class='strip' style='max-width:{WIDEST * len(charts)}px'>{drawn}</div></figure>"
    )


def _lines(
    method: Method, cells: list[_Cell], view: View, words: Callable[[float], str]
) -> list[Cells]:
    """Every count, for a file."""
    name = axis_name(view)
    return [
        {
            "method": method.title,
            f"{name} from": words(cell.lo),
            f"{name} to": words(cell.hi),
            "true": view.classes[row],
            **{
                f"as {said}": f"{n:.0f}"
                for said, n in zip(view.classes, cell.counts[row], strict=True)
            },
        }
        for cell in cells
        for row in range(len(view.classes or ()))
        if view.classes is not None
    ]
