"""Sleep staging from breathing (section 5.4 of the paper): people to train on, others to score."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import cohen_kappa_score, recall_score
from torch import Tensor

from cida.data import Batch, IndexedDataset
from cida.estimators import CIDAClassifier
from cida.experiments.display_rows import DisplayRows
from cida.experiments.fetch import data_home
from cida.experiments.sleep.prepare import prepare_study
from cida.experiments.sleep.simulate import simulate_cohorts
from cida.experiments.sleep.sleep_store import SleepStore
from cida.experiments.sleep.stages import STAGE_CLASSES
from cida.experiments.sleep.studies import INDEX_NAMES, SIMULATED_COHORTS, STUDIES
from cida.experiments.task_data import DatasetTaskData, hash_arrays, predict_rows
from cida.indexing import evenly_spaced
from cida.metrics import accuracy
from cida.runs.snapshot import MAX_SNAPSHOT_ROWS
from cida.spaces import is_outside_hull, make_line_space

SUBJECT_SPLIT_SEED = 7
MAX_SCORED_SEGMENTS_PER_NIGHT = 200  # evenly spaced: its others add next to nothing
AGE_BIN_YEARS = 5
SUBJECTS_PER_COHORT = 400  # a cohort; enough that some dozens are in the narrowest range of ages
SIMULATION_SEED = 0
SIMULATOR_VERSION = 1  # of the simulator: another one makes other people, in another folder


def simulated_data_home() -> Path:
    """Where the simulated stores of the experiments are kept."""
    return data_home() / f"sleep-simulated-{SIMULATOR_VERSION}"


def simulate_missing_cohorts(
    home: Path,
    n_subjects: int = SUBJECTS_PER_COHORT,
    n_jobs: int = 1,
    on_progress: Callable[[str, int, int], None] = lambda *_: None,
) -> None:
    """Simulates and prepares the cohorts that are not there yet; ``watch`` hears what is done.

    The recordings are removed once they are in the store.
    """
    for name in SIMULATED_COHORTS:
        if (home / name / "store.json").exists():
            continue
        raw, study = home / "recordings", STUDIES[name]
        watch = partial(on_progress, f"simulating {name}")
        simulate_cohorts(raw, n_subjects, SIMULATION_SEED, n_jobs, watch, [name])
        watch = partial(on_progress, f"preparing {name}")
        prepare_study(study, raw / name, home / name, n_jobs, on_progress=watch)
        shutil.rmtree(raw)


def open_cohort(study: str, data_root: Path | None) -> SleepStore:
    """The study's store below ``root``, or the simulated one."""
    if data_root is not None:
        if not (data_root / study).is_dir():
            raise ValueError(
                f"root is {data_root}, which has no folder {study}; prepare the study into it: "
                f"cida data prepare-nsrr --study {study} --root DIR --out {data_root / study}."
            )
        return SleepStore.open(data_root / study)
    store = simulated_data_home() / study
    if not (store / "store.json").exists():
        raise ValueError(f"the simulated cohort {study} is not there; cida reproduce makes it.")
    return SleepStore.open(store)


class NightDataset(IndexedDataset):
    """Rows of one or several stores: row i is segment ``place[i]`` of ``segments[cohort[i]]``.

    Only the segments of a batch are read and made float32, so that a cohort may be larger than
    memory. Stages and cohorts are kept in one byte each: there are millions.
    """

    def __init__(
        self,
        segments: Sequence[np.ndarray],
        cohort: Tensor,
        positions: Tensor,
        y: Tensor,
        u: Tensor,
        labelled: Tensor,
    ) -> None:
        super().__init__(positions, y.to(torch.int8), u, labelled)
        self.segments = tuple(segments)
        self.cohort = cohort.to(torch.int8)

    def __getitem__(self, indices: Tensor) -> Batch:
        batch = super().__getitem__(indices)
        cohort, x = self.cohort[indices], torch.empty(len(batch.x), 1, self.segments[0].shape[1])
        for number, store in enumerate(self.segments):
            row_numbers = (cohort == number).nonzero()[:, 0]
            stored_segments = np.asarray(store[batch.x[row_numbers].numpy()], dtype=np.float32)
            x[row_numbers, 0] = torch.from_numpy(stored_segments)
        return replace(batch, x=x, y=batch.y.long())


@dataclass(frozen=True)
class AgeRange:
    """``low < age <= high``; with ``closed`` also the age low itself."""

    low: float
    high: float
    includes_low: bool = False

    def contains(self, age: np.ndarray) -> np.ndarray:
        above = age >= self.low if self.includes_low else age > self.low
        return above & (age <= self.high)

    def __str__(self) -> str:
        return f"{'[' if self.includes_low else '('}{self.low:g},{self.high:g}]"


@dataclass(frozen=True)
class CohortSelection:
    """Source or target: the people of a cohort whose age is in one of the ranges."""

    cohort: str
    age_ranges: tuple[AgeRange, ...]

    def select_subjects(self, store: SleepStore, indices: tuple[str, ...]) -> np.ndarray:
        """The numbers of the people on this side of whom all these indices are known."""
        has_indices = np.all([np.isfinite(store.subjects[name]) for name in indices], axis=0)
        in_ranges = [age_range.contains(store.subjects["age"]) for age_range in self.age_ranges]
        return np.flatnonzero(has_indices & np.any(in_ranges, axis=0))


