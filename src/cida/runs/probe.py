"""A fitted model and its training data to the figures and rows that a report shows."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from cida.certificate.certificate import Certificate, certify_or_decline
from cida.estimators.fitted_state import FittedState
from cida.estimators.labels import ClassLabels
from cida.estimators.scaling import Scaler
from cida.estimators.validation import TrainingData
from cida.indexing import evenly_spaced
from cida.metrics import index_r2
from cida.runs.snapshot import MAX_SNAPSHOT_ROWS, Snapshot
from cida.selection import ExpectedScore
from cida.support import TargetSupport, measure_target_support

__all__ = ["FitFigures", "certify_fit", "measure_fit", "take_snapshot"]

Array = np.ndarray[Any, Any]
MAX_FIGURE_ROWS = 10_000  # enough for a ridge regression, and quick
MAX_DESIGN_COLUMNS = 2_000  # of a large image evenly spaced pixels


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


def measure_fit(state: FittedState, data: TrainingData, n_draws: int) -> FitFigures:
    """The figures of a fit; only source labels are read."""
    rows = _sample_rows(len(data))
    batch = data.dataset[rows]
    e = state.plan.space.embed(batch.u).numpy()
    encoding = _scaled(state).encodings(batch.x.numpy(), batch.u)
    design = data.layout.design_matrix(batch.x) if data.layout.kind == "columns" else batch.x
    inputs = design.flatten(1).double().numpy()
    step = -(-inputs.shape[1] // MAX_DESIGN_COLUMNS)
    u = data.dataset.u
    return FitFigures(
        metric=state.labels.metric_name,
        train_score=_train_score(state, data, n_draws),
        input_index_r2=index_r2(inputs[:, ::step], e),
        encoding_index_r2=index_r2(encoding, e),
        support=measure_target_support(
            state.plan.space, u[data.dataset.target_rows], u[data.dataset.source_rows]
        ),
    )


def certify_fit(state: FittedState, data: TrainingData, n_draws: int) -> Certificate:
    """Whether the first member's encoding still tells the index; no label is read."""
    batch = data.dataset[_sample_rows(len(data))]
    scaled = _scaled(state)
    z = scaled.encodings(batch.x.numpy(), batch.u)
    outputs = scaled.outputs(batch.x.numpy(), batch.u, n_draws)
    predicted = outputs.argmax(1) if isinstance(state.labels, ClassLabels) else outputs[:, 0]
    space, names = state.plan.space, state.index_names
    return certify_or_decline(space, z, batch.u, predicted, index_names=names)


def take_snapshot(
    state: FittedState,
    data: TrainingData,
    n_draws: int,
    expected: tuple[ExpectedScore, ...] = (),
) -> Snapshot:
    """Rows for a report to show; labels that were trained on are not shown as truth."""
    batch = data.dataset[_sample_rows(len(data))[:MAX_SNAPSHOT_ROWS]]
    scaled = _scaled(state)
    outputs = scaled.outputs(batch.x.numpy(), batch.u, n_draws)
    codec, kinds = state.labels, () if state.table is None else state.table.index_kinds
    if isinstance(codec, ClassLabels):
        classes: tuple[str, ...] | None = tuple(str(name) for name in codec.classes)
        predicted = codec.probabilities(outputs)
    else:
        classes, predicted = None, codec.decode(outputs)[:, None]
    return Snapshot(
        space=state.plan.space,
        index_names=state.index_names or (),
        classes=classes,
        u=batch.u.numpy(),
        source=batch.labelled.numpy(),
        predicted=predicted,
        truth=np.full(len(batch), np.nan),
        z=scaled.encodings(batch.x.numpy(), batch.u),
        is_date=tuple(kind == "date" for kind in kinds),
        expected=expected,
    )


def _sample_rows(n_rows: int) -> torch.Tensor:
    """Some rows of all parts of the table, in no order that the table has."""
    generator = np.random.default_rng(0)
    return torch.from_numpy(generator.permutation(n_rows)[:MAX_FIGURE_ROWS])


def _scaled(state: FittedState) -> FittedState:
    """The state for rows of its data set, which are scaled already."""
    return replace(state, scaler=Scaler.identity())


def _train_score(state: FittedState, data: TrainingData, n_draws: int) -> float:
    source = data.dataset.source_rows
    batch = data.dataset[source[evenly_spaced(len(source), MAX_FIGURE_ROWS)]]
    outputs = _scaled(state).outputs(batch.x.numpy(), batch.u, n_draws)
    codec = state.labels
    if isinstance(codec, ClassLabels):
        return codec.metric(batch.y.numpy(), outputs.argmax(1))
    return codec.metric(codec.decode(batch.y.numpy()), codec.decode(outputs))
