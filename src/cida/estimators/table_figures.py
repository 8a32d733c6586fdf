"""What is said of a table's model after training: accuracy, alignment, support."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from sklearn.metrics import r2_score

from cida.diagnostics import (
    Certificate,
    LabelShift,
    Support,
    certify,
    explained_share,
    label_shift,
    root_mean_squared_error,
    target_support,
)
from cida.diagnostics.expected import Expected
from cida.diagnostics.view import MOST_ROWS, View
from cida.estimators.classifier import CIDAClassifier
from cida.estimators.expected import expected_of_rows
from cida.estimators.table import TableModel
from cida.scratch import MANY, few, places
from cida.tables import Schema, TableData

__all__ = [
    "Figures",
    "balance",
    "chunks",
    "spread_rows",
    "table_certificate",
    "table_expected",
    "table_figures",
    "table_view",
]

Array = np.ndarray[Any, Any]
CHUNK_ROWS = 16_384
MOST_SEEN = 100_000  # rows that a report's are chosen from, of very many
ALIGNMENT_ROWS = 10_000  # enough for a ridge regression, and quick
EXPECTED_CELLS = 12  # along one index column; as many in all over several
MOST_INPUTS = 2_000  # columns of it: of a large image every so manieth pixel


@dataclass(frozen=True)
class Figures:
    """Scores on the source rows that were held out, and what is known of the target without labels.

    ``scores`` are accuracy, or root mean squared error and, where labels differ, R2;
    ``inputs_explain`` and ``encoding_explains`` are shares of the embedded index's variance.
    """

    held_out: int
    scores: dict[str, float]
    inputs_explain: float
    encoding_explains: float
    support: Support

    def words(self) -> dict[str, Any]:
        """The figures as JSON values."""
        return asdict(self)


def balance(data: TableData) -> LabelShift:
    """Whether the labels of the source move along the index."""
    labelled = torch.from_numpy(data.labelled)
    known = few(places(lambda part: labelled[part], len(labelled)))
    u, y = torch.from_numpy(data.u), torch.from_numpy(data.y)
    return label_shift(data.question.space().fit(few(u)), u[known], y[known])


def table_figures(model: TableModel, data: TableData, x: Array, held: Array) -> Figures:
    """The figures of a model that was fitted on these rows but for those held out."""
    rows = np.flatnonzero(held)
    some = spread_rows(len(data))
    u = torch.from_numpy(data.u)
    e = model.space.embed(u[torch.from_numpy(some)]).numpy()
    encoding = np.concatenate([model.encoding(x[r], data.u[r]) for r in chunks(some)])
    labelled = torch.from_numpy(data.labelled)
    source = few(places(lambda part: labelled[part], len(u)))
    target = few(places(lambda part: ~labelled[part], len(u)))
    return Figures(
        held_out=len(rows),
        scores=_scores(model, data, x, rows),
        inputs_explain=explained_share(_features(model.schema, x[some]), e),
        encoding_explains=explained_share(encoding, e),
        support=target_support(model.space, u[target], u[source]),
    )


def table_certificate(model: TableModel, data: TableData, x: Array) -> Certificate:
    """Whether the first estimator's encoding still tells the index; no label is read."""
    some = spread_rows(len(data))
    parts = list(chunks(some))
    z = np.concatenate([model.encoding(x[r], data.u[r]) for r in parts])
    predicted = np.concatenate([model.predict(x[r], data.u[r]) for r in parts])
    said = predicted[:, 0] if model.classes is None else predicted.argmax(1)
    u = torch.from_numpy(data.u[some])
    return certify(model.space, z, u, said, index_names=model.index)


def table_expected(
    model: TableModel, data: TableData, x: Array, held: Array
) -> tuple[Expected, ...]:
    """The accuracy to expect along the index, of the first estimator; none of a regression.

    It is trained a second time, without the labels of the outermost source range.
    """
    first = model.estimators[0]
    if not isinstance(first, CIDAClassifier):
        return ()
    rows = model.training_rows(data, x, held)
    return tuple(expected_of_rows(first, rows, EXPECTED_CELLS))


def table_view(
    model: TableModel, data: TableData, x: Array, held: Array, expected: tuple[Expected, ...]
) -> View:
    """Rows for a report to show; only labels that were not trained on say what is right."""
    rows = _some_of(len(data), MOST_SEEN)
    rows = np.concatenate([rows[held[rows]][: MOST_ROWS // 3], rows[~held[rows]]])[:MOST_ROWS]
    parts = list(chunks(rows))
    return View(
        space=model.space,
        index=model.index,
        classes=model.classes,
        u=data.u[rows],
        source=data.labelled[rows],
        predicted=np.concatenate([model.predict(x[r], data.u[r]) for r in parts]),
        truth=np.where(held[rows], data.y[rows].astype(np.float64), np.nan),
        z=np.concatenate([model.encoding(x[r], data.u[r]) for r in parts]),
        dates=tuple(kind == "date" for kind in model.index_kinds),
        expected=expected,
    )


def _scores(model: TableModel, data: TableData, x: Array, rows: Array) -> dict[str, float]:
    predicted = np.concatenate([model.predict(x[r], data.u[r]) for r in chunks(rows)])
    truth = data.y[rows]
    if model.classes is not None:
        return {"accuracy": float((predicted.argmax(1) == truth).mean())}
    error = root_mean_squared_error(truth, predicted[:, 0])
    varies = len(np.unique(truth)) > 1  # of one value no share can be explained
    return {"rmse": error, **({"r2": r2_score(truth, predicted[:, 0])} if varies else {})}


def _features(schema: Schema, x: Array) -> Array:
    """Inputs for a linear model: a column of 0 and 1 for each category."""
    x = x.reshape(len(x), -1)
    codes = schema.numbers + len(schema.indicators)
    parts = [x if not schema.columns else x[:, :codes]]
    for number, size in enumerate(schema.sizes):
        parts.append((x[:, codes + number, None] == np.arange(size)).astype(np.float32))
    found = np.concatenate(parts, axis=1)
    return found[:, :: -(-found.shape[1] // MOST_INPUTS)].astype(np.float64)


def spread_rows(rows: int) -> Array:
    """Some rows of all parts of the table, in no order that the table has."""
    return _some_of(rows, ALIGNMENT_ROWS)[:ALIGNMENT_ROWS]


def _some_of(rows: int, most: int) -> Array:
    """All rows in no order or, of very many, so many of them."""
    generator = np.random.default_rng(0)
    return generator.permutation(rows) if rows <= MANY else generator.choice(rows, most, False)


def chunks(rows: Array) -> list[Array]:
    """The row numbers in parts that fit into memory."""
    return np.array_split(rows, max(1, -(-len(rows) // CHUNK_ROWS)))
