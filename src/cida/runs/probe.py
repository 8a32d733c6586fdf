"""A fitted model and its training data to the figures and rows that a report shows."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import torch

from cida.array_types import Array
from cida.certificate.certificate import Certificate, certify_or_decline
from cida.data import Batch
from cida.estimators.fitted_state import FittedState
from cida.estimators.labels import ClassLabels
from cida.estimators.scaling import Scaler
from cida.estimators.validation import TrainingData
from cida.indexing import evenly_spaced
from cida.metrics import index_r2
from cida.runs.fit_record import FitFigures
from cida.runs.snapshot import MAX_SNAPSHOT_ROWS, Snapshot
from cida.selection import ExpectedScore
from cida.support import measure_target_support

MAX_FIGURE_ROWS = 10_000  # enough for a ridge regression, and quick
MAX_DESIGN_COLUMNS = 2_000  # of a large image evenly spaced pixels


class FitProbe:
    """Some rows of all parts of a fit's data, and what the model makes of them."""

    def __init__(self, state: FittedState, data: TrainingData, n_draws: int) -> None:
        self.state, self.data, self.n_draws = state, data, n_draws
        self.scaled = replace(state, scaler=Scaler.identity())  # the rows are scaled already
        order = np.random.default_rng(0).permutation(len(data))  # no order that the table has
        self.batch = data.dataset[torch.from_numpy(order[:MAX_FIGURE_ROWS])]

    def _outputs(self, batch: Batch) -> Array:
        return self.scaled.outputs(batch.x.numpy(), batch.u, self.n_draws)

    @cached_property
    def encodings(self) -> Array:
        """z of each row, by the first member."""
        return self.scaled.encodings(self.batch.x.numpy(), self.batch.u)

    @cached_property
    def outputs(self) -> Array:
        """What is predicted for each row."""
        return self._outputs(self.batch)

    def figures(self) -> FitFigures:
        """The figures of the fit; only source labels are read."""
        batch, layout, dataset = self.batch, self.data.layout, self.data.dataset
        space, u = self.state.plan.space, dataset.u
        e = space.embed(batch.u).numpy()
        design = layout.design_matrix(batch.x) if layout.kind == "columns" else batch.x
        inputs = design.flatten(1).double().numpy()
        step = -(-inputs.shape[1] // MAX_DESIGN_COLUMNS)
        return FitFigures(
            metric=self.state.labels.metric_name,
            train_score=self._train_score(),
            input_index_r2=index_r2(inputs[:, ::step], e),
            encoding_index_r2=index_r2(self.encodings, e),
            support=measure_target_support(space, u[dataset.target_rows], u[dataset.source_rows]),
        )

    def _train_score(self) -> float:
        source, codec = self.data.dataset.source_rows, self.state.labels
        batch = self.data.dataset[source[evenly_spaced(len(source), MAX_FIGURE_ROWS)]]
        y, outputs = batch.y.numpy(), self._outputs(batch)
        if isinstance(codec, ClassLabels):
            return codec.metric(y, outputs.argmax(1))
        return codec.metric(codec.decode(y), codec.decode(outputs))

    def certify(self) -> Certificate:
        """Whether the first member's encoding still tells the index; no label is read."""
        is_classifier = isinstance(self.state.labels, ClassLabels)
        predicted = self.outputs.argmax(1) if is_classifier else self.outputs[:, 0]
        space, names = self.state.plan.space, self.state.index_names
        return certify_or_decline(space, self.encodings, self.batch.u, predicted, index_names=names)

    def snapshot(self, expected: tuple[ExpectedScore, ...] = ()) -> Snapshot:
        """Rows for a report to show; labels that were trained on are not shown as truth."""
        state, codec, classes = self.state, self.state.labels, None
        outputs, u = self.outputs[:MAX_SNAPSHOT_ROWS], self.batch.u[:MAX_SNAPSHOT_ROWS].numpy()
        if isinstance(codec, ClassLabels):
            classes = tuple(str(name) for name in codec.classes)
            predicted = codec.probabilities(outputs)
        else:
            predicted = codec.decode(outputs)[:, None]
        kinds = () if state.table is None else state.table.index_kinds
        return Snapshot(
            space=state.plan.space,
            index_names=state.index_names or (),
            classes=classes,
            u=u,
            source=self.batch.labelled[:MAX_SNAPSHOT_ROWS].numpy(),
            predicted=predicted,
            truth=np.full(len(u), np.nan),
            z=self.encodings[:MAX_SNAPSHOT_ROWS],
            is_date=tuple(kind == "date" for kind in kinds),
            expected=expected,
        )
