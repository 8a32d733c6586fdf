"""Source labels carried along the index, by ways that the source itself vouches for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cida.diagnostics.coordinates import IndexMode, coordinate_candidates
from cida.diagnostics.kernels import columns, ridge, squares
from cida.diagnostics.ranges import nearest_first
from cida.space import Space, thinned

__all__ = ["Carried", "Way", "carry"]

Array = np.ndarray[Any, Any]

MOST_KNOWN = 1000  # rows that a kernel learns from: it has as many entries as they have pairs
MOST_NEAR = 400  # of a stage of a walk
STAGES = 20  # of a walk to the farthest target
FEWEST_SOURCES = 60  # fewer cannot be parted into a range to learn and one to ask about
# How fast a way loses its say with its error in the trial, in shares of the blind error. Chosen
# among 0.05, 0.1, 0.2 and 0.4 (all did nearly alike) on the worlds plane, noisy index and ladder.
PATIENCE = 0.05
LEAST_GAIN = 0.05  # over the blind error, for a trial to say anything
LEAST_SAY = 0.02


@dataclass(frozen=True)
class Way:
    """One way to carry labels: in which coordinates, and at once or in steps along u.

    ``error`` is its mean squared error on the source range nearest to the target, learned from
    the rest, and ``right`` the share of that range whose class it gets right (0 of numbers);
    ``say`` is its weight among all ways.
    """

    coordinates: IndexMode
    walks: bool
    error: float
    right: float
    say: float


@dataclass(frozen=True)
class Carried:
    """What the source labels become when they are carried to each row.

    ``labels`` has a line for each way and a column for each row, ``sure`` how sure each is, from 0
    to 1. ``blind`` is the error of the mean of all labels, ``classes`` how many there are (1 of
    numbers). ``wide`` says whether the trial was
    across a gap; else nothing held across one, and the source next to the hidden range was learned
    from too.
    """

    ways: tuple[Way, ...]
    labels: Array
    sure: Array
    blind: float
    wide: bool
    classes: int

    @property
    def reliability(self) -> float:
        """``1 - error / blind`` of the best way in its trial: 0 is as good as the mean label."""
        return max(0.0, 1 - min(way.error for way in self.ways) / self.blind)

    def agreement(self, predicted: Array) -> tuple[Array, Array]:
        """How far each row's prediction agrees with what was carried to it, and how sure that is.

        Class numbers agree or not; numbers by ``1 - (difference)^2 / V[y]``. Ways count by their
        say and by how sure they are of the row.
        """
        say = self._says * self.sure
        weight = say.sum(0)
        return (say * self._same(predicted)).sum(0) / np.where(weight > 0, weight, 1.0), weight

    def implied_accuracy(self, predicted: Array) -> tuple[float, float]:
        """The accuracy a of class numbers that agree with the carried ones as often as they do.

        ``agreement = a r + (1 - a) (1 - r) / (K - 1)`` for K classes, carried labels that are
        right with the share r of their trial, and errors that have nothing to do with each other.
        The mean over ways by their say, and the deviation between them.
        """
        found = []
        for way, agreement in zip(self.ways, self._same(predicted).mean(1), strict=True):
            chance = (1 - way.right) / max(1, self.classes - 1)
            known = way.right > chance  # else nothing can be told, and the agreement stands
            found.append((agreement - chance) / (way.right - chance) if known else agreement)
        implied = np.clip(found, 0, 1)
        says = self._says[:, 0]
        middle = float(np.average(implied, weights=says))
        return middle, float(np.sqrt(np.average((implied - middle) ** 2, weights=says)))

    def right_where_agreed(self, predicted: Array, right: Array) -> float:
        """The share that is right of the rows whose class is predicted as it was carried."""
        weight = (self._says * self._same(predicted)).sum(0)
        # One more that is right: of no row at all nothing is known against it.
        return float(((weight * right).sum() + 1) / (weight.sum() + 1))

    def at(self, rows: Array) -> Carried:
        """The same for these rows alone."""
        return replace(self, labels=self.labels[:, rows], sure=self.sure[:, rows])

    @property
    def _says(self) -> Array:
        return np.array([way.say for way in self.ways])[:, None]

    def _same(self, predicted: Array) -> Array:
        if np.issubdtype(self.labels.dtype, np.integer):
            return np.asarray(self.labels == predicted, dtype=np.float64)
        same: Array = 1 - (self.labels - predicted) ** 2 / self.blind
        return same


def carry(space: Space, x: Tensor, y: Tensor, u: Tensor, labelled: Tensor) -> Carried:
    """Carries the labels of the source rows to all rows, by several ways at once.

    Each way is a kernel ridge regression in coordinates that are fitted to x and u alone
    (`coordinate_candidates`): at once, or in steps along u from near to far, each step learning
    from the labels of the last. **Leave-range-out** gives each way its say: the third of the
    source that is nearest to the target is hidden and predicted from the third that is farthest;
    with an error e, where the best way has e0 and the mean label b, a way has the say
    ``exp(-(e - e0) / 0.05 b)``. No label of the target is read, and none of the networks asked.
    """
    trial = _Trial.of(space, x, y, u, labelled)
    tried = list(trial.ways())
    answers = {key: trial.answers(seen, walks) for key, seen, walks in tried}
    blind = trial.blind
    wide = _holds(min((far.errors for far, _ in answers.values()), key=np.mean), blind)
    # A walk that does not hold across a gap in the source does not hold to the farthest target.
    taken = {key: both[not (wide or key[1])] for key, both in answers.items()}
    least, middle = min(answer.error for answer in taken.values()), float(blind.mean())
    found, ways = [], []
    for key, seen, walks in tried:
        answer = taken[key]
        say = float(np.exp((least - answer.error) / (PATIENCE * middle)))
        if say >= LEAST_SAY:
            ways.append(Way(*key, answer.error, answer.right, say))
            found.append(trial.carry(seen, walks))
    labels, sure = (np.stack(each) for each in zip(*found, strict=True))
    return Carried(tuple(ways), labels, sure, middle, bool(wide), trial.wanted.shape[1])


def _holds(errors: Array, blind: Array) -> bool:
    """Whether it is better than the mean label, beyond chance and by more than a trifle."""
    gain = blind - errors
    chance = 2 * gain.std() / np.sqrt(len(gain))
    return bool(gain.mean() > max(chance, LEAST_GAIN * blind.mean()))


@dataclass(frozen=True)
class _Answer:
    """The squared error of each hidden row, and the share whose class is right."""

    errors: Array
    right: float

    @property
    def error(self) -> float:
        return float(self.errors.mean())


@dataclass(frozen=True)
class _Trial:
    """The rows, and the thirds of the source: hidden (nearest to the target), middle, far."""

    space: Space
    x: Tensor
    index: Tensor
    u: Tensor
    labelled: Array
    wanted: Array
    thirds: tuple[Array, Array, Array]
    classes: bool

    @classmethod
    def of(cls, space: Space, x: Tensor, y: Tensor, u: Tensor, labelled: Tensor) -> _Trial:
        sources = labelled.nonzero()[:, 0]
        if len(sources) < FEWEST_SOURCES or len(sources) == len(x):
            raise ValueError(
                f"there are {len(sources)} labelled rows among {len(x)}; to carry labels along the "
                f"index takes at least {FEWEST_SOURCES}, and unlabelled rows to carry them to."
            )
        classes = not y.is_floating_point()
        wanted = (nn.functional.one_hot(y) if classes else y.reshape(len(y), -1)).double().numpy()
        order = nearest_first(space, u, labelled).numpy()
        third = len(order) // 3
        thirds = (order[:third], order[third:-third], order[-third:])
        flat = columns(x.flatten(1))
        return cls(space, flat, space.embed(u), u, labelled.numpy(), wanted, thirds, classes)

    @property
    def blind(self) -> Array:
        """The squared error of the mean label on the hidden rows."""
        known = self.wanted[self.labelled]
        errors: Array = ((self.wanted[self.thirds[0]] - known.mean(0)) ** 2).sum(1)
        return errors

    def ways(self) -> Iterator[tuple[tuple[IndexMode, bool], Array, bool]]:
        """Each way's name, x in its coordinates, and whether it walks."""
        width = self.index.shape[1]
        for mode, fit in coordinate_candidates(self.space, self.x.shape[1], width).items():
            seen = self.x if fit is None else fit(self.x, self.index)(self.x, self.index.float())
            for walks in (False, True):
                yield (mode, walks), seen.double().numpy(), walks

    def answers(self, seen: Array, walks: bool) -> tuple[_Answer, _Answer]:
        """What is said of the hidden rows: learned from afar, and from all the rest."""
        hidden, middle, far = self.thirds
        near = np.concatenate([far, middle])
        return (
            self._answer(seen, far, np.concatenate([middle, hidden]), walks),
            self._answer(seen, near, hidden, walks),
        )

    def _answer(self, seen: Array, known: Array, asked: Array, walks: bool) -> _Answer:
        """The hidden rows are the last of those asked about."""
        truth = self.wanted[self.thirds[0]]
        predicted = self._predict(seen, known, asked, walks)[-len(truth) :]
        right = (predicted.argmax(1) == truth.argmax(1)).mean() if self.classes else 0.0
        return _Answer(((predicted - truth) ** 2).sum(1), float(right))

    def carry(self, seen: Array, walks: bool) -> tuple[Array, Array]:
        """The label of every row, a class number or a number, and how sure it is."""
        known = np.flatnonzero(self.labelled)
        asked = np.flatnonzero(~self.labelled)
        values = self.wanted.copy()
        values[asked] = self._predict(seen, known, asked, walks)
        if not self.classes:
            return values[:, 0], np.ones(len(values))
        order = np.sort(values, axis=1)
        return values.argmax(1), np.clip(order[:, -1] - order[:, -2], 0, 1)

    def _predict(self, seen: Array, known: Array, asked: Array, walks: bool) -> Array:
        if not walks:
            some = known[thinned(len(known), MOST_KNOWN).numpy()]
            return ridge(seen[some], self.wanted[some], seen[asked])
        rows = np.concatenate([known, asked])
        distance = self.space.distance_to_set(self.u[rows], self.u[known]).numpy()
        index = self.index.double().numpy()[rows]
        start = np.where(np.arange(len(rows)) < len(known), 0.0, np.maximum(distance, 1e-300))
        pace = (self._step, self._reach)
        return _walk(seen[rows], index, start, self.wanted[rows], *pace)[len(known) :]

    @property
    def _step(self) -> float:
        """A stage of the way to the farthest target, in the metric of the space."""
        sources, targets = (self.u[torch.from_numpy(r)] for r in (self.labelled, ~self.labelled))
        return float(self.space.distance_to_set(targets, sources).max()) / STAGES

    @property
    def _reach(self) -> float:
        """How near in the embedded index rows are that learn from each other: a few stages."""
        spread = float(self.index.double().var(0).sum()) ** 0.5
        return float(3 * 3**0.5 * spread / STAGES)


def _walk(
    x: Array, index: Array, distance: Array, wanted: Array, step: float, near: float
) -> Array:
    """Labels of rows at a distance above 0, stage by stage from those at 0.

    A row learns from those that are near it in u as well as in x. What is passed on from stage to
    stage is the most likely class; what is given back is how likely each was.
    """
    passed, told = wanted.copy(), wanted.copy()
    have = distance == 0
    classes = wanted.shape[1] > 1
    for edge in np.append(np.arange(step, distance.max(), step), np.inf):
        new = ~have & (distance <= edge)
        if not new.any():
            continue
        known = _nearest(index, np.flatnonzero(have), index[new])
        told[new] = ridge(x[known], passed[known], x[new], (index[known], index[new], near))
        passed[new] = np.eye(wanted.shape[1])[told[new].argmax(1)] if classes else told[new]
        have |= new
    return told


def _nearest(index: Array, known: Array, asked: Array) -> Array:
    """The known rows nearest in u to some of those asked about, as many as a kernel takes."""
    some = asked[thinned(len(asked), 50).numpy()]
    order = squares(index[known], some).min(1).argsort(kind="stable")
    return np.sort(known[order[:MOST_NEAR]])
