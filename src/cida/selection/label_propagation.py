"""Source labels carried along the index, by ways that the source itself vouches for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cida.coordinates.trial import CoordinateMode, coordinate_candidates
from cida.indexing import evenly_spaced
from cida.kernel_ridge import (
    kernel_ridge,
    make_label_matrix,
    reduce_columns,
    squared_distances,
)
from cida.selection.source_ranges import order_sources_by_target_distance
from cida.spaces import Space

__all__ = ["PropagatedLabels", "Propagation", "propagate_labels"]

Array = np.ndarray[Any, Any]

MAX_KERNEL_ROWS = 1000  # rows that a kernel learns from: it has as many entries as they have pairs
MAX_STAGE_ROWS = 400  # of a stage of a walk
N_STAGES = 20  # of a walk to the farthest target
MIN_PROPAGATION_SOURCE_ROWS = (
    60  # fewer cannot be parted into a range to learn and one to ask about
)
# How fast a way loses its say with its error in the trial, in shares of the blind error. Chosen
# among 0.05, 0.1, 0.2 and 0.4 (all did nearly alike) on the worlds plane, noisy index and ladder.
WEIGHT_TEMPERATURE = 0.05
MIN_TRIAL_GAIN = 0.05  # over the blind error, for a trial to say anything
MIN_PROPAGATION_WEIGHT = 0.02


@dataclass(frozen=True)
class Propagation:
    """One way to carry labels: in which coordinates, and at once or in steps along u.

    ``error`` is its mean squared error on the source range nearest to the target, learned from
    the rest, and ``right`` the share of that range whose class it gets right (0 of numbers);
    ``say`` is its weight among all ways.
    """

    coordinates: CoordinateMode
    stepwise: bool
    mse: float
    accuracy: float
    weight: float


@dataclass(frozen=True)
class PropagatedLabels:
    """What the source labels become when they are carried to each row.

    ``labels`` has a line for each way and a column for each row, ``sure`` how sure each is, from 0
    to 1. ``blind`` is the error of the mean of all labels, ``classes`` how many there are (1 of
    numbers). ``wide`` says whether the trial was
    across a gap; else nothing held across one, and the source next to the hidden range was learned
    from too.
    """

    propagations: tuple[Propagation, ...]
    labels: Array
    confidence: Array
    marginal_error: float
    holds_across_gap: bool
    n_classes: int

    @property
    def reliability(self) -> float:
        """``1 - error / blind`` of the best way in its trial: 0 is as good as the mean label."""
        return max(0.0, 1 - min(way.mse for way in self.propagations) / self.marginal_error)

    def agreement(self, predicted: Array) -> tuple[Array, Array]:
        """How far each row's prediction agrees with what was carried to it, and how sure that is.

        Class numbers agree or not; numbers by ``1 - (difference)^2 / V[y]``. Ways count by their
        say and by how sure they are of the row.
        """
        weights = self._weights * self.confidence
        total_weight = weights.sum(0)
        return (weights * self._agreement_by_propagation(predicted)).sum(0) / np.where(
            total_weight > 0, total_weight, 1.0
        ), total_weight

    def implied_accuracy(self, predicted: Array) -> tuple[float, float]:
        """The accuracy a of class numbers that agree with the carried ones as often as they do.

        ``agreement = a r + (1 - a) (1 - r) / (K - 1)`` for K classes, carried labels that are
        right with the share r of their trial, and errors that have nothing to do with each other.
        The mean over ways by their say, and the deviation between them.
        """
        estimates = []
        for propagation, agreement in zip(
            self.propagations, self._agreement_by_propagation(predicted).mean(1), strict=True
        ):
            chance = (1 - propagation.accuracy) / max(1, self.n_classes - 1)
            is_informative = (
                propagation.accuracy > chance
            )  # else nothing can be told, and the agreement stands
            estimates.append(
                (agreement - chance) / (propagation.accuracy - chance)
                if is_informative
                else agreement
            )
        implied = np.clip(estimates, 0, 1)
        weights = self._weights[:, 0]
        mean = float(np.average(implied, weights=weights))
        return mean, float(np.sqrt(np.average((implied - mean) ** 2, weights=weights)))

    def accuracy_on_agreement(self, predicted: Array, is_correct: Array) -> float:
        """The share that is right of the rows whose class is predicted as it was carried."""
        weight = (self._weights * self._agreement_by_propagation(predicted)).sum(0)
        # One more that is right: of no row at all nothing is known against it.
        return float(((weight * is_correct).sum() + 1) / (weight.sum() + 1))

    def select_rows(self, rows: Array) -> PropagatedLabels:
        """The same for these rows alone."""
        return replace(self, labels=self.labels[:, rows], confidence=self.confidence[:, rows])

    @property
    def _weights(self) -> Array:
        return np.array([way.weight for way in self.propagations])[:, None]

    def _agreement_by_propagation(self, predicted: Array) -> Array:
        if np.issubdtype(self.labels.dtype, np.integer):
            return np.asarray(self.labels == predicted, dtype=np.float64)
        same: Array = 1 - (self.labels - predicted) ** 2 / self.marginal_error
        return same


def propagate_labels(
    space: Space, x: Tensor, y: Tensor, u: Tensor, labelled: Tensor
) -> PropagatedLabels:
    """Carries the labels of the source rows to all rows, by several ways at once.

    Each way is a kernel ridge regression in coordinates that are fitted to x and u alone
    (`coordinate_candidates`): at once, or in steps along u from near to far, each step learning
    from the labels of the last. **Leave-range-out** gives each way its say: the third of the
    source that is nearest to the target is hidden and predicted from the third that is farthest;
    with an error e, where the best way has e0 and the mean label b, a way has the say
    ``exp(-(e - e0) / 0.05 b)``. No label of the target is read, and none of the networks asked.
    """
    trial = _Trial.from_rows(space, x, y, u, labelled)
    candidates = list(trial.candidates())
    results = {
        key: trial.evaluate(transformed, stepwise) for key, transformed, stepwise in candidates
    }
    marginal_errors = trial.marginal_errors
    holds_across_gap = _beats_marginal(
        min((far.squared_errors for far, _ in results.values()), key=np.mean), marginal_errors
    )
    # A walk that does not hold across a gap in the source does not hold to the farthest target.
    selected = {key: both[not (holds_across_gap or key[1])] for key, both in results.items()}
    min_error, marginal_error = (
        min(result.mse for result in selected.values()),
        float(marginal_errors.mean()),
    )
    propagated, propagations = [], []
    for key, seen, walks in candidates:
        answer = selected[key]
        weight = float(np.exp((min_error - answer.mse) / (WEIGHT_TEMPERATURE * marginal_error)))
        if weight >= MIN_PROPAGATION_WEIGHT:
            propagations.append(Propagation(*key, answer.mse, answer.accuracy, weight))
            propagated.append(trial.propagate(seen, walks))
    labels, confidence = (np.stack(each) for each in zip(*propagated, strict=True))
    return PropagatedLabels(
        tuple(propagations),
        labels,
        confidence,
        marginal_error,
        bool(holds_across_gap),
        trial.label_matrix.shape[1],
    )


def _beats_marginal(errors: Array, marginal_errors: Array) -> bool:
    """Whether it is better than the mean label, beyond chance and by more than a trifle."""
    gain = marginal_errors - errors
    two_std_errors = 2 * gain.std() / np.sqrt(len(gain))
    return bool(gain.mean() > max(two_std_errors, MIN_TRIAL_GAIN * marginal_errors.mean()))


@dataclass(frozen=True)
class _TrialResult:
    """The squared error of each hidden row, and the share whose class is right."""

    squared_errors: Array
    accuracy: float

    @property
    def mse(self) -> float:
        return float(self.squared_errors.mean())


@dataclass(frozen=True)
class _Trial:
    """The rows, and the thirds of the source: hidden (nearest to the target), middle, far."""

    space: Space
    x: Tensor
    index: Tensor
    u: Tensor
    labelled: Array
    label_matrix: Array
    thirds: tuple[Array, Array, Array]
    has_classes: bool

    @classmethod
    def from_rows(cls, space: Space, x: Tensor, y: Tensor, u: Tensor, labelled: Tensor) -> _Trial:
        source_rows = labelled.nonzero()[:, 0]
        if len(source_rows) < MIN_PROPAGATION_SOURCE_ROWS or len(source_rows) == len(x):
            raise ValueError(
                f"there are {len(source_rows)} labelled rows among {len(x)}; to carry labels "
                "along the "
                f"index takes at least {MIN_PROPAGATION_SOURCE_ROWS}, and unlabelled rows to "
                "carry them to."
            )
        has_classes = not y.is_floating_point()
        label_matrix = make_label_matrix(y)
        order = order_sources_by_target_distance(space, u, labelled).numpy()
        third = len(order) // 3
        thirds = (order[:third], order[third:-third], order[-third:])
        flat = reduce_columns(x.flatten(1))
        return cls(
            space, flat, space.embed(u), u, labelled.numpy(), label_matrix, thirds, has_classes
        )

    @property
    def marginal_errors(self) -> Array:
        """The squared error of the mean label on the hidden rows."""
        source_labels = self.label_matrix[self.labelled]
        errors: Array = ((self.label_matrix[self.thirds[0]] - source_labels.mean(0)) ** 2).sum(1)
        return errors

    def candidates(self) -> Iterator[tuple[tuple[CoordinateMode, bool], Array, bool]]:
        """Each way's name, x in its coordinates, and whether it walks."""
        width = self.index.shape[1]
        for mode, fit in coordinate_candidates(self.space, self.x.shape[1], width).items():
            transformed = (
                self.x if fit is None else fit(self.x, self.index, None)(self.x, self.index.float())
            )
            for stepwise in (False, True):
                yield (mode, stepwise), transformed.double().numpy(), stepwise

    def evaluate(self, transformed: Array, stepwise: bool) -> tuple[_TrialResult, _TrialResult]:
        """What is said of the hidden rows: learned from afar, and from all the rest."""
        hidden, middle, far = self.thirds
        near = np.concatenate([far, middle])
        return (
            self._evaluate_split(transformed, far, np.concatenate([middle, hidden]), stepwise),
            self._evaluate_split(transformed, near, hidden, stepwise),
        )

    def _evaluate_split(
        self, transformed: Array, train_rows: Array, test_rows: Array, stepwise: bool
    ) -> _TrialResult:
        """The hidden rows are the last of those asked about."""
        truth = self.label_matrix[self.thirds[0]]
        predicted = self._predict(transformed, train_rows, test_rows, stepwise)[-len(truth) :]
        accuracy = (predicted.argmax(1) == truth.argmax(1)).mean() if self.has_classes else 0.0
        return _TrialResult(((predicted - truth) ** 2).sum(1), float(accuracy))

    def propagate(self, transformed: Array, stepwise: bool) -> tuple[Array, Array]:
        """The label of every row, a class number or a number, and how sure it is."""
        source_rows = np.flatnonzero(self.labelled)
        target_rows = np.flatnonzero(~self.labelled)
        values = self.label_matrix.copy()
        values[target_rows] = self._predict(transformed, source_rows, target_rows, stepwise)
        if not self.has_classes:
            return values[:, 0], np.ones(len(values))
        order = np.sort(values, axis=1)
        return values.argmax(1), np.clip(order[:, -1] - order[:, -2], 0, 1)

    def _predict(
        self, transformed: Array, train_rows: Array, test_rows: Array, stepwise: bool
    ) -> Array:
        if not stepwise:
            kernel_rows = train_rows[evenly_spaced(len(train_rows), MAX_KERNEL_ROWS).numpy()]
            return kernel_ridge(
                transformed[kernel_rows], self.label_matrix[kernel_rows], transformed[test_rows]
            )
        rows = np.concatenate([train_rows, test_rows])
        distance = self.space.distance_to_set(self.u[rows], self.u[train_rows]).numpy()
        index = self.index.double().numpy()[rows]
        start = np.where(np.arange(len(rows)) < len(train_rows), 0.0, np.maximum(distance, 1e-300))
        pace = (self._step_size, self._neighbor_radius)
        return _propagate_stepwise(transformed[rows], index, start, self.label_matrix[rows], *pace)[
            len(train_rows) :
        ]

    @property
    def _step_size(self) -> float:
        """A stage of the way to the farthest target, in the metric of the space."""
        sources, targets = (self.u[torch.from_numpy(r)] for r in (self.labelled, ~self.labelled))
        return float(self.space.distance_to_set(targets, sources).max()) / N_STAGES

    @property
    def _neighbor_radius(self) -> float:
        """How near in the embedded index rows are that learn from each other: a few stages."""
        std = float(self.index.double().var(0).sum()) ** 0.5
        return float(3 * 3**0.5 * std / N_STAGES)


