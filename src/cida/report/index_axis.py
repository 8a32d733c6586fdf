"""The first index column of a snapshot as an axis, and where the source is along it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from cida.report.charts import Array, Band, IndexAxis
from cida.report.ticks import format_number
from cida.runs.snapshot import Snapshot
from cida.spaces import Periodic

UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
N_SOURCE_BAND_BINS = 60  # that the index range is cut into, to see where the source is


def index_axis(snapshot: Snapshot | None, column: int = 0) -> IndexAxis:
    """The axis of an index column, with the source as its bands; dates are written as dates."""
    if snapshot is None:
        return IndexAxis()
    is_date = any(snapshot.is_date[column : column + 1]) and not index_period(snapshot, column)
    u = index_values(snapshot, column)
    ends = (float(u.min()), float(u.max()))
    formatter = _format_date if is_date else format_number
    return IndexAxis(snapshot.index_names[column], ends, formatter, find_source_bands(snapshot))


def index_period(snapshot: Snapshot, column: int = 0) -> float:
    """The period of an index that wraps round, 0 on a line."""
    space = snapshot.space.column_spaces[column]
    return space.period if isinstance(space, Periodic) else 0.0


def index_values(snapshot: Snapshot, column: int = 0) -> Array:
    """The values of an index column; on a circle within the first turn."""
    u: Array = snapshot.u[:, column]
    period = index_period(snapshot, column)
    return np.mod(u, period) if period else u


def periodic_axis(axis: IndexAxis, snapshot: Snapshot | None, n_intervals: int) -> IndexAxis:
    """The axis of an index that wraps round over a whole turn, in even parts."""
    period = index_period(snapshot) if snapshot is not None else 0.0
    if not period or axis.ends is None:
        return axis
    ends = (min(axis.ends[0], 0.0), max(axis.ends[1], period))
    return replace(
        axis, ends=ends, ticks=[period * k / n_intervals for k in range(n_intervals + 1)]
    )


def predicted_values(snapshot: Snapshot) -> Array:
    """What is predicted of each row: the number of a class, or a number."""
    predicted = snapshot.predicted
    values: Array = predicted[:, 0] if snapshot.classes is None else predicted.argmax(1)
    return values


def find_source_bands(snapshot: Snapshot) -> list[Band]:
    """The stretches along the first index column where most rows are the source's.

    On a circle the source may lie on both sides of the seam: then there are two. Where u has a few
    values alone, each stands for its surroundings.
    """
    u, source = index_values(snapshot), snapshot.source
    values = np.unique(u)
    if not source.any() or source.all() or len(values) < 2:
        return []
    edges, half_step = values, float(np.median(np.diff(values))) / 2
    if len(values) > N_SOURCE_BAND_BINS:
        edges = np.linspace(values[0], values[-1], N_SOURCE_BAND_BINS + 1)[:-1]
        half_step = 0.0
    bins = np.searchsorted(edges, u, side="right") - 1
    bands: list[Band] = []
    source_values: list[Array] = []
    for number in range(len(edges) + 1):
        rows = bins == number
        if rows.any() and source[rows].mean() > 0.5:
            source_values.append(u[rows & source])
        elif source_values and (rows.any() or number == len(edges)):  # no row ends nothing
            stretch = np.concatenate(source_values)
            low = max(float(stretch.min()) - half_step, float(values[0]))
            high = min(float(stretch.max()) + half_step, float(values[-1]))
            bands.append(Band(low, high, "source"))
            source_values = []
    return bands


def _format_date(days: float) -> str:
    try:
        return (UNIX_EPOCH + timedelta(days=days)).strftime("%Y-%m-%d")
    except OverflowError:
        return f"day {days:g}"
