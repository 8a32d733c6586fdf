"""A fit of a table in words: what ``cida fit`` prints, and what reports and model cards show."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

import numpy as np

from cida.runs.fit_record import DataSummary, FitRecord, RowSummary
from cida.selection.expected_score import ExpectedScore
from cida.tables.cells import ColumnKind

FitTopic = Literal["data", "results", "warnings"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PLURALS = {"number": "numbers", "boolean": "booleans", "date": "dates", "category": "categories"}


def fit_lines(fit: FitRecord, topic: FitTopic) -> list[str]:
    """The lines on one topic."""
    if topic == "warnings":
        return list(fit.warnings)
    return data_lines(fit.data) if topic == "data" else result_lines(fit)


def data_lines(data: DataSummary) -> list[str]:
    """What was understood of the table, a line each."""
    names, kinds = data.index_names, data.index_kinds
    label = f"{data.n_classes} classes"
    if data.label_range is not None:
        label = f"numbers {_range(*data.label_range, 'number')}"
    spans = _spans(_join(data), kinds)
    index = [f"{name}, {span}" for name, span in zip(names, spans, strict=True)]
    lines = [f"label: {data.label}, {label}", f"index: {'; '.join(index)}"]
    for part, rows in (("source", data.source), ("target", data.target)):
        spans = _spans(rows, kinds)
        if len(names) > 1:
            spans = [f"{name} {span}" for name, span in zip(names, spans, strict=True)]
        lines.append(f"{part} {', '.join(spans)}: {rows_words(rows.n_rows)}")
    counts = [f"{n} {PLURALS[kind] if n > 1 else kind}" for kind, n in data.columns.items()]
    lines.append(f"inputs: {', '.join(counts) or f'arrays of shape {data.shape}'}")
    if data.missing:
        lines.append(f"with missing values: {', '.join(data.missing)}")
    dropped = [f"left out: {one.name!r}, since {one.summary()}" for one in data.dropped]
    return [*lines, *dropped]


def result_lines(fit: FitRecord) -> list[str]:
    """What training came to, and what accuracy to expect, a line each."""
    data, figures = fit.data, fit.figures
    score = f"root mean squared error {figures.train_score:.4g}"
    if figures.metric == "accuracy":
        score = f"accuracy {figures.train_score:.1%}"
    unit = " days" if data.index_kinds[0] == "date" else ""
    unit = " scaled units of the index" if len(data.index_names) > 1 else unit
    alignment = [
        f"alignment: of the index's variance the inputs explain {figures.input_index_r2:.1%}, "
        f"the encoding {figures.encoding_index_r2:.1%}"
    ]
    lines = [
        f"source rows trained on: {score} ({rows_words(data.source.n_rows)})",
        *(alignment if fit.decision is None else fit.decision.summary()),
        f"support: {figures.support.share_outside:.1%} of the target lies outside the source's "
        f"range, and the farthest row is {_number(figures.support.max_distance)}{unit} away from "
        "the nearest source row",
    ]
    return [*lines, _expected_line(data, fit.expected)] if fit.expected else lines


def _expected_line(data: DataSummary, cells: Sequence[ExpectedScore]) -> str:
    rows = np.array([cell.n for cell in cells])
    mean, low, high = (
        float(np.average([getattr(cell, name) for cell in cells], weights=rows))
        for name in ("score", "low", "high")
    )
    worst = min(cells, key=lambda cell: cell.score)
    lo, hi = (np.atleast_1d(np.asarray(end, dtype=float)).tolist() for end in (worst.lo, worst.hi))
    spans = _spans(RowSummary(worst.n, tuple(lo), tuple(hi)), data.index_kinds)
    where = ", ".join(f"{n} {span}" for n, span in zip(data.index_names, spans, strict=True))
    guess = rows[[not cell.is_within_calibration for cell in cells]].sum() / rows.sum()
    beyond = f"; for {guess:.0%} of the target that is a guess, too far to be checked"
    return (
        f"expected on the target, without its labels: accuracy {mean:.0%} ({low:.0%} to "
        f"{high:.0%}), at worst {worst.score:.0%} ({where}){beyond if guess else ''}"
    )


def _join(data: DataSummary) -> RowSummary:
    """All rows, of source and target."""
    parts = data.source, data.target
    low = tuple(map(min, *(part.low for part in parts)))
    high = tuple(map(max, *(part.high for part in parts)))
    return RowSummary(sum(part.n_rows for part in parts), low, high)


def _spans(rows: RowSummary, kinds: Sequence[ColumnKind]) -> list[str]:
    return [_range(*ends) for ends in zip(rows.low, rows.high, kinds, strict=True)]


def _range(low: float, high: float, kind: ColumnKind) -> str:
    """18-94, -3 to 5, 2019-01-01 to 2024-06-30."""
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


def _date(days: float, clock: bool) -> str:
    try:
        moment = EPOCH + timedelta(days=days)
    except OverflowError:
        return f"day {days:g}"
    return moment.strftime("%Y-%m-%d %H:%M" if clock else "%Y-%m-%d")
