"""Validators: which of several runs to keep, decided without target labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
import torch
from scipy.special import entr
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from cida.array_types import Array
from cida.errors import did_you_mean
from cida.kernel_ridge import kernel_ridge, make_label_matrix, reduce_columns
from cida.selection.validation_set import CandidateOutputs, ValidationSet

__all__ = ["VALIDATORS", "Validator", "get_validator"]

Candidates = Sequence[CandidateOutputs]


class Validator(ABC):
    """Gives each run a score; the largest is kept. Target labels are never available to it.

    A subclass defines `scores`. Instances are called with a validation set and the outputs of all
    runs.

    Attributes
    ----------
    needs_classes : bool
        Whether labels must be classes.
    needs_held_out : bool
        Whether it needs source rows that no run was trained on.
    needs_refit : bool
        Whether each run is trained once more.
    """

    name: ClassVar[str] = "custom"  # the key in VALIDATORS, under which a choice is recorded
    needs_classes: ClassVar[bool] = False
    needs_held_out: ClassVar[bool] = False  # source rows that no run was trained on
    needs_refit: ClassVar[bool] = False  # another training for each run

    def __call__(self, data: ValidationSet, candidates: Candidates) -> Array:
        """Check the requirements and return the score of each run, in their order."""
        problem = ""
        if self.needs_classes and not data.has_classes:
            problem = "compares class probabilities, and y holds numbers."
        elif self.needs_held_out and not bool(data.held_out.any()):
            problem = "needs source rows that no run was trained on; hold some out."
        elif self.needs_refit and any(each.refit is None for each in candidates):
            problem = "trains each run again, and these runs cannot be."
        if problem:
            raise ValueError(f"validator {self.name!r} {problem}")
        return np.asarray(self.scores(data, candidates), dtype=np.float64)

    @abstractmethod
    def scores(self, data: ValidationSet, candidates: Candidates) -> Sequence[float] | Array:
        """The score of each run."""

    def margin(self, data: ValidationSet, one: CandidateOutputs, other: CandidateOutputs) -> float:
        """How much the scores of two equally good runs may differ by chance; 0 if unknown."""
        return 0.0


class PropagatedLabelAgreement(Validator):
    """``sum_i s_i [F(E(x_i)) = c_i] / sum_i s_i``: agreement with labels propagated along u.

    c are source labels that `propagate_labels` extends to the target rows without any of the runs,
    and s is their confidence. If they are right more often than chance and err in other places than
    the runs do, they order the runs by accuracy, however often they err.
    """

    name = "propagated-labels"

    def scores(self, data: ValidationSet, candidates: Candidates) -> list[float]:
        return [_propagated_agreement(data, candidate) for candidate in candidates]

    def margin(self, data: ValidationSet, one: CandidateOutputs, other: CandidateOutputs) -> float:
        return _chance_margin(data, one, other)


class PairwiseAgreement(Validator):
    """The mean agreement with all other runs on the target rows: wrong runs differ in their errors.

    It fails where most runs are wrong in the same way.
    """

    name = "pairwise-agreement"

    def scores(self, data: ValidationSet, candidates: Candidates) -> Array:
        agreement = _pairwise_agreement(data, candidates)
        np.fill_diagonal(agreement, 0)
        return np.asarray(agreement.sum(1) / max(1, len(candidates) - 1))


class Consensus(Validator):
    """``c_k + sum_j w_j a_kj / sum_j w_j``, with ``w_j = max(0, c_j - median c)``: the default.

    c is the agreement with the propagated labels (`PropagatedLabelAgreement`), ``a_kj`` the
    agreement of runs k and j on the target rows. The other runs count as far as the propagated
    labels support them: their common view is finer than that of labels propagated by a kernel.
    """

    name = "consensus"

    def scores(self, data: ValidationSet, candidates: Candidates) -> Array:
        agreement = np.array([_propagated_agreement(data, each) for each in candidates])
        weight = np.maximum(agreement - np.median(agreement), 0)
        if not weight.any():
            return agreement
        shared = _pairwise_agreement(data, candidates) @ weight / weight.sum()
        return np.asarray(agreement + shared)

    def margin(self, data: ValidationSet, one: CandidateOutputs, other: CandidateOutputs) -> float:
        return 2 * _chance_margin(data, one, other)  # a sum of two agreements


class LeaveRangeOut(Validator):
    """The accuracy on the source range nearest to the target, in a training without its labels.

    Each run is trained again with that third of the source labels hidden (minus the squared error
    where y is a number). It judges settings rather than weights, and costs one training for each
    run.
    """

    name = "leave-range-out"
    needs_refit = True

    def scores(self, data: ValidationSet, candidates: Candidates) -> list[float]:
        return [candidate.refit() for candidate in candidates if candidate.refit is not None]


class ImportanceWeighted(Validator):
    """``sum_i w_i [F(E(x_i)) = y_i] / sum_i w_i`` over held-out source rows, ``w = p_t / p_s``.

    Importance-weighted validation (Sugiyama et al., 2007; in encodings: You et al., 2019). The
    ratio of the densities of z comes from a logistic regression that tells target from source.
    """

    name = "importance-weighted"
    needs_held_out = True

    def scores(self, data: ValidationSet, candidates: Candidates) -> list[float]:
        return [self._score(data, candidate) for candidate in candidates]

    def _score(self, data: ValidationSet, candidate: CandidateOutputs) -> float:
        is_held_out = data.held_out.numpy()
        z = StandardScaler().fit_transform(candidate.encoding)
        model = LogisticRegression(max_iter=500).fit(z[~is_held_out], data.is_target[~is_held_out])
        odds = model.decision_function(z)[is_held_out]
        weight = np.exp(np.clip(odds - odds.max(), -50, 0))
        return float(np.average(_row_scores(data, candidate)[is_held_out], weights=weight))


class SoftNeighborhoodDensity(Validator):
    """The mean entropy of ``softmax_j(p_i p_j / 0.05 |p_i| |p_j|)`` over target rows i.

    Saito et al. (2021): a row whose probabilities p are like those of many others is in a dense
    neighbourhood.
    """

    name = "soft-neighborhood-density"
    needs_classes = True
    temperature = 0.05
    max_rows = 1500

    def scores(self, data: ValidationSet, candidates: Candidates) -> list[float]:
        rows = np.flatnonzero(data.is_target)[: self.max_rows]
        return [self._score(each.outputs[rows]) for each in candidates]

    def _score(self, p: Array) -> float:
        unit = p / np.linalg.norm(p, axis=1, keepdims=True)
        similarity = unit @ unit.T / self.temperature
        np.fill_diagonal(similarity, -np.inf)
        share = np.exp(similarity - similarity.max(1, keepdims=True))
        share /= share.sum(1, keepdims=True)
        return float(entr(share).sum(1).mean())


class InformationMaximization(Validator):
    """``H(mean p) - mean H(p)`` over target rows: certain of each row, all classes in use."""

    name = "information-maximization"
    needs_classes = True

    def scores(self, data: ValidationSet, candidates: Candidates) -> list[float]:
        target_outputs = [each.outputs[data.is_target] for each in candidates]
        return [float(entr(p.mean(0)).sum() - entr(p).sum(1).mean()) for p in target_outputs]


class NeighborAgreement(Validator):
    """How well a run's labels in one cell along u predict, from x, its labels in the next cell.

    A kernel ridge regression learns the run's own labels in each cell and predicts those of the
    nearest other cell. It detects labels that jump, not those that turn slowly.
    """

    name = "neighbor-agreement"
    n_cells = 20
    max_rows_per_cell = 300  # of a cell

    def scores(self, data: ValidationSet, candidates: Candidates) -> list[float]:
        x = reduce_columns(data.x.flatten(1)).double().numpy()
        pairs = list(self._pairs(data))
        return [self._score(x, pairs, each.predictions, data.has_classes) for each in candidates]

    def _pairs(self, data: ValidationSet) -> Iterator[tuple[Array, Array]]:
        """The rows of each cell, and those of the cell whose middle is nearest."""
        cells = data.space.make_bins(data.u, self.n_cells).cell_of_row.numpy()
        index = data.space.embed(data.u).double().numpy()
        rows = [np.flatnonzero(cells == cell) for cell in np.unique(cells)]
        if len(rows) < 2:
            raise ValueError("u fills a single cell, so there are no neighboring cells to compare.")
        centers = np.array([index[cell_rows].mean(0) for cell_rows in rows])
        distances = ((centers[:, None] - centers[None]) ** 2).sum(-1)
        np.fill_diagonal(distances, np.inf)
        for cell_rows, nearest in zip(rows, distances.argmin(1), strict=True):
            yield cell_rows[: self.max_rows_per_cell], rows[nearest][: self.max_rows_per_cell]

    def _score(
        self, x: Array, pairs: Sequence[tuple[Array, Array]], labels: Array, has_classes: bool
    ) -> float:
        matrix = make_label_matrix(torch.from_numpy(labels))
        parts = [kernel_ridge(x[train], matrix[train], x[test]) for train, test in pairs]
        predicted, observed = np.concatenate(parts), labels[np.concatenate([t for _, t in pairs])]
        if has_classes:
            return float((predicted.argmax(1) == observed).mean())
        mse = ((predicted[:, 0] - observed) ** 2).mean()
        return 1 - float(mse / max(float(observed.var()), 1e-300))


class LowestSourceLoss(Validator):
    """Minus the last prediction loss on the source: it uses the source only."""

    name = "lowest-loss"

    def scores(self, data: ValidationSet, candidates: Candidates) -> list[float]:
        return [-candidate.loss for candidate in candidates]


class LastRun(Validator):
    """The run that was made last: no choice at all."""

    name = "last"

    def scores(self, data: ValidationSet, candidates: Candidates) -> list[float]:
        return [float(number) for number in range(len(candidates))]


VALIDATORS: dict[str, type[Validator]] = {
    validator.name: validator
    for validator in (
        Consensus,
        PropagatedLabelAgreement,
        PairwiseAgreement,
        LeaveRangeOut,
        ImportanceWeighted,
        SoftNeighborhoodDensity,
        InformationMaximization,
        NeighborAgreement,
        LowestSourceLoss,
        LastRun,
    )
}


def get_validator(validator: str | Validator) -> Validator:
    """Return the validator of a name, or the one that was given.

    Parameters
    ----------
    validator : str or Validator
        A name in ``VALIDATORS``, such as "consensus", or an instance.

    Returns
    -------
    Validator
        The validator.

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    if isinstance(validator, Validator):
        return validator
    if validator not in VALIDATORS:
        hint = did_you_mean(validator, VALIDATORS)
        raise ValueError(f"validator is {validator!r}; {hint}known are {', '.join(VALIDATORS)}.")
    return VALIDATORS[validator]()


