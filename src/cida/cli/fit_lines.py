"""A table and its model in words: what ``cida fit`` prints before and after training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from cida.estimators.labels import ClassLabels
from cida.estimators.validation import TrainingData
from cida.runs.probe import FitFigures
from cida.selection.expected_score import ExpectedScore
from cida.tables.cells import ColumnKind
from cida.tables.encoded_table import TableFormat

__all__ = ["data_lines", "expected_lines", "figure_lines", "rows_words"]

Array = np.ndarray[Any, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PLURALS = {"number": "numbers", "boolean": "booleans", "date": "dates", "category": "categories"}


def data_lines(data: TrainingData) -> list[str]:
    """What was understood of the table, a line each."""
    table, codec = _table(data), data.labels
    names, kinds = table.index, table.index_kinds
    u, labelled = data.dataset.u.numpy(), data.dataset.labelled.numpy()
    if isinstance(codec, ClassLabels):
        label = f"{len(codec.classes)} classes"
    else:
        label = f"numbers {_range(codec.decode(data.dataset.source_labels.numpy()), 'number')}"
    ranges = [f"{n}, {_range(v, k)}" for n, v, k in zip(names, u.T, kinds, strict=True)]
    lines = [f"label: {table.label}, {label}", f"index: {'; '.join(ranges)}"]
    for part, rows in (("source", labelled), ("target", ~labelled)):
        spans = [_range(v, kind) for v, kind in zip(u[rows].T, kinds, strict=True)]
        if len(names) > 1:
            spans = [f"{name} {span}" for name, span in zip(names, spans, strict=True)]
        lines.append(f"{part} {', '.join(spans)}: {rows_words(int(rows.sum()))}")
    counts = Counter(column.kind for column in table.schema.columns)
    inputs = ", ".join(f"{n} {PLURALS[kind] if n > 1 else kind}" for kind, n in counts.items())
    is_table = data.layout.kind == "columns"
    lines.append(f"inputs: {inputs if is_table else f'arrays of shape {data.layout.shape}'}")
    missing = [column.name for column in table.schema.columns if column.has_missing]
    if missing:
        lines.append(f"with missing values: {', '.join(missing)}")
    return [*lines, *(f"left out: {name!r}, since {why}" for name, why in table.schema.dropped)]


def figure_lines(data: TrainingData, figures: FitFigures) -> list[str]:
    """What training came to, a line each."""
    score, table = f"root mean squared error {figures.train_score:.4g}", _table(data)
    if figures.metric == "accuracy":
        score = f"accuracy {figures.train_score:.1%}"
    unit = " days" if table.index_kinds[0] == "date" else ""
    unit = " scaled units of the index" if len(table.index) > 1 else unit
    return [
        f"source rows trained on: {score} ({rows_words(len(data.dataset.source_rows))})",
        f"alignment: of the index's variance the inputs explain {figures.input_index_r2:.1%}, "
        f"the encoding {figures.encoding_index_r2:.1%}",
        f"support: {figures.support.share_outside:.1%} of the target lies outside the source's "
        f"range, and the farthest row is {_number(figures.support.max_distance)}{unit} away from "
        "the nearest source row",
    ]


def expected_lines(data: TrainingData, cells: Sequence[ExpectedScore]) -> list[str]:
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
    kinds = zip(_table(data).index, lo, hi, _table(data).index_kinds, strict=True)
    where = ", ".join(f"{n} {_range(np.array([a, b]), k)}" for n, a, b, k in kinds)
    guess = rows[[not cell.is_within_calibration for cell in cells]].sum() / rows.sum()
    beyond = f"; for {guess:.0%} of the target that is a guess, too far to be checked"
    return [
        f"expected on the target, without its labels: accuracy {mean:.0%} ({low:.0%} to "
        f"{high:.0%}), at worst {worst.score:.0%} ({where}){beyond if guess else ''}"
    ]


def _range(values: Array, kind: ColumnKind) -> str:
    """18-94, -3 to 5, 2019-01-01 to 2024-06-30."""
    low, high = float(values.min()), float(values.max())
    if kind == "date":
        clock = high - low < 2  # days: then hours matter
        return f"{_date(low, clock)} to {_date(high, clock)}"
    words = [_number(low), _number(high)]
    return (" to " if any("-" in word for word in words) else "-").join(words)


def _number(value: float) -> str:
    """A number to read: 52, 0.3142, 2019, 75,000."""
    if abs(value) >= 10_000:
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.4g}"
    return str(int(value)) if value.is_integer() else f"{value:.4g}"


def rows_words(count: int) -> str:
    """1 row, 3,120 rows."""
    return f"{count:,} row{'s' if count != 1 else ''}"


def _table(data: TrainingData) -> TableFormat:
    assert data.table is not None
    return data.table


def _date(days: float, clock: bool) -> str:
    try:
        moment = EPOCH + timedelta(days=days)
    except OverflowError:
        return f"day {days:g}"
    return moment.strftime("%Y-%m-%d %H:%M" if clock else "%Y-%m-%d")
