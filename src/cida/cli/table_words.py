"""A table and its model in words: what ``cida fit`` prints before and after training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from cida.estimators.table_figures import TableFigures
from cida.label_shift import LabelShift
from cida.selection.expected_score import ExpectedScore
from cida.tables import EncodedTable
from cida.tables.cells import ColumnKind

__all__ = [
    "data_lines",
    "expected_lines",
    "figure_lines",
    "number_words",
    "range_words",
    "rows_words",
    "shift_words",
]

Array = np.ndarray[Any, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOUNS = {
    "number": ("number", "numbers"),
    "boolean": ("boolean", "booleans"),
    "date": ("date", "dates"),
    "category": ("category", "categories"),
}


def data_lines(data: EncodedTable) -> list[str]:
    """What was understood of the table, a line each."""
    names, kinds = data.roles.index, data.index_kinds
    ranges = [f"{n}, {range_words(u, k)}" for n, u, k in zip(names, data.u.T, kinds, strict=True)]
    lines = [f"label: {data.roles.label}, {_label(data)}", f"index: {'; '.join(ranges)}"]
    for part, rows in (("source", data.labelled), ("target", ~data.labelled)):
        spans = [range_words(u, kind) for u, kind in zip(data.u[rows].T, kinds, strict=True)]
        if len(names) > 1:
            spans = [f"{name} {span}" for name, span in zip(names, spans, strict=True)]
        lines.append(f"{part} {', '.join(spans)}: {rows_words(int(rows.sum()))}")
    lines.append(f"inputs: {_inputs(data)}")
    holes = [column.name for column in data.schema.columns if column.has_missing]
    if holes:
        lines.append(f"with holes: {', '.join(holes)}")
    return [*lines, *(f"left out: {name!r}, since {why}" for name, why in data.schema.dropped)]


def figure_lines(data: EncodedTable, figures: TableFigures) -> list[str]:
    """What training came to, a line each."""
    scores = figures.scores
    if "accuracy" in scores:
        told = f"accuracy {scores['accuracy']:.1%}"
    else:
        share = f", R2 {scores['r2']:.3f}" if "r2" in scores else ""
        told = f"root mean squared error {scores['rmse']:.4g}{share}"
    return [
        f"held-out source: {told} ({rows_words(figures.n_held_out)})",
        f"alignment: of the index's variance the inputs explain {figures.input_index_r2:.1%}, "
        f"the encoding {figures.encoding_index_r2:.1%}",
        _support(data, figures),
    ]


def expected_lines(data: EncodedTable, cells: Sequence[ExpectedScore]) -> list[str]:
    """What accuracy to expect on the target, a line; none if nothing was estimated."""
    if not cells:
        return []
    rows = np.array([cell.n for cell in cells])
    mean, low, high = (
        float(np.average([getattr(cell, name) for cell in cells], weights=rows))
        for name in ("score", "low", "high")
    )
    worst = min(cells, key=lambda cell: cell.score)
    lo, hi = (np.atleast_1d(np.asarray(end, dtype=float)) for end in (worst.lo, worst.hi))
    kinds = zip(data.roles.index, lo, hi, data.index_kinds, strict=True)
    where = ", ".join(f"{n} {range_words(np.array([a, b]), k)}" for n, a, b, k in kinds)
    guess = rows[[not cell.is_within_calibration for cell in cells]].sum() / rows.sum()
    beyond = f"; for {guess:.0%} of the target that is a guess, too far to be checked"
    return [
        f"expected on the target, without its labels: accuracy {mean:.0%} ({low:.0%} to "
        f"{high:.0%}), at worst {worst.score:.0%} ({where}){beyond if guess else ''}"
    ]


def shift_words(data: EncodedTable, shift: LabelShift) -> str:
    """The balance of labels moves with the index: what that means, and what to do."""
    name = data.roles.label
    if data.classes is None or shift.label is None:
        low, high = number_words(shift.low), number_words(shift.high)
        told = f"the mean of {name} goes from {low} to {high} along the index"
    else:
        told = (
            f"the share of {name} = {data.classes[shift.label]} goes from {shift.low:.0%} "
            f"(at {_place(data, shift.low_at)}) to {shift.high:.0%} (at "
            f"{_place(data, shift.high_at)})"
        )
    return (
        f"warning: in the source {told}, so the label itself seems to depend on the index: an "
        "encoding that hides the index may hide the label with it, and be worse than no "
        "adaptation; try --method conditional, and compare with --method source-only"
    )


def _place(data: EncodedTable, at: tuple[float, ...]) -> str:
    places = zip(data.roles.index, at, data.index_kinds, strict=True)
    return ", ".join(
        f"{name} {_date(value, False) if kind == 'date' else number_words(value)}"
        for name, value, kind in places
    )


def range_words(values: Array, kind: ColumnKind) -> str:
    """18-94, -3 to 5, 2019-01-01 to 2024-06-30."""
    low, high = float(values.min()), float(values.max())
    if kind == "date":
        clock = high - low < 2  # days: then hours matter
        return f"{_date(low, clock)} to {_date(high, clock)}"
    words = [number_words(low), number_words(high)]
    return (" to " if any("-" in word for word in words) else "-").join(words)


def number_words(value: float) -> str:
    """A number to read: 52, 0.3142, 2019, 75,000."""
    if abs(value) >= 10_000:
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.4g}"
    return str(int(value)) if value.is_integer() else f"{value:.4g}"


def rows_words(count: int) -> str:
    """1 row, 3,120 rows."""
    return f"{count:,} row{'s' if count != 1 else ''}"


def _label(data: EncodedTable) -> str:
    if data.classes is not None:
        return f"{len(data.classes)} classes"
    return f"numbers {range_words(data.y[data.labelled], 'number')}"


def _inputs(data: EncodedTable) -> str:
    if data.table.input_array is not None:
        return f"arrays of shape {data.table.input_array.shape[1:]}"
    counts = Counter(column.kind for column in data.schema.columns)
    return ", ".join(f"{count} {NOUNS[kind][count > 1]}" for kind, count in counts.items())


def _support(data: EncodedTable, figures: TableFigures) -> str:
    farthest = figures.support.max_distance
    if len(data.roles.index) > 1:
        # On a circle the metric is in radians, on a line in standard deviations.
        unit = "scaled units" if data.roles.periods else "standard deviations"
        away = f"{number_words(farthest)} {unit} of the index"
    elif data.index_kinds[0] == "date":
        away = f"{number_words(farthest)} days"
    else:
        away = number_words(farthest)
    return (
        f"support: {figures.support.share_outside:.1%} of the target lies outside the source's "
        "range, "
        f"and the farthest row is {away} away from the nearest source row"
    )


def _date(days: float, clock: bool) -> str:
    try:
        moment = EPOCH + timedelta(days=days)
    except OverflowError:
        return f"day {days:g}"
    return moment.strftime("%Y-%m-%d %H:%M" if clock else "%Y-%m-%d")
