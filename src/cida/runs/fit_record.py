"""What a fit of a user's own table adds to the record of its run: data, figures, decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np

from cida.certificate import Certificate
from cida.committee.decision import Decision
from cida.estimators.labels import ClassLabels
from cida.estimators.validation import TrainingData
from cida.selection.expected_score import ExpectedScore
from cida.support import TargetSupport
from cida.tables.cells import ColumnKind
from cida.tables.schema import DroppedColumn


@dataclass(frozen=True)
class RowSummary:
    """How many rows the source or the target has, and their range in each column of the index."""

    n_rows: int
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class DataSummary:
    """What was understood of a table.

    ``n_classes`` is 0 where the label is a number, of which ``label_range`` is the range in the
    source. ``columns`` counts the inputs of each kind; ``shape`` is that of a row which is an
    image or a signal. ``dropped`` has the columns that were left out, with the reason.
    """

    label: str
    n_classes: int
    label_range: tuple[float, float] | None
    index_names: tuple[str, ...]
    index_kinds: tuple[ColumnKind, ...]
    source: RowSummary
    target: RowSummary
    columns: Mapping[ColumnKind, int] = field(default_factory=dict)
    shape: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()
    dropped: tuple[DroppedColumn, ...] = ()

    @classmethod
    def of(cls, data: TrainingData) -> Self:
        """Summarize the table that a fit reads; only source labels are read."""
        table, dataset, codec = data.table, data.dataset, data.labels
        assert table is not None
        n_classes, label_range = 0, None
        if isinstance(codec, ClassLabels):
            n_classes = len(codec.classes)
        else:
            labels = codec.decode(dataset.source_labels.numpy())
            label_range = (float(labels.min()), float(labels.max()))
        is_columns = data.layout.kind == "columns"
        columns = table.schema.columns
        u = dataset.u.numpy()
        return cls(
            label=table.label,
            n_classes=n_classes,
            label_range=label_range,
            index_names=table.index,
            index_kinds=table.index_kinds,
            source=_summarize_rows(u[dataset.labelled.numpy()]),
            target=_summarize_rows(u[~dataset.labelled.numpy()]),
            columns=dict(Counter(c.kind for c in columns)) if is_columns else {},
            shape=() if is_columns else data.layout.shape,
            missing=tuple(column.name for column in columns if column.has_missing),
            dropped=table.schema.dropped,
        )


def _summarize_rows(u: np.ndarray[Any, Any]) -> RowSummary:
    return RowSummary(len(u), tuple(u.min(axis=0).tolist()), tuple(u.max(axis=0).tolist()))


@dataclass(frozen=True)
class FitFigures:
    """What is known of a fit without target labels.

    ``train_score`` is the score on the source rows that were trained on, by the metric of its
    name; ``input_index_r2`` and ``encoding_index_r2`` are shares of the embedded index's variance
    that x and z explain.
    """

    metric: str
    train_score: float
    input_index_r2: float
    encoding_index_r2: float
    support: TargetSupport

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class FitRecord:
    """What a fit of a user's own table adds to the record of its run.

    ``plan`` is `Plan.to_dict`, ``expected`` the accuracy to expect along the index where it was
    estimated, ``warnings`` what was warned of while it was fitted, ``decision`` what an adaptive
    estimator decided.
    """

    data: DataSummary
    figures: FitFigures
    n_members: int = 1
    plan: Mapping[str, Any] = field(default_factory=dict)
    certificate: Certificate | None = None
    expected: tuple[ExpectedScore, ...] = ()
    warnings: tuple[str, ...] = ()
    decision: Decision | None = None
