"""Source labels propagated along the index, weighted by trials inside the source."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from cida.array_types import Array
from cida.coordinates.trial import CoordinateMode, coordinate_candidates
from cida.indexing import evenly_spaced
from cida.kernel_ridge import kernel_ridge, make_label_matrix, reduce_columns, squared_distances
from cida.selection.source_ranges import split_source_thirds
from cida.spaces import Space

__all__ = ["PropagatedLabels", "Propagation", "propagate_labels"]

MAX_KERNEL_ROWS = 1000  # training rows of a kernel: its matrix grows with their square
MAX_STAGE_ROWS = 400  # training rows of one stage of a stepwise propagation
N_STAGES = 20  # of a stepwise propagation to the farthest target
MIN_PROPAGATION_SOURCE_ROWS = 60  # fewer cannot be split into a range to learn and one to predict
# How fast the weight of a propagation falls with its error in the trial, as a share of the marginal
# error. Chosen among 0.05, 0.1, 0.2 and 0.4 (all about equal) on plane, noisy index and ladder.
WEIGHT_TEMPERATURE = 0.05
MIN_TRIAL_GAIN = 0.05  # over the marginal error, below which a trial is not conclusive
MIN_PROPAGATION_WEIGHT = 0.02  # propagations of smaller weight are dropped


@dataclass(frozen=True)
class Propagation:
    """One way to propagate labels: in which coordinates, and at once or stepwise along u.

    ``mse`` is its mean squared error on the source range nearest to the target, learned from the
    rest, and ``accuracy`` the share of that range whose class it gets right (0 for numbers);
    ``weight`` is its weight among all propagations.
    """

    coordinates: CoordinateMode
    stepwise: bool
    mse: float
    accuracy: float
    weight: float


@dataclass(frozen=True)
class PropagatedLabels:
    """The source labels propagated to each row, by several propagations.

    ``labels`` has a line for each propagation and a column for each row, and ``confidence`` has
    values from 0 to 1 of the same shape. ``marginal_error`` is the error of the mean label,
    ``n_classes`` the number of classes (1 for numbers). ``holds_across_gap`` says whether the trial
    left a gap between the rows learned from and those predicted; if no propagation beats the mean
    label across a gap, the source next to the hidden range is learned from too.
    """

    propagations: tuple[Propagation, ...]
    labels: Array
    confidence: Array
    marginal_error: float
    holds_across_gap: bool
    n_classes: int

    @property
    def reliability(self) -> float:
        """``1 - mse / marginal_error`` of the best propagation: 0 is as good as the mean label."""
        return max(0.0, 1 - min(each.mse for each in self.propagations) / self.marginal_error)

    def agreement(self, predicted: Array) -> tuple[Array, Array]:
        """How far each row's prediction agrees with the propagated labels, and the row's weight.

        Classes agree or not; numbers by ``1 - (difference)^2 / V[y]``. Propagations are weighted by
        their weight and by their confidence in the row.
        """
        weights = self._weights * self.confidence
        total = weights.sum(0)
        agreement = (weights * self._agreement_by_propagation(predicted)).sum(0)
        return agreement / np.where(total > 0, total, 1.0), total

    def implied_accuracy(self, predicted: Array) -> tuple[float, float]:
        """The accuracy a of predicted classes that their agreement with the labels implies.

        ``agreement = a r + (1 - a) (1 - r) / (K - 1)`` for K classes, propagated labels of the
        accuracy r of their trial, and independent errors. The weighted mean over propagations, and
        the standard deviation between them.
        """
        agreement = self._agreement_by_propagation(predicted).mean(1)
        accuracy = np.array([each.accuracy for each in self.propagations])
        chance = (1 - accuracy) / max(1, self.n_classes - 1)
        is_informative = accuracy > chance  # otherwise the agreement itself is used
        gain = np.where(is_informative, accuracy - chance, 1.0)
        implied = np.clip(np.where(is_informative, (agreement - chance) / gain, agreement), 0, 1)
        weights = self._weights[:, 0]
        mean = float(np.average(implied, weights=weights))
        return mean, float(np.sqrt(np.average((implied - mean) ** 2, weights=weights)))

    def accuracy_on_agreement(self, predicted: Array, is_correct: Array) -> float:
        """The accuracy on the rows whose predicted class is the propagated one."""
        weight = (self._weights * self._agreement_by_propagation(predicted)).sum(0)
        # One more row counts as correct, so that without any such row the accuracy is 1.
        return float(((weight * is_correct).sum() + 1) / (weight.sum() + 1))

    def select_rows(self, rows: Array) -> PropagatedLabels:
        """The same for these rows alone."""
        return replace(self, labels=self.labels[:, rows], confidence=self.confidence[:, rows])

    @property
    def _weights(self) -> Array:
        return np.array([each.weight for each in self.propagations])[:, None]

    def _agreement_by_propagation(self, predicted: Array) -> Array:
        if np.issubdtype(self.labels.dtype, np.integer):
            return np.asarray(self.labels == predicted, dtype=np.float64)
        return np.asarray(1 - (self.labels - predicted) ** 2 / self.marginal_error)


def propagate_labels(
    space: Space, x: Tensor, y: Tensor, u: Tensor, labelled: Tensor
) -> PropagatedLabels:
    """Propagate the labels of the source rows to all rows, in several ways at once.

    Each propagation is a kernel ridge regression in coordinates that are fitted to x and u alone
    (`coordinate_candidates`): at once, or stepwise along u from near to far, each step learning
    from the labels of the step before. **Leave-range-out** sets the weights: the third of the
    source nearest to the target is hidden and predicted from the farthest third; with an error e,
    where the best propagation has e0 and the mean label b, the weight is
    ``exp(-(e - e0) / 0.05 b)``. No target label is read, and no network is used.
    """
    trial = _Trial.from_rows(space, x, y, u, labelled)
    candidates = trial.candidates()
    results = {key: trial.evaluate(x, key[1]) for key, x in candidates.items()}
    marginal_errors = trial.marginal_errors
    best_errors = min((far.squared_errors for far, _ in results.values()), key=np.mean)
    holds_across_gap = _beats_marginal(best_errors, marginal_errors)
    # A stepwise propagation that fails across a gap in the source fails to the farthest target.
    selected = {key: both[not (holds_across_gap or key[1])] for key, both in results.items()}
    min_error = min(result.mse for result in selected.values())
    marginal_error = float(marginal_errors.mean())
    propagated, propagations = [], []
    for key, result in selected.items():
        weight = float(np.exp((min_error - result.mse) / (WEIGHT_TEMPERATURE * marginal_error)))
        if weight >= MIN_PROPAGATION_WEIGHT:
            propagations.append(Propagation(*key, result.mse, result.accuracy, weight))
            propagated.append(trial.propagate(candidates[key], key[1]))
    labels, confidence = (np.stack(each) for each in zip(*propagated, strict=True))
    n_classes = trial.label_matrix.shape[1]
    return PropagatedLabels(
        tuple(propagations), labels, confidence, marginal_error, holds_across_gap, n_classes
    )


def _beats_marginal(errors: Array, marginal_errors: Array) -> bool:
    """Whether it is better than the mean label, by two standard errors and a minimal gain."""
    gain = marginal_errors - errors
    two_std_errors = 2 * gain.std() / np.sqrt(len(gain))
    return bool(gain.mean() > max(two_std_errors, MIN_TRIAL_GAIN * marginal_errors.mean()))


@dataclass(frozen=True)
class _TrialResult:
    """The squared error of each hidden row, and the accuracy of the predicted classes."""

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
                f"there are {len(source_rows)} labelled rows among {len(x)}; propagating labels "
                f"along the index takes at least {MIN_PROPAGATION_SOURCE_ROWS}, and unlabelled "
                "rows."
            )
        near, middle, far = (rows.numpy() for rows in split_source_thirds(space, u, labelled))
        return cls(
            space=space,
            x=reduce_columns(x.flatten(1)),
            index=space.embed(u),
            u=u,
            labelled=labelled.numpy(),
            label_matrix=make_label_matrix(y),
            thirds=(near, middle, far),
            has_classes=not y.is_floating_point(),
        )

    @property
    def marginal_errors(self) -> Array:
        """The squared error of the mean label on the hidden rows."""
        source_labels = self.label_matrix[self.labelled]
        return np.asarray(((self.label_matrix[self.thirds[0]] - source_labels.mean(0)) ** 2).sum(1))

    def candidates(self) -> dict[tuple[CoordinateMode, bool], Array]:
        """x in the coordinates of each propagation, at once and stepwise."""
        candidates = {}
        width, e = self.index.shape[1], self.index.float()
        for mode, fit in coordinate_candidates(self.space, self.x.shape[1], width).items():
            x = self.x if fit is None else fit(self.x, self.index, None)(self.x, e)
            for stepwise in (False, True):
                candidates[mode, stepwise] = x.double().numpy()
        return candidates

    def evaluate(self, x: Array, stepwise: bool) -> tuple[_TrialResult, _TrialResult]:
        """The results on the hidden rows: learned from the farthest third, and from all others."""
        hidden, middle, far = self.thirds
        return (
            self._evaluate_split(x, far, np.concatenate([middle, hidden]), stepwise),
            self._evaluate_split(x, np.concatenate([far, middle]), hidden, stepwise),
        )

    def _evaluate_split(
        self, x: Array, train_rows: Array, test_rows: Array, stepwise: bool
    ) -> _TrialResult:
        """The hidden rows are the last of the test rows."""
        truth = self.label_matrix[self.thirds[0]]
        predicted = self._predict(x, train_rows, test_rows, stepwise)[-len(truth) :]
        accuracy = (predicted.argmax(1) == truth.argmax(1)).mean() if self.has_classes else 0.0
        return _TrialResult(((predicted - truth) ** 2).sum(1), float(accuracy))

    def propagate(self, x: Array, stepwise: bool) -> tuple[Array, Array]:
        """The label of every row, a class or a number, and the confidence in it."""
        source_rows, target_rows = np.flatnonzero(self.labelled), np.flatnonzero(~self.labelled)
        values = self.label_matrix.copy()
        values[target_rows] = self._predict(x, source_rows, target_rows, stepwise)
        if not self.has_classes:
            return values[:, 0], np.ones(len(values))
        order = np.sort(values, axis=1)
        return values.argmax(1), np.clip(order[:, -1] - order[:, -2], 0, 1)

    def _predict(self, x: Array, train_rows: Array, test_rows: Array, stepwise: bool) -> Array:
        if not stepwise:
            train_rows = train_rows[evenly_spaced(len(train_rows), MAX_KERNEL_ROWS).numpy()]
            return kernel_ridge(x[train_rows], self.label_matrix[train_rows], x[test_rows])
        rows, n_train = np.concatenate([train_rows, test_rows]), len(train_rows)
        distance = self.space.distance_to_set(self.u[rows], self.u[train_rows]).numpy()
        start = np.where(np.arange(len(rows)) < n_train, 0.0, np.maximum(distance, 1e-300))
        index, labels = self.index.double().numpy()[rows], self.label_matrix[rows]
        pace = (self._step_size, self._neighbor_radius)
        return _propagate_stepwise(x[rows], index, start, labels, *pace)[n_train:]

    @property
    def _step_size(self) -> float:
        """The length of a stage on the way to the farthest target, in the metric of the space."""
        sources, targets = (self.u[torch.from_numpy(r)] for r in (self.labelled, ~self.labelled))
        return float(self.space.distance_to_set(targets, sources).max()) / N_STAGES

    @property
    def _neighbor_radius(self) -> float:
        """The radius in the embedded index within which rows learn from each other."""
        std = float(self.index.double().var(0).sum()) ** 0.5
        return float(3 * 3**0.5 * std / N_STAGES)


def _propagate_stepwise(
    x: Array, index: Array, distance: Array, label_matrix: Array, step: float, radius: float
) -> Array:
    """Propagate labels from rows at distance 0 to all others, stage by stage.

    A row learns from rows that are near it in u as well as in x. Stages pass on the most likely
    class; the result is the fitted value of each class.
    """
    hard_labels, soft_labels = label_matrix.copy(), label_matrix.copy()
    is_done = distance == 0
    for max_distance in np.append(np.arange(step, distance.max(), step), np.inf):
        in_stage = ~is_done & (distance <= max_distance)
        if not in_stage.any():
            continue
        train_rows = _nearest_rows(index, np.flatnonzero(is_done), index[in_stage])
        near = (index[train_rows], index[in_stage], radius)
        labels = kernel_ridge(x[train_rows], hard_labels[train_rows], x[in_stage], near)
        soft_labels[in_stage] = hard_labels[in_stage] = labels
        if labels.shape[1] > 1:
            hard_labels[in_stage] = np.eye(labels.shape[1])[labels.argmax(1)]
        is_done |= in_stage
    return soft_labels


def _nearest_rows(index: Array, train_rows: Array, query_index: Array) -> Array:
    """The training rows nearest in u to a sample of the queries, at most 400."""
    sampled_queries = query_index[evenly_spaced(len(query_index), 50).numpy()]
    order = squared_distances(index[train_rows], sampled_queries).min(1).argsort(kind="stable")
    return np.sort(train_rows[order[:MAX_STAGE_ROWS]])
