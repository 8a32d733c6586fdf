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

from cida.experiments.backends import iterate_results
from cida.experiments.sleep.covariates import (
    NO_COLUMN_OVERRIDES,
    Covariates,
    get_covariates,
    read_covariates,
)
from cida.experiments.sleep.night import PreparationJob, SubjectFailure, prepare_night, read_part
from cida.experiments.sleep.recording_errors import (
    PreparationError,
    ProgressCallback,
    RecordingError,
    require_packages,
    translate_job_errors,
)
from cida.experiments.sleep.sleep_store import (
    SegmentCounts,
    SleepStore,
    StoreEntry,
    StoreSettings,
    write_store,
)
from cida.experiments.sleep.studies import INDEX_NAMES, Recording, Study, is_simulated
from cida.io.files import exclusive_lock, write_atomically

__all__ = ["PreparationReport", "prepare_study"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class PreparationReport:
    """What a store has, how many nights were read for it, and who is not in it."""

    store: SleepStore
    counts: SegmentCounts
    n_nights_read: int
    failures: tuple[SubjectFailure, ...]
    path: Path


def prepare_study(
    study: Study,
    root: str | Path,
    out: str | Path,
    n_jobs: int = 1,
    channel: str | None = None,
    columns: Mapping[str, str] = NO_COLUMN_OVERRIDES,
    on_progress: ProgressCallback = lambda *_: None,
) -> PreparationReport:
    """Reads every night below ``root`` into the store ``out``; who fails is in ``report.csv``.

    Nights that are in the store already, or were read by a run that was stopped, are not read
    again. The store does not depend on ``jobs`` or on how often it was stopped. One run at a time
    may write to ``out``.
    """
    if n_jobs < 1:
        raise ValueError(f"jobs is {n_jobs}; it must be at least 1.")
    require_packages("reading recordings", "edfio", "defusedxml")
    root, out = Path(root).expanduser(), Path(out).expanduser()
    settings = StoreSettings(study.name, is_simulated(root), channel, dict(columns))
    covariates = read_covariates(root, study, columns)
    recordings = study.find_recordings(root)
    old_store = _open_old_store(out, settings)
    stored_subjects = set(old_store.subjects.ids) if old_store else set()
    new_recordings = [
        recording for recording in recordings if recording.subject not in stored_subjects
    ]
    usable, failures = _select_with_age(new_recordings, covariates, study.find_table(root))
    with translate_job_errors(out), exclusive_lock(out, out / ".lock"):
        parts = _prepare_parts_folder(out)
        job_list = [PreparationJob(one, settings, parts / f"{one.subject}.npz") for one in usable]
        pending_jobs = [
            task
            for task in job_list
            if read_part(task.part_path, settings, counts_only=True) is None
        ]
        for n_done, failure in enumerate(iterate_results(prepare_night, pending_jobs, n_jobs)):
            failures += [failure] if failure else []
            on_progress(n_done + 1, len(pending_jobs))
        failures.sort(key=lambda failure: int(failure.subject))
        path = _write_report(out, failures)
        entries = _new_entries(job_list, covariates)
        if entries:
            entries = sorted(
                entries + _old_entries(old_store), key=lambda entry: int(entry.subject)
            )
            write_store(out, settings, entries)
        _remove_parts(parts, job_list)
    if old_store is None and not entries:
        raise PreparationError(
            f"not one of {len(recordings)} subjects could be prepared (the first: "
            f"{failures[0].file}: {failures[0].message.rstrip('.')}); all are in {path}."
        )
    store = SleepStore.open(out)
    return PreparationReport(
        store, SegmentCounts.total(store.subjects.counts), len(pending_jobs), tuple(failures), path
    )


def _open_old_store(out: Path, settings: StoreSettings) -> SleepStore | None:
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


def _prepare_parts_folder(out: Path) -> Path:
    """The folder of the parts; what a killed run left half-written is removed."""
    parts = out / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    for leftover in out.glob(".store-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    for leftover in parts.glob(".*.npz.*"):
        leftover.unlink(missing_ok=True)
    return parts


def _remove_parts(parts: Path, job_list: Sequence[PreparationJob]) -> None:
    for job in job_list:
        job.part_path.unlink(missing_ok=True)
    with suppress(OSError):  # not empty: something in it is not ours
        parts.rmdir()


def _select_with_age(
    recordings: Sequence[Recording], covariates: Covariates, table: Path
) -> tuple[list[Recording], list[SubjectFailure]]:
    usable, failures = [], []
    for recording in recordings:
        try:
            get_covariates(recording.subject, covariates, table)
            usable.append(recording)
        except RecordingError as error:
            failures.append(SubjectFailure(recording.subject, error.path, error.message))
    return usable, failures


def _new_entries(job_list: Sequence[PreparationJob], covariates: Covariates) -> list[StoreEntry]:
    entries = []
    for job in job_list:
        part = read_part(job.part_path, job.settings, counts_only=True)
        if part is not None:
            subject = job.recording.subject
            load = partial(_load_part, job)
            entries.append(StoreEntry(subject, covariates[subject], part.counts, load))
    return entries


def _load_part(job: PreparationJob) -> tuple[Array, Array]:
    night = read_part(job.part_path, job.settings)
    if night is None:
        raise PreparationError(f"{job.part_path} was changed while it was read; run it again.")
    return night.segments, night.stages


def _old_entries(store: SleepStore | None) -> list[StoreEntry]:
    if store is None:
        return []
    entries = []
    for number, (subject, counts) in enumerate(
        zip(store.subjects.ids, store.subjects.counts, strict=True)
    ):
        indices = {name: float(store.subjects[name][number]) for name in INDEX_NAMES}
        entries.append(StoreEntry(subject, indices, counts, partial(_load_night, store, number)))
    return entries


def _load_night(store: SleepStore, number: int) -> tuple[Array, Array]:
    first, count = store.night_rows(number)
    return store.segments[first : first + count], store.stages[first : first + count]


def _write_report(out: Path, failures: Sequence[SubjectFailure]) -> Path:
    buffer = io.StringIO()
    lines = csv.writer(buffer, lineterminator="\n")
    lines.writerow(["subject", "file", "sentence"])
    for failure in failures:
        lines.writerow([failure.subject, failure.file, failure.message])
    write_atomically(out / "report.csv", buffer.getvalue().encode())
    return out / "report.csv"
