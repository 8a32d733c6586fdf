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

from cida.estimators import CIDAClassifier, CidaWarning
from cida.experiments.display_rows import DisplayRows
from cida.experiments.sleep import (
    INDEX_NAMES,
    STAGE_CLASSES,
    NightDataset,
    SleepStore,
    open_cohort,
)
from cida.experiments.task_data import N_EXPECTED_SCORE_BINS, bin_score_to_dict, hash_arrays
from cida.indexing import evenly_spaced
from cida.metrics import BinScore, accuracy
from cida.runs.snapshot import MAX_SNAPSHOT_ROWS
from cida.selection.expected_score import ExpectedScore
from cida.spaces import is_outside_hull, make_line_space

__all__ = ["AgeRange", "CohortSelection", "SleepTaskData", "SubjectGroup", "draw_sleep_data"]

Array = np.ndarray[Any, Any]

SUBJECT_SPLIT_SEED = 7
MAX_SCORED_SEGMENTS_PER_NIGHT = (
    200  # segments of a scored night, evenly spaced: its others add next to nothing
)
AGE_BIN_YEARS = 5


@dataclass(frozen=True)
class AgeRange:
    """``low < age <= high``; with ``closed`` also the age low itself."""

    low: float
    high: float
    includes_low: bool = False

    def contains(self, age: Array) -> Array:
        above = age >= self.low if self.includes_low else age > self.low
        inside: Array = above & (age <= self.high)
        return inside

    def __str__(self) -> str:
        return f"{'[' if self.includes_low else '('}{self.low:g},{self.high:g}]"


@dataclass(frozen=True)
class CohortSelection:
    """Source or target: the people of a cohort whose age is in one of the ranges."""

    cohort: str
    age_ranges: tuple[AgeRange, ...]

    def select_subjects(self, store: SleepStore, indices: tuple[str, ...]) -> Array:
        """The numbers of the people on this side of whom all these indices are known."""
        has_indices = np.all([np.isfinite(store.subjects[name]) for name in indices], axis=0)
        ages = store.subjects["age"]
        return np.flatnonzero(
            has_indices
            & np.any([age_range.contains(ages) for age_range in self.age_ranges], axis=0)
        )


@dataclass(frozen=True)
class SubjectGroup:
    """Some people of one store."""

    store: SleepStore
    subject_numbers: Array

    def split(self, share: float) -> tuple[SubjectGroup, SubjectGroup]:
        """The same split for every seed: this share, and the others."""
        order = np.random.default_rng(SUBJECT_SPLIT_SEED).permutation(self.subject_numbers)
        cut = round(share * len(order))
        return SubjectGroup(self.store, order[:cut]), SubjectGroup(self.store, order[cut:])

    def segment_positions(self, max_per_night: int | None = None) -> Array:
        """Where their segments are in the store, or so many of each night, evenly spaced."""
        numbers = np.sort(self.subject_numbers)
        first = np.searchsorted(self.store.subject, numbers)
        counts = np.searchsorted(self.store.subject, numbers, side="right") - first
        kept_counts = counts if max_per_night is None else np.minimum(counts, max_per_night)
        nights = zip(first, counts, kept_counts, strict=True)
        return np.concatenate(
            [
                start + np.arange(n_kept) * n_segments // n_kept
                for start, n_segments, n_kept in nights
            ]
        )

    def domain_index(self, positions: Array, indices: Sequence[str]) -> Array:
        """u of these segments: that of the people whose nights they are of."""
        columns = [self.store.subjects[name][self.store.subject[positions]] for name in indices]
        return np.stack(columns, axis=1).astype(np.float64)


