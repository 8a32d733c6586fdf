"""What is said of a table's model after training: accuracy, alignment, support."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from sklearn.metrics import r2_score

from cida.certificate.certificate import Certificate, certify
from cida.estimators.classifier import CIDAClassifier
from cida.estimators.expected import estimate_dataset_score
from cida.estimators.table import TableModel
from cida.indexing import subsample
from cida.label_shift import LabelShift, measure_label_shift
from cida.metrics import index_r2, root_mean_squared_error
from cida.runs.snapshot import MAX_SNAPSHOT_ROWS, Snapshot
from cida.selection.expected_score import ExpectedScore
from cida.support import TargetSupport, measure_target_support
from cida.tables import EncodedTable, Schema

__all__ = [
    "TableFigures",
    "certify_table",
    "compute_table_figures",
    "estimate_table_scores",
    "make_table_snapshot",
    "measure_table_label_shift",
    "sample_table_rows",
    "split_rows",
]

Array = np.ndarray[Any, Any]
TABLE_CHUNK_ROWS = 16_384
MAX_ALIGNMENT_ROWS = 10_000  # enough for a ridge regression, and quick
N_EXPECTED_CELLS = 12  # along one index column; as many in all over several
MAX_INPUT_COLUMNS = 2_000  # columns of it: of a large image every so manieth pixel


@dataclass(frozen=True)
class TableFigures:
    """Scores on the source rows that were held out, and what is known of the target without labels.

    ``scores`` are accuracy, or root mean squared error and, where labels differ, R2;
    ``inputs_explain`` and ``encoding_explains`` are shares of the embedded index's variance.
    """

    n_held_out: int
    scores: dict[str, float]
    input_index_r2: float
    encoding_index_r2: float
    support: TargetSupport

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON values."""
        return asdict(self)


def measure_table_label_shift(data: EncodedTable) -> LabelShift:
    """Whether the labels of the source move along the index."""
    labelled = torch.from_numpy(data.labelled)
    source_rows = subsample(labelled.nonzero()[:, 0])
    u, y = torch.from_numpy(data.u), torch.from_numpy(data.y)
    return measure_label_shift(
        data.roles.make_space().fit(subsample(u)), u[source_rows], y[source_rows]
    )


def compute_table_figures(
    model: TableModel, data: EncodedTable, x: Array, held_out: Array
) -> TableFigures:
    """The figures of a model that was fitted on these rows but for those held out."""
    rows = np.flatnonzero(held_out)
    sample = sample_table_rows(len(data))
    u = torch.from_numpy(data.u)
    e = model.space.embed(u[torch.from_numpy(sample)]).numpy()
    encoding = np.concatenate([model.encode(x[r], data.u[r]) for r in split_rows(sample)])
    labelled = torch.from_numpy(data.labelled)
    source = subsample(labelled.nonzero()[:, 0])
    target = subsample((~labelled).nonzero()[:, 0])
    return TableFigures(
        n_held_out=len(rows),
        scores=_score_held_out(model, data, x, rows),
        input_index_r2=index_r2(_one_hot_features(model.schema, x[sample]), e),
        encoding_index_r2=index_r2(encoding, e),
        support=measure_target_support(model.space, u[target], u[source]),
    )


def certify_table(model: TableModel, data: EncodedTable, x: Array) -> Certificate:
    """Whether the first estimator's encoding still tells the index; no label is read."""
    sample = sample_table_rows(len(data))
    parts = list(split_rows(sample))
    z = np.concatenate([model.encode(x[r], data.u[r]) for r in parts])
    predicted = np.concatenate([model.predict(x[r], data.u[r]) for r in parts])
    predictions = predicted[:, 0] if model.classes is None else predicted.argmax(1)
    u = torch.from_numpy(data.u[sample])
    return certify(model.space, z, u, predictions, index_names=model.index)


def estimate_table_scores(
    model: TableModel, data: EncodedTable, x: Array, held_out: Array
) -> tuple[ExpectedScore, ...]:
    """The accuracy to expect along the index, of the first estimator; none of a regression.

    It is trained a second time, without the labels of the outermost source range.
    """
    first = model.estimators[0]
    if not isinstance(first, CIDAClassifier):
        return ()
    rows = model.training_dataset(data, x, held_out)
    return tuple(estimate_dataset_score(first, rows, N_EXPECTED_CELLS))


def make_table_snapshot(
    model: TableModel,
    data: EncodedTable,
    x: Array,
    held_out: Array,
    expected: tuple[ExpectedScore, ...],
) -> Snapshot:
    """Rows for a report to show; only labels that were not trained on say what is right."""
    rows = np.random.default_rng(0).permutation(len(data))
    rows = np.concatenate([rows[held_out[rows]][: MAX_SNAPSHOT_ROWS // 3], rows[~held_out[rows]]])[
        :MAX_SNAPSHOT_ROWS
    ]
    parts = list(split_rows(rows))
    return Snapshot(
        space=model.space,
        index_names=model.index,
        classes=model.classes,
        u=data.u[rows],
        source=data.labelled[rows],
        predicted=np.concatenate([model.predict(x[r], data.u[r]) for r in parts]),
        truth=np.where(held_out[rows], data.y[rows].astype(np.float64), np.nan),
        z=np.concatenate([model.encode(x[r], data.u[r]) for r in parts]),
        is_date=tuple(kind == "date" for kind in model.index_kinds),
        expected=expected,
    )


def _score_held_out(
    model: TableModel, data: EncodedTable, x: Array, rows: Array
) -> dict[str, float]:
    predicted = np.concatenate([model.predict(x[r], data.u[r]) for r in split_rows(rows)])
    truth = data.y[rows]
    if model.classes is not None:
        return {"accuracy": float((predicted.argmax(1) == truth).mean())}
    error = root_mean_squared_error(truth, predicted[:, 0])
    varies = len(np.unique(truth)) > 1  # of one value no share can be explained
    return {"rmse": error, **({"r2": r2_score(truth, predicted[:, 0])} if varies else {})}


def _one_hot_features(schema: Schema, x: Array) -> Array:
    """Inputs for a linear model: a column of 0 and 1 for each category."""
    x = x.reshape(len(x), -1)
    codes = schema.n_numeric + len(schema.missing_indicators)
    parts = [x if not schema.columns else x[:, :codes]]
    for number, size in enumerate(schema.category_sizes):
        parts.append((x[:, codes + number, None] == np.arange(size)).astype(np.float32))
    features = np.concatenate(parts, axis=1)
    return features[:, :: -(-features.shape[1] // MAX_INPUT_COLUMNS)].astype(np.float64)


def sample_table_rows(n_rows: int) -> Array:
    """Some rows of all parts of the table, in no order that the table has."""
    return np.random.default_rng(0).permutation(n_rows)[:MAX_ALIGNMENT_ROWS]


def split_rows(rows: Array) -> list[Array]:
    """The row numbers in parts that fit into memory."""
    return np.array_split(rows, max(1, -(-len(rows) // TABLE_CHUNK_ROWS)))
