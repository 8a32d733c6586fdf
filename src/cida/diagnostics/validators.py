"""Which of several runs to keep, told without a label of the target."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.special import entr
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from cida.diagnostics.field import Candidate, Field
from cida.diagnostics.kernels import columns, ridge
from cida.words import did_you_mean

__all__ = [
    "VALIDATORS",
    "CarriedLabels",
    "Consensus",
    "ImportanceWeighted",
    "InformationMaximisation",
    "Last",
    "LeaveRangeOut",
    "LowestLoss",
    "NeighbourAgreement",
    "Peers",
    "SoftNeighbourhoodDensity",
    "Validator",
    "named_validator",
]

Array = np.ndarray[Any, Any]


class Validator(ABC):
    """Gives each run a score; the largest is kept. No label of the target is there to be read."""

    needs_classes: ClassVar[bool] = False
    needs_held_out: ClassVar[bool] = False  # source rows that no run was trained on
    needs_refit: ClassVar[bool] = False  # another training for each run

    def __call__(self, field: Field, candidates: Sequence[Candidate]) -> Array:
        """The score of each run, in their order."""
        name = type(self).__name__
        if self.needs_classes and not field.has_classes:
            raise ValueError(f"{name} compares probabilities of classes, and y holds numbers.")
        if self.needs_held_out and not bool(field.held.any()):
            raise ValueError(f"{name} needs source rows that no run was trained on; hold some out.")
        if self.needs_refit and any(each.refit is None for each in candidates):
            raise ValueError(f"{name} trains each run again, and these runs cannot be.")
        return np.asarray(self.scores(field, candidates), dtype=np.float64)

    @abstractmethod
    def scores(self, field: Field, candidates: Sequence[Candidate]) -> Sequence[float] | Array:
        """The score of each run."""

    def margin(self, field: Field, one: Candidate, other: Candidate) -> float:
        """By how much the scores of two equally good runs may differ by chance; 0 if unknown."""
        return 0.0


class CarriedLabels(Validator):
    """``sum_i s_i [F(E(x_i)) = c_i] / sum_i s_i``: agreement with labels carried along u.

    c are source labels that `carry` carries to the target rows without any of the runs, s how sure
    they are. A carrier that is right more often than chance and errs elsewhere than the runs do
    puts them in the order of their accuracy, however often it errs.
    """

    def scores(self, field: Field, candidates: Sequence[Candidate]) -> list[float]:
        return [_carried(field, candidate) for candidate in candidates]

    def margin(self, field: Field, one: Candidate, other: Candidate) -> float:
        return _by_chance(field, one, other)


class Peers(Validator):
    """The mean agreement with all other runs on the target rows: wrong runs differ in their wrongs.

    It fails where most runs are wrong in the same way.
    """

    def scores(self, field: Field, candidates: Sequence[Candidate]) -> Array:
        agreement = _agreements(field, candidates)
        np.fill_diagonal(agreement, 0)
        scores: Array = agreement.sum(1) / max(1, len(candidates) - 1)
        return scores


class Consensus(Validator):
    """``c_k + sum_j w_j a_kj / sum_j w_j``, with ``w_j = max(0, c_j - median c)``: the default.

    c is the agreement with the carried labels (`CarriedLabels`), ``a_kj`` the agreement of runs k
    and j on the target rows. So runs are asked too, as far as the carried labels speak for them:
    their common view is finer than that of labels carried by a kernel.
    """

    def scores(self, field: Field, candidates: Sequence[Candidate]) -> Array:
        carried = np.array([_carried(field, candidate) for candidate in candidates])
        weight = np.maximum(carried - np.median(carried), 0)
        if not weight.any():
            return carried
        scores: Array = carried + _agreements(field, candidates) @ weight / weight.sum()
        return scores

    def margin(self, field: Field, one: Candidate, other: Candidate) -> float:
        return 2 * _by_chance(field, one, other)  # a sum of two agreements


class LeaveRangeOut(Validator):
    """The accuracy on the source range nearest to the target, in a game that was not shown it.

    Each run is played again with that third of the source labels hidden (minus the squared error
    where y is a number). It judges settings rather than weights, and costs a training a run.
    """

    needs_refit = True

    def scores(self, field: Field, candidates: Sequence[Candidate]) -> list[float]:
        return [candidate.refit() for candidate in candidates if candidate.refit is not None]


class ImportanceWeighted(Validator):
    """``sum_i w_i [F(E(x_i)) = y_i] / sum_i w_i`` over held-out source rows, ``w = p_t / p_s``.

    Importance-weighted validation (Sugiyama et al., 2007; in encodings: You et al., 2019). The
    ratio of the densities of z is that of a logistic regression which tells target from source.
    """

    needs_held_out = True

    def scores(self, field: Field, candidates: Sequence[Candidate]) -> list[float]:
        return [self._score(field, candidate) for candidate in candidates]

    def _score(self, field: Field, candidate: Candidate) -> float:
        held, target = field.held.numpy(), field.target
        z = StandardScaler().fit_transform(candidate.encoding)
        seen = ~held
        odds = LogisticRegression(max_iter=500).fit(z[seen], target[seen]).decision_function(z)
        weight = np.exp(np.clip(odds[held] - odds[held].max(), -50, 0))
        return float(np.average(_right(field, candidate)[held], weights=weight))


class SoftNeighbourhoodDensity(Validator):
    """The mean entropy of ``softmax_j(p_i p_j / 0.05 |p_i| |p_j|)`` over target rows i.

    Saito et al. (2021): a row whose probabilities p are like those of many others sits in a dense
    neighbourhood.
    """

    needs_classes = True
    temperature = 0.05
    most_rows = 1500

    def scores(self, field: Field, candidates: Sequence[Candidate]) -> list[float]:
        return [self._score(each.outputs[field.target][: self.most_rows]) for each in candidates]

    def _score(self, p: Array) -> float:
        unit = p / np.linalg.norm(p, axis=1, keepdims=True)
        likeness = unit @ unit.T / self.temperature
        np.fill_diagonal(likeness, -np.inf)
        share = np.exp(likeness - likeness.max(1, keepdims=True))
        share /= share.sum(1, keepdims=True)
        return float(entr(share).sum(1).mean())


class InformationMaximisation(Validator):
    """``H(mean p) - mean H(p)`` over target rows: sure of each row, and of all classes in turn."""

    needs_classes = True

    def scores(self, field: Field, candidates: Sequence[Candidate]) -> list[float]:
        parts = [candidate.outputs[field.target] for candidate in candidates]
        return [float(entr(p.mean(0)).sum() - entr(p).sum(1).mean()) for p in parts]


class NeighbourAgreement(Validator):
    """How well a run's labels in one cell along u foretell, by x, its labels in the next cell.

    A kernel ridge regression learns the run's own labels in each cell and is asked about the
    nearest other cell. It sees labels that jump, not those that turn slowly.
    """

    cells = 20
    most_rows = 300  # of a cell

    def scores(self, field: Field, candidates: Sequence[Candidate]) -> list[float]:
        x = columns(field.x.flatten(1)).double().numpy()
        pairs = list(self._pairs(field))
        return [self._score(field, x, pairs, each.labels) for each in candidates]

    def _pairs(self, field: Field) -> Iterator[tuple[Array, Array]]:
        """The rows of each cell, and those of the cell whose middle is nearest."""
        cells = field.space.bins(field.u, self.cells).rows.numpy()
        index = field.space.embed(field.u).double().numpy()
        rows = [np.flatnonzero(cells == cell) for cell in np.unique(cells)]
        if len(rows) < 2:
            raise ValueError("u fills a single cell, so there are no neighbours to agree.")
        middles = np.array([index[mine].mean(0) for mine in rows])
        away = ((middles[:, None] - middles[None]) ** 2).sum(-1)
        np.fill_diagonal(away, np.inf)
        for mine, nearest in zip(rows, away.argmin(1), strict=True):
            yield mine[: self.most_rows], rows[nearest][: self.most_rows]

    def _score(
        self, field: Field, x: Array, pairs: Sequence[tuple[Array, Array]], labels: Array
    ) -> float:
        wanted = np.eye(int(labels.max()) + 1)[labels] if field.has_classes else labels[:, None]
        foretold = [ridge(x[known], wanted[known], x[asked]) for known, asked in pairs]
        found, own = np.concatenate(foretold), labels[np.concatenate([a for _, a in pairs])]
        if field.has_classes:
            return float((found.argmax(1) == own).mean())
        return 1 - float(((found[:, 0] - own) ** 2).mean() / max(float(own.var()), 1e-300))


class LowestLoss(Validator):
    """Minus the last prediction loss on the source: what looks at the source alone."""

    def scores(self, field: Field, candidates: Sequence[Candidate]) -> list[float]:
        return [-candidate.loss for candidate in candidates]


class Last(Validator):
    """The run that was made last: no choice at all."""

    def scores(self, field: Field, candidates: Sequence[Candidate]) -> list[float]:
        return [float(number) for number in range(len(candidates))]


VALIDATORS: dict[str, type[Validator]] = {
    "consensus": Consensus,
    "carried-labels": CarriedLabels,
    "peers": Peers,
    "leave-range-out": LeaveRangeOut,
    "importance-weighted": ImportanceWeighted,
    "soft-neighbourhood-density": SoftNeighbourhoodDensity,
    "information-maximisation": InformationMaximisation,
    "neighbour-agreement": NeighbourAgreement,
    "lowest-loss": LowestLoss,
    "last": Last,
}


def named_validator(validator: str | Validator) -> Validator:
    """The validator of this name, or the one that was given."""
    if isinstance(validator, Validator):
        return validator
    if validator not in VALIDATORS:
        hint = did_you_mean(validator, VALIDATORS)
        raise ValueError(f"validator is {validator!r}; {hint}known are {', '.join(VALIDATORS)}.")
    return VALIDATORS[validator]()


def _carried(field: Field, candidate: Candidate) -> float:
    same, weight = field.carried.agreement(candidate.labels)
    target = field.target
    if not weight[target].any():
        return 0.0
    return float(np.average(same[target], weights=weight[target]))


def _by_chance(field: Field, one: Candidate, other: Candidate) -> float:
    """Two standard errors of the difference of two agreements: ``2 sqrt(d / n)``.

    d is the share of the n target rows on which the runs differ (of numbers: by how much they do).
    """
    differ = 1 - float(_agreements(field, [one, other])[0, 1])
    return 2 * float(np.sqrt(max(differ, 0.0) / field.target.sum()))


def _agreements(field: Field, candidates: Sequence[Candidate]) -> Array:
    """How far each two runs agree on the target rows; numbers by ``1 - difference^2 / V[y]``."""
    labels = np.stack([candidate.labels[field.target] for candidate in candidates])
    if field.has_classes:
        return np.array([(labels == mine).mean(1) for mine in labels])
    known = field.y[field.labelled].double().numpy()
    size = max(float(known.var()), 1e-300)
    return np.array([1 - ((labels - mine) ** 2).mean(1) / size for mine in labels])


def _right(field: Field, candidate: Candidate) -> Array:
    """Whether each row is predicted right, or minus its squared error; for source rows alone."""
    truth = field.y.numpy().reshape(len(field), -1)[:, 0]
    if field.has_classes:
        return np.asarray(candidate.labels == truth, dtype=np.float64)
    return np.asarray(-((candidate.labels - truth) ** 2), dtype=np.float64)