@dataclass(frozen=True)
class SleepTaskData:
    """Nights of source and target people to train on, and of other people to score.

    Nobody is in two parts. The target people that are trained on have labels for an oracle alone.
    """

    name: str
    index_names: tuple[str, ...]
    source: SubjectGroup
    target: SubjectGroup
    scored_source: SubjectGroup
    scored_target: SubjectGroup

    @property
    def is_simulated(self) -> bool:
        """Whether these people exist in a computer alone."""
        return self.source.store.is_simulated or self.target.store.is_simulated

    def training_dataset(self, oracle: bool = False) -> NightDataset:
        """What is trained on."""
        return _build_dataset((self.source, self.target), (True, oracle), self.index_names)

    def train(self, model: CIDAClassifier, oracle: bool) -> None:
        model.fit_dataset(self.training_dataset(oracle))

    def evaluate(self, model: CIDAClassifier) -> dict[str, Any]:
        groups = (self.scored_source, self.scored_target)
        dataset = _build_dataset(
            groups, (True, True), self.index_names, MAX_SCORED_SEGMENTS_PER_NIGHT
        )
        predicted = _predict_rows(model, dataset)
        truth, age = dataset.y.numpy(), dataset.u[:, 0].numpy()
        target = dataset.cohort.numpy() == 1
        target_predicted, target_truth = predicted[target], truth[target]
        recalls = recall_score(
            target_truth, target_predicted, labels=range(len(STAGE_CLASSES)), average=None
        )
        return {
            "task": self.name,
            "source_score": accuracy(truth[~target], predicted[~target]),
            "target_score": accuracy(target_truth, target_predicted),
            "all_score": accuracy(truth, predicted),
            "by_index": _accuracy_by_age(age[target], target_truth, target_predicted),
            "extra_metrics": {
                "kappa": float(cohen_kappa_score(target_truth, target_predicted)),
                "recall": dict(zip(STAGE_CLASSES, recalls.tolist(), strict=True)),
            },
        }

    def display_rows(self) -> DisplayRows:
        groups = (self.scored_source, self.scored_target)
        dataset = _build_dataset(
            groups, (True, True), self.index_names, MAX_SCORED_SEGMENTS_PER_NIGHT
        )
        row_numbers = evenly_spaced(len(dataset), MAX_SNAPSHOT_ROWS)
        batch = dataset[row_numbers]
        return DisplayRows(
            x=batch.x.numpy(),
            u=batch.u.numpy(),
            source=dataset.cohort[row_numbers].numpy() == 0,
            truth=batch.y.numpy(),
            index_names=self.index_names,
            space=make_line_space(len(self.index_names)),
        )

    def expected_scores(self, model: CIDAClassifier) -> list[ExpectedScore]:
        return model.expected_dataset_score(self.training_dataset(), N_EXPECTED_SCORE_BINS)

    def summary(self, title: str) -> str:
        """Who was trained on and who scored, and who of the target is beyond the source's hull."""
        parts = (self.source, self.target, self.scored_source, self.scored_target)
        counts = [len(part.subject_numbers) for part in parts]
        return (
            f"{title}: trained on {counts[0]} source people and {counts[1]} of the "
            f"target without labels, scored {counts[2]} and {counts[3]} others; "
            f"{self.share_outside_hull():.0%} of the target people are outside the convex hull "
            "of the "
            "source."
        )

    def share_outside_hull(self) -> float:
        """The share of target people outside the convex hull of the source people."""
        source, target = (
            torch.from_numpy(
                np.stack([p.store.subjects[n][p.subject_numbers] for n in self.index_names], 1)
            )
            for p in (self.source, self.target)
        )
        space = make_line_space(len(self.index_names)).fit(torch.cat([source, target]))
        return float(is_outside_hull(space, target, source).double().mean())

    def fingerprint(self) -> str:
        groups = (self.source, self.target, self.scored_source, self.scored_target)
        parts = []
        for group in groups:
            positions = group.segment_positions()
            parts += [
                group.subject_numbers,
                group.store.stages[positions],
                group.domain_index(positions, INDEX_NAMES),
            ]
            parts.append(group.store.segments[positions[:: max(1, len(positions) // 64)]])
        return hash_arrays(*parts)


def _build_dataset(
    groups: Sequence[SubjectGroup],
    labelled: Sequence[bool],
    indices: Sequence[str],
    max_per_night: int | None = None,
) -> NightDataset:
    positions = [part.segment_positions(max_per_night) for part in groups]
    sizes = torch.tensor([len(part) for part in positions])
    positions_by_group = list(zip(groups, positions, strict=True))
    return NightDataset(
        [part.store.segments for part in groups],
        torch.arange(len(groups), dtype=torch.int8).repeat_interleave(sizes),
        torch.from_numpy(np.concatenate(positions)),
        torch.from_numpy(np.concatenate([p.store.stages[at] for p, at in positions_by_group])),
        torch.from_numpy(
            np.concatenate([p.domain_index(at, indices) for p, at in positions_by_group])
        ),
        torch.tensor(labelled).repeat_interleave(sizes),
    )


def _predict_rows(model: CIDAClassifier, dataset: NightDataset) -> Array:
    predictions = []
    with warnings.catch_warnings():
        # A scored person may be far from all who were trained on: that is what is measured here.
        warnings.simplefilter("ignore", CidaWarning)
        for part in torch.split(torch.arange(len(dataset)), 4096):
            batch = dataset[part]
            predictions.append(model.predict(batch.x.numpy(), domain_index=batch.u.numpy()))
    return np.concatenate(predictions)


def _accuracy_by_age(age: Array, truth: Array, predicted: Array) -> list[dict[str, Any]]:
    """The accuracy in each bin of five years that has someone in it, no wider than its people."""
    cell = np.floor(age / AGE_BIN_YEARS).astype(np.int64)
    bins = []
    for cell_number in np.unique(cell):
        in_cell = cell == cell_number
        low, high = float(age[in_cell].min()), float(age[in_cell].max())
        cell_accuracy = accuracy(truth[in_cell], predicted[in_cell])
        bins.append(bin_score_to_dict(BinScore(low, high, cell_accuracy, int(in_cell.sum()))))
    return bins


def draw_sleep_data(
    name: str,
    source: CohortSelection,
    target: CohortSelection,
    index_names: tuple[str, ...],
    seed: int,
    protocol: str,
    data_root: Path | None = None,
) -> SleepTaskData:
    """Four fifths of the source people and half of the target people are trained on.

    The others are scored. In the development protocol none of those is touched: the people to
    train on are parted once more. The seed has no say in it.
    """
    parts = []
    for kind, selection, share in (("source", source, 0.8), ("target", target, 0.5)):
        store = open_cohort(selection.cohort, data_root)
        group = SubjectGroup(store, selection.select_subjects(store, index_names))
        for _ in range(2 if protocol == "development" else 1):
            group, scored = group.split(share)
        if not len(group.subject_numbers) or not len(scored.subject_numbers):
            ages = " and ".join(str(part) for part in selection.age_ranges)
            raise ValueError(
                f"{name} has too few {kind} people: {selection.cohort} has "
                f"{len(group.subject_numbers)} to "
                f"train on and {len(scored.subject_numbers)} to score at the ages {ages}; it "
                "needs more."
            )
        parts.append((group, scored))
    (source_in, source_out), (target_in, target_out) = parts
    return SleepTaskData(name, index_names, source_in, target_in, source_out, target_out)