@dataclass(frozen=True)
class SubjectGroup:
    """Some people of one store."""

    store: SleepStore
    subject_numbers: np.ndarray

    def split(self, share: float) -> tuple[SubjectGroup, SubjectGroup]:
        """The same split for every seed: this share, and the others."""
        order = np.random.default_rng(SUBJECT_SPLIT_SEED).permutation(self.subject_numbers)
        cut = round(share * len(order))
        return SubjectGroup(self.store, order[:cut]), SubjectGroup(self.store, order[cut:])

    def segment_positions(self, max_per_night: int | None = None) -> np.ndarray:
        """Where their segments are in the store, or so many of each night, evenly spaced."""
        numbers = np.sort(self.subject_numbers)
        first = np.searchsorted(self.store.subject, numbers)
        counts = np.searchsorted(self.store.subject, numbers, side="right") - first
        kept_counts = counts if max_per_night is None else np.minimum(counts, max_per_night)
        nights = zip(first, counts, kept_counts, strict=True)
        return np.concatenate([start + np.arange(k) * n // k for start, n, k in nights])

    def domain_index(self, positions: np.ndarray, indices: Sequence[str]) -> np.ndarray:
        """u of these segments: that of the people whose nights they are of."""
        people = self.store.subject[positions]
        return np.asarray(self.store.subjects.stack(indices)[people])


@dataclass(frozen=True)
class SleepTaskData(DatasetTaskData):
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

    def _scored_dataset(self) -> NightDataset:
        groups = (self.scored_source, self.scored_target)
        return _build_dataset(groups, (True, True), self.index_names, MAX_SCORED_SEGMENTS_PER_NIGHT)

    def evaluate(self, model: CIDAClassifier) -> dict[str, Any]:
        dataset = self._scored_dataset()
        predicted = predict_rows(model, dataset, torch.arange(len(dataset)))
        truth, age, target = dataset.y.numpy(), dataset.u[:, 0].numpy(), dataset.cohort.numpy() == 1
        of_target = (truth[target], predicted[target])
        recalls = recall_score(*of_target, labels=range(len(STAGE_CLASSES)), average=None)
        return {
            "task": self.name,
            "source_score": accuracy(truth[~target], predicted[~target]),
            "target_score": accuracy(*of_target),
            "all_score": accuracy(truth, predicted),
            "by_index": _accuracy_by_age(age[target], *of_target),
            "extra_metrics": {
                "kappa": float(cohen_kappa_score(*of_target)),
                "recall": dict(zip(STAGE_CLASSES, recalls.tolist(), strict=True)),
            },
        }

    def display_rows(self) -> DisplayRows:
        dataset = self._scored_dataset()
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

    @property
    def _groups(self) -> tuple[SubjectGroup, ...]:
        return self.source, self.target, self.scored_source, self.scored_target

    def summary(self, title: str) -> str:
        """Who was trained on and who scored, and who of the target is beyond the source's hull."""
        counts = [len(group.subject_numbers) for group in self._groups]
        return (
            f"{title}: trained on {counts[0]} source people and {counts[1]} of the "
            f"target without labels, scored {counts[2]} and {counts[3]} others; "
            f"{self.share_outside_hull():.0%} of the target people are outside the convex hull of "
            "the source."
        )

    def share_outside_hull(self) -> float:
        """The share of target people outside the convex hull of the source people."""
        source, target = (
            torch.from_numpy(group.store.subjects.stack(self.index_names)[group.subject_numbers])
            for group in (self.source, self.target)
        )
        space = make_line_space(len(self.index_names)).fit(torch.cat([source, target]))
        return float(is_outside_hull(space, target, source).double().mean())

    def fingerprint(self) -> str:
        parts = []
        for group in self._groups:
            rows, store = group.segment_positions(), group.store
            sample = store.segments[rows[:: max(1, len(rows) // 64)]]
            parts += [group.subject_numbers, store.stages[rows]]
            parts += [group.domain_index(rows, INDEX_NAMES), sample]
        return hash_arrays(*parts)


def _build_dataset(
    groups: Sequence[SubjectGroup],
    labelled: Sequence[bool],
    indices: Sequence[str],
    max_per_night: int | None = None,
) -> NightDataset:
    rows = [group.segment_positions(max_per_night) for group in groups]
    stages = [group.store.stages[at] for group, at in zip(groups, rows, strict=True)]
    u = [group.domain_index(at, indices) for group, at in zip(groups, rows, strict=True)]
    sizes = torch.tensor([len(part) for part in rows])
    cohort, has_label = torch.arange(len(groups), dtype=torch.int8), torch.tensor(labelled)
    return NightDataset(
        [group.store.segments for group in groups],
        cohort.repeat_interleave(sizes),
        torch.from_numpy(np.concatenate(rows)),
        torch.from_numpy(np.concatenate(stages)),
        torch.from_numpy(np.concatenate(u)),
        has_label.repeat_interleave(sizes),
    )


def _accuracy_by_age(age: np.ndarray, truth: np.ndarray, predicted: np.ndarray) -> list[Any]:
    """The accuracy in each bin of five years that has someone in it, no wider than its people."""
    cell = np.floor(age / AGE_BIN_YEARS).astype(np.int64)
    bins = []
    for cell_number in np.unique(cell):
        in_cell = cell == cell_number
        low, high = float(age[in_cell].min()), float(age[in_cell].max())
        score = accuracy(truth[in_cell], predicted[in_cell])
        bins.append({"lo": low, "hi": high, "score": score, "n": int(in_cell.sum())})
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
            ages = " and ".join(map(str, selection.age_ranges))
            raise ValueError(
                f"{name} has too few {kind} people: {selection.cohort} has "
                f"{len(group.subject_numbers)} to train on and {len(scored.subject_numbers)} to "
                f"score at the ages {ages}; it needs more."
            )
        parts.append((group, scored))
    (source_in, source_out), (target_in, target_out) = parts
    return SleepTaskData(name, index_names, source_in, target_in, source_out, target_out)