def _propagated_agreement(data: ValidationSet, candidate: CandidateOutputs) -> float:
    both = data.propagated_labels.agreement(candidate.predictions)
    agreement, weight = (values[data.is_target] for values in both)
    return float(np.average(agreement, weights=weight)) if weight.any() else 0.0


def _chance_margin(data: ValidationSet, one: CandidateOutputs, other: CandidateOutputs) -> float:
    """Two standard errors of the difference of two agreements: ``2 sqrt(d / n)``.

    d is the share of the n target rows on which the runs differ (of numbers: by how much they do).
    """
    disagreement = 1 - float(_pairwise_agreement(data, [one, other])[0, 1])
    return 2 * float(np.sqrt(max(disagreement, 0.0) / data.is_target.sum()))


def _pairwise_agreement(data: ValidationSet, candidates: Candidates) -> Array:
    """How far each two runs agree on the target rows; numbers by ``1 - difference^2 / V[y]``."""
    labels = np.stack([each.predictions[data.is_target] for each in candidates])
    if data.has_classes:
        return np.array([(labels == own).mean(1) for own in labels])
    variance = max(float(data.y[data.labelled].double().numpy().var()), 1e-300)
    return np.array([1 - ((labels - own) ** 2).mean(1) / variance for own in labels])


def _row_scores(data: ValidationSet, candidate: CandidateOutputs) -> Array:
    """Whether each row is predicted right, or minus its squared error; for source rows alone."""
    truth = data.y.numpy().reshape(len(data), -1)[:, 0]
    if data.has_classes:
        return np.asarray(candidate.predictions == truth, dtype=np.float64)
    return np.asarray(-((candidate.predictions - truth) ** 2), dtype=np.float64)