def _propagate_stepwise(
    x: Array, index: Array, distance: Array, label_matrix: Array, step: float, radius: float
) -> Array:
    """Labels of rows at a distance above 0, stage by stage from those at 0.

    A row learns from those that are near it in u as well as in x. What is passed on from stage to
    stage is the most likely class; what is given back is how likely each was.
    """
    hard_labels, soft_labels = label_matrix.copy(), label_matrix.copy()
    is_done = distance == 0
    has_classes = label_matrix.shape[1] > 1
    for max_distance in np.append(np.arange(step, distance.max(), step), np.inf):
        in_stage = ~is_done & (distance <= max_distance)
        if not in_stage.any():
            continue
        train_rows = _nearest_rows(index, np.flatnonzero(is_done), index[in_stage])
        soft_labels[in_stage] = kernel_ridge(
            x[train_rows],
            hard_labels[train_rows],
            x[in_stage],
            (index[train_rows], index[in_stage], radius),
        )
        hard_labels[in_stage] = (
            np.eye(label_matrix.shape[1])[soft_labels[in_stage].argmax(1)]
            if has_classes
            else soft_labels[in_stage]
        )
        is_done |= in_stage
    return soft_labels


def _nearest_rows(index: Array, train_rows: Array, query_index: Array) -> Array:
    """The known rows nearest in u to some of those asked about, as many as a kernel takes."""
    sampled_queries = query_index[evenly_spaced(len(query_index), 50).numpy()]
    order = squared_distances(index[train_rows], sampled_queries).min(1).argsort(kind="stable")
    return np.sort(train_rows[order[:MAX_STAGE_ROWS]])
