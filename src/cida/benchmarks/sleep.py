"""Sleep staging from breathing (section 5.4 of the paper): people to train on, others to score."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import cohen_kappa_score, recall_score

from cida.benchmarks.samples import EXPECTED_CELLS, bin_words, fingerprint
from cida.benchmarks.views import Shown
from cida.datasets.sleep import CLASSES, INDICES, NightRows, SleepStore, open_cohort
from cida.diagnostics import BinScore, Expected, accuracy
from cida.diagnostics.view import MOST_ROWS
from cida.estimators import CIDAClassifier, CidaWarning
from cida.estimators.expected import expected_of_rows
from cida.space import line_space, outside_hull, thinned

__all__ = ["Ages", "Nights", "People", "Side", "draw_nights"]

Array = np.ndarray[Any, Any]

SPLIT_SEED = 7
SCORED_A_NIGHT = 200  # segments of a scored night, evenly spaced: its others add next to nothing
AGE_BIN_YEARS = 5


@dataclass(frozen=True)
class Ages:
    """``low < age <= high``; with ``closed`` also the age low itself."""

    low: float
    high: float
    closed: bool = False

    def has(self, age: Array) -> Array:
        above = age >= self.low if self.closed else age > self.low
        inside: Array = above & (age <= self.high)
        return inside

    def __str__(self) -> str:
        return f"{'[' if self.closed else '('}{self.low:g},{self.high:g}]"


@dataclass(frozen=True)
class Side:
    """Source or target: the people of a cohort whose age is in one of the ranges."""

    cohort: str
    ages: tuple[Ages, ...]

    def people(self, store: SleepStore, indices: tuple[str, ...]) -> Array:
        """The numbers of the people on this side of whom all these indices are known."""
        known = np.all([np.isfinite(store.subjects[name]) for name in indices], axis=0)
        ages = store.subjects["age"]
        return np.flatnonzero(known & np.any([part.has(ages) for part in self.ages], axis=0))


@dataclass(frozen=True)
class People:
    """Some people of one store."""

    store: SleepStore
    numbers: Array

    def parted(self, share: float) -> tuple[People, People]:
        """The same split for every seed: this share, and the others."""
        order = np.random.default_rng(SPLIT_SEED).permutation(self.numbers)
        cut = round(share * len(order))
        return People(self.store, order[:cut]), People(self.store, order[cut:])

    def places(self, a_night: int | None = None) -> Array:
        """Where their segments are in the store, or so many of each night, evenly spaced."""
        numbers = np.sort(self.numbers)
        first = np.searchsorted(self.store.subject, numbers)
        counts = np.searchsorted(self.store.subject, numbers, side="right") - first
        few = counts if a_night is None else np.minimum(counts, a_night)
        nights = zip(first, counts, few, strict=True)
        return np.concatenate([at + np.arange(some) * all_ // some for at, all_, some in nights])

    def index(self, places: Array, indices: Sequence[str]) -> Array:
        """u of these segments: that of the people whose nights they are of."""
        columns = [self.store.subjects[name][self.store.subject[places]] for name in indices]
        return np.stack(columns, axis=1).astype(np.float64)


@dataclass(frozen=True)
class Nights:
    """Nights of source and target people to train on, and of other people to score.

    Nobody is in two parts. The target people that are trained on have labels for an oracle alone.
    """

    name: str
    indices: tuple[str, ...]
    source: People
    target: People
    scored_source: People
    scored_target: People

    figures = "sleep_figures"
    line_a_method = False  # as the paper prints it

    @property
    def simulated(self) -> bool:
        """Whether these people exist in a computer alone."""
        return self.source.store.simulated or self.target.store.simulated

    def rows(self, oracle: bool = False) -> NightRows:
        """What is trained on."""
        return _rows((self.source, self.target), (True, oracle), self.indices)

    def train(self, model: CIDAClassifier, oracle: bool) -> None:
        model.fit_rows(self.rows(oracle))

    def scores(self, model: CIDAClassifier) -> dict[str, Any]:
        people = (self.scored_source, self.scored_target)
        rows = _rows(people, (True, True), self.indices, SCORED_A_NIGHT)
        predicted = _predicted(model, rows)
        truth, age = rows.y.numpy(), rows.u[:, 0].numpy()
        target = rows.cohort.numpy() == 1
        said, true = predicted[target], truth[target]
        recalls = recall_score(true, said, labels=range(len(CLASSES)), average=None)
        return {
            "task": self.name,
            "source_accuracy": accuracy(truth[~target], predicted[~target]),
            "target_accuracy": accuracy(true, said),
            "all_accuracy": accuracy(truth, predicted),
            "by_index": _by_age(age[target], true, said),
            "more": {
                "kappa": float(cohen_kappa_score(true, said)),
                "recall": dict(zip(CLASSES, recalls.tolist(), strict=True)),
            },
        }

    def shown(self) -> Shown:
        people = (self.scored_source, self.scored_target)
        rows = _rows(people, (True, True), self.indices, SCORED_A_NIGHT)
        some = thinned(len(rows), MOST_ROWS)
        batch = rows[some]
        return Shown(
            x=batch.x.numpy(),
            u=batch.u.numpy(),
            source=rows.cohort[some].numpy() == 0,
            truth=batch.y.numpy(),
            index=self.indices,
            space=line_space(len(self.indices)),
        )

    def expected(self, model: CIDAClassifier) -> list[Expected]:
        return expected_of_rows(model, self.rows(), EXPECTED_CELLS)

    def about(self, title: str) -> str:
        """Who was trained on and who scored, and who of the target is beyond the source's hull."""
        parts = (self.source, self.target, self.scored_source, self.scored_target)
        counts = [len(part.numbers) for part in parts]
        return (
            f"{title}: trained on {counts[0]} source people and {counts[1]} of the "
            f"target without labels, scored {counts[2]} and {counts[3]} others; "
            f"{self.outside_hull():.0%} of the target people are outside the convex hull of the "
            "source."
        )

    def outside_hull(self) -> float:
        """The share of target people outside the convex hull of the source people."""
        source, target = (
            torch.from_numpy(np.stack([p.store.subjects[n][p.numbers] for n in self.indices], 1))
            for p in (self.source, self.target)
        )
        space = line_space(len(self.indices)).fit(torch.cat([source, target]))
        return float(outside_hull(space, target, source).double().mean())

    def fingerprint(self) -> str:
        everyone = (self.source, self.target, self.scored_source, self.scored_target)
        parts = []
        for people in everyone:
            places = people.places()
            parts += [people.numbers, people.store.stages[places], people.index(places, INDICES)]
            parts.append(people.store.segments[places[:: max(1, len(places) // 64)]])
        return fingerprint(*parts)


def _rows(
    people: Sequence[People],
    labelled: Sequence[bool],
    indices: Sequence[str],
    a_night: int | None = None,
) -> NightRows:
    places = [part.places(a_night) for part in people]
    sizes = torch.tensor([len(part) for part in places])
    both = list(zip(people, places, strict=True))
    return NightRows(
        [part.store.segments for part in people],
        torch.arange(len(people), dtype=torch.int8).repeat_interleave(sizes),
        torch.from_numpy(np.concatenate(places)),
        torch.from_numpy(np.concatenate([p.store.stages[at] for p, at in both])),
        torch.from_numpy(np.concatenate([p.index(at, indices) for p, at in both])),
        torch.tensor(labelled).repeat_interleave(sizes),
    )


def _predicted(model: CIDAClassifier, rows: NightRows) -> Array:
    found = []
    with warnings.catch_warnings():
        # A scored person may be far from all who were trained on: that is what is measured here.
        warnings.simplefilter("ignore", CidaWarning)
        for part in torch.split(torch.arange(len(rows)), 4096):
            batch = rows[part]
            found.append(model.predict(batch.x.numpy(), domain_index=batch.u.numpy()))
    return np.concatenate(found)


def _by_age(age: Array, truth: Array, predicted: Array) -> list[dict[str, Any]]:
    """The accuracy in each bin of five years that has someone in it, no wider than its people."""
    cell = np.floor(age / AGE_BIN_YEARS).astype(np.int64)
    found = []
    for number in np.unique(cell):
        mine = cell == number
        low, high = float(age[mine].min()), float(age[mine].max())
        right = accuracy(truth[mine], predicted[mine])
        found.append(bin_words(BinScore(low, high, right, int(mine.sum()))))
    return found


def draw_nights(
    name: str,
    source: Side,
    target: Side,
    indices: tuple[str, ...],
    seed: int,
    protocol: str,
    root: Path | None = None,
) -> Nights:
    """Four fifths of the source people and half of the target people are trained on.

    The others are scored. In the development protocol none of those is touched: the people to
    train on are parted once more. The seed has no say in it.
    """
    parts = []
    for kind, side, share in (("source", source, 0.8), ("target", target, 0.5)):
        store = open_cohort(side.cohort, root)
        people = People(store, side.people(store, indices))
        for _ in range(2 if protocol == "development" else 1):
            people, scored = people.parted(share)
        if not len(people.numbers) or not len(scored.numbers):
            ages = " and ".join(str(part) for part in side.ages)
            raise ValueError(
                f"{name} has too few {kind} people: {side.cohort} has {len(people.numbers)} to "
                f"train on and {len(scored.numbers)} to score at the ages {ages}; it needs more."
            )
        parts.append((people, scored))
    (source_in, source_out), (target_in, target_out) = parts
    return Nights(name, indices, source_in, target_in, source_out, target_out)
