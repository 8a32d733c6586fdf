"""A study's folder as NSRR has it, to a store."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cida.datasets.sleep.covariates import NO_COLUMNS, Covariates, covariates_of, read_covariates
from cida.datasets.sleep.errors import PreparationError, RecordingError
from cida.datasets.sleep.jobs import Watch, in_jobs, need_packages, stopping
from cida.datasets.sleep.night import Failure, Task, prepare_night, read_part
from cida.datasets.sleep.store import Counts, Entry, Settings, SleepStore, write_store
from cida.datasets.sleep.studies import INDICES, Recording, Study, is_simulated
from cida.files import claimed, write_atomically

__all__ = ["Report", "prepare"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Report:
    """What a store has, how many nights were read for it, and who is not in it."""

    store: SleepStore
    counts: Counts
    read: int
    failures: tuple[Failure, ...]
    path: Path


def prepare(
    study: Study,
    root: str | Path,
    out: str | Path,
    jobs: int = 1,
    channel: str | None = None,
    columns: Mapping[str, str] = NO_COLUMNS,
    watch: Watch = lambda *_: None,
) -> Report:
    """Reads every night below ``root`` into the store ``out``; who fails is in ``report.csv``.

    Nights that are in the store already, or were read by a run that was stopped, are not read
    again. The store does not depend on ``jobs`` or on how often it was stopped. One run at a time
    may write to ``out``.
    """
    if jobs < 1:
        raise ValueError(f"jobs is {jobs}; it must be at least 1.")
    need_packages("reading recordings", "edfio", "defusedxml")
    root, out = Path(root).expanduser(), Path(out).expanduser()
    settings = Settings(study.name, is_simulated(root), channel, dict(columns))
    covariates = read_covariates(root, study, columns)
    recordings = study.recordings(root)
    old = _old_store(out, settings)
    known = set(old.subjects.ids) if old else set()
    fresh = [recording for recording in recordings if recording.subject not in known]
    usable, failures = _with_age(fresh, covariates, study.table_path(root))
    with stopping(out), claimed(out, out / ".lock"):
        parts = _clean(out)
        tasks = [Task(one, study.belts, settings, parts / f"{one.subject}.npz") for one in usable]
        due = [task for task in tasks if read_part(task.part, settings, counts_only=True) is None]
        for done, failure in enumerate(in_jobs(prepare_night, due, jobs)):
            failures += [failure] if failure else []
            watch(done + 1, len(due))
        failures.sort(key=lambda failure: int(failure.subject))
        path = _write_report(out, failures)
        entries = _new_entries(tasks, covariates)
        if entries:
            entries = sorted(entries + _old_entries(old), key=lambda entry: int(entry.subject))
            write_store(out, settings, entries)
        _remove(parts, tasks)
    if old is None and not entries:
        raise PreparationError(
            f"not one of {len(recordings)} subjects could be prepared (the first: "
            f"{failures[0].file}: {failures[0].sentence.rstrip('.')}); all are in {path}."
        )
    store = SleepStore.open(out)
    return Report(store, Counts.total(store.subjects.counts), len(due), tuple(failures), path)


def _old_store(out: Path, settings: Settings) -> SleepStore | None:
    if out.exists() and not out.is_dir():
        raise ValueError(f"out is {out}, which is no folder; choose another name.")
    if not (out / "store.json").exists():
        return None
    store = SleepStore.open(out)
    if store.settings != settings:
        raise ValueError(
            f"out is {out}, a store with other settings ({store.settings}); choose another folder."
        )
    return store


def _clean(out: Path) -> Path:
    """The folder of the parts; what a killed run left half-written is removed."""
    parts = out / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    for left in out.glob(".store-*"):
        shutil.rmtree(left, ignore_errors=True)
    for left in parts.glob(".*.npz.*"):
        left.unlink(missing_ok=True)
    return parts


def _remove(parts: Path, tasks: Sequence[Task]) -> None:
    for task in tasks:
        task.part.unlink(missing_ok=True)
    with suppress(OSError):  # not empty: something in it is not ours
        parts.rmdir()


def _with_age(
    recordings: Sequence[Recording], covariates: Covariates, table: Path
) -> tuple[list[Recording], list[Failure]]:
    usable, failures = [], []
    for recording in recordings:
        try:
            covariates_of(recording.subject, covariates, table)
            usable.append(recording)
        except RecordingError as error:
            failures.append(Failure(recording.subject, error.path, error.fault))
    return usable, failures


def _new_entries(tasks: Sequence[Task], covariates: Covariates) -> list[Entry]:
    entries = []
    for task in tasks:
        part = read_part(task.part, task.settings, counts_only=True)
        if part is not None:
            subject = task.recording.subject
            load = partial(_load_part, task)
            entries.append(Entry(subject, covariates[subject], part.counts, load))
    return entries


def _load_part(task: Task) -> tuple[Array, Array]:
    night = read_part(task.part, task.settings)
    if night is None:
        raise PreparationError(f"{task.part} was changed while it was read; run it again.")
    return night.segments, night.stages


def _old_entries(store: SleepStore | None) -> list[Entry]:
    if store is None:
        return []
    entries = []
    for number, (subject, counts) in enumerate(
        zip(store.subjects.ids, store.subjects.counts, strict=True)
    ):
        indices = {name: float(store.subjects[name][number]) for name in INDICES}
        entries.append(Entry(subject, indices, counts, partial(_load_night, store, number)))
    return entries


def _load_night(store: SleepStore, number: int) -> tuple[Array, Array]:
    first, count = store.night(number)
    return store.segments[first : first + count], store.stages[first : first + count]


def _write_report(out: Path, failures: Sequence[Failure]) -> Path:
    made = io.StringIO()
    lines = csv.writer(made, lineterminator="\n")
    lines.writerow(["subject", "file", "sentence"])
    for failure in failures:
        lines.writerow([failure.subject, failure.file, failure.sentence])
    write_atomically(out / "report.csv", made.getvalue().encode())
    return out / "report.csv"
