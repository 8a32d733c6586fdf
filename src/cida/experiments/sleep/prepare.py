"""A study's folder as NSRR has it, to a store: night by night, each kept as a part at first."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from cida.experiments.backends import iterate_results
from cida.experiments.sleep.covariates import (
    NO_COLUMN_OVERRIDES,
    Covariates,
    get_covariates,
    read_covariates,
)
from cida.experiments.sleep.recording_errors import (
    PreparationError,
    ProgressCallback,
    RecordingError,
    require_packages,
    translate_job_errors,
)
from cida.experiments.sleep.recordings import read_signal
from cida.experiments.sleep.sleep_store import (
    SegmentCounts,
    SleepStore,
    StoreEntry,
    StoreSettings,
    format_csv,
    write_store,
)
from cida.experiments.sleep.stages import UNSCORED, read_stages
from cida.experiments.sleep.studies import INDEX_NAMES, Recording, Study, is_simulated
from cida.io.arrays import read_arrays
from cida.io.files import exclusive_lock, write_atomically

MAX_LENGTH_MISMATCH_SHARE = 0.05  # an annotation of another length may be of another night


@dataclass(frozen=True)
class Night:
    """The segments of a night that have a stage and a signal."""

    segments: np.ndarray
    stages: np.ndarray
    counts: SegmentCounts


@dataclass(frozen=True)
class SubjectFailure:
    """A subject that is left out, the file at fault and one sentence."""

    subject: str
    file: str
    message: str


@dataclass(frozen=True)
class PreparationJob:
    """What a job needs to prepare one night."""

    recording: Recording
    settings: StoreSettings
    part_path: Path

    @property
    def settings_key(self) -> str:
        """The settings that a part depends on: the columns are read when the store is written."""
        return json.dumps([self.settings.study, self.settings.simulated, self.settings.channel])

    def read_counts(self) -> SegmentCounts | None:
        """Of the night's part; None where there is no part of these settings."""
        try:
            part = read_arrays(self.part_path, ("settings", "counts"))
            is_own = str(part["settings"]) == self.settings_key
            return SegmentCounts(*map(int, part["counts"])) if is_own else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def load_part(self) -> tuple[np.ndarray, np.ndarray]:
        """The segments and stages of the night's part."""
        try:
            part = read_arrays(self.part_path, ("segments", "stages"))
            return part["segments"], part["stages"]
        except (OSError, ValueError, KeyError):
            problem = f"{self.part_path} was changed while it was read"
            raise PreparationError(f"{problem}; run it again.") from None


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
    new = [recording for recording in recordings if recording.subject not in stored_subjects]
    usable, failures = _select_with_age(new, covariates, study.find_table(root))
    with translate_job_errors(out), exclusive_lock(out, out / ".lock"):
        parts = _prepare_parts_folder(out)
        job_list = [PreparationJob(one, settings, parts / f"{one.subject}.npz") for one in usable]
        pending = [job for job in job_list if job.read_counts() is None]
        for n_done, failure in enumerate(iterate_results(prepare_night, pending, n_jobs), 1):
            failures += [failure] if failure else []
            on_progress(n_done, len(pending))
        failures.sort(key=lambda failure: int(failure.subject))
        path, header = out / "report.csv", ("subject", "file", "sentence")
        write_atomically(path, format_csv([header, *map(astuple, failures)]))
        counted = ((job, job.recording.subject, job.read_counts()) for job in job_list)
        entries = [
            StoreEntry(subject, covariates[subject], counts, job.load_part)
            for job, subject, counts in counted
            if counts is not None
        ]
        if entries:
            entries += [] if old_store is None else _old_entries(old_store)
            write_store(out, settings, sorted(entries, key=lambda entry: int(entry.subject)))
        for job in job_list:
            job.part_path.unlink(missing_ok=True)
        with suppress(OSError):  # not empty: something in it is not ours
            parts.rmdir()
    if old_store is None and not entries:
        raise PreparationError(
            f"none of the {len(recordings)} subjects could be prepared (the first: "
            f"{failures[0].file}: {failures[0].message.rstrip('.')}); all are in {path}."
        )
    store = SleepStore.open(out)
    counts = SegmentCounts.total(store.subjects.counts)
    return PreparationReport(store, counts, len(pending), tuple(failures), path)


def _open_old_store(out: Path, settings: StoreSettings) -> SleepStore | None:
    if out.exists() and not out.is_dir():
        raise ValueError(f"out is {out}, which is not a folder; choose another name.")
    if not (out / "store.json").exists():
        return None
    store = SleepStore.open(out)
    if store.settings != settings:
        problem = f"a store with other settings ({store.settings})"
        raise ValueError(f"out is {out}, {problem}; choose another folder.")
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


def _old_entries(store: SleepStore) -> list[StoreEntry]:
    entries = []
    for number, subject in enumerate(store.subjects.ids):
        indices = {name: float(store.subjects[name][number]) for name in INDEX_NAMES}
        load = partial(_load_night, store, number)
        entries.append(StoreEntry(subject, indices, store.subjects.counts[number], load))
    return entries


def _load_night(store: SleepStore, number: int) -> tuple[np.ndarray, np.ndarray]:
    first, count = store.night_rows(number)
    return store.segments[first : first + count], store.stages[first : first + count]


def prepare_night(job: PreparationJob) -> SubjectFailure | None:
    """Writes the part of a night, or tells why there is none.

    That a part cannot be written is no fault of the night and is raised.
    """
    subject = job.recording.subject
    try:
        night = read_night(job.recording, job.settings.channel)
    except RecordingError as error:
        return SubjectFailure(subject, error.path, error.message)
    except OSError as error:
        message = f"it cannot be read ({error.strerror})."
        return SubjectFailure(subject, str(error.filename), message)
    buffer, key = io.BytesIO(), np.array(job.settings_key)
    segments, stages, counts = night.segments, night.stages, np.array(astuple(night.counts))
    np.savez(buffer, segments=segments, stages=stages, counts=counts, settings=key)
    write_atomically(job.part_path, buffer.getvalue())
    return None


def read_night(recording: Recording, channel: str | None = None) -> Night:
    """The night's segments, float16, and their classes, int8."""
    stages = read_stages(recording.annotation)
    rows, has_signal = read_signal(recording.edf, channel)
    count, n_unmatched = _count_common_epochs(recording, len(rows), len(stages))
    is_scored = stages[:count] != UNSCORED
    has_signal = has_signal[:count]
    is_kept = is_scored & has_signal
    if not is_kept.any():
        raise RecordingError(recording.edf, "no segment has both a sleep stage and a signal.")
    n_kept, n_unscored = int(is_kept.sum()), int((~is_scored).sum())
    counts = SegmentCounts(n_kept, n_unscored, int(is_scored.sum()) - n_kept, n_unmatched)
    return Night(rows[:count][is_kept].astype(np.float16), stages[:count][is_kept], counts)


def _count_common_epochs(night: Recording, n_recorded: int, n_annotated: int) -> tuple[int, int]:
    """How many epochs both files have, and how many only one has."""
    short, long = sorted((n_recorded, n_annotated))
    if long - short > max(1, MAX_LENGTH_MISMATCH_SHARE * long):
        problem = f"it has {n_annotated} epochs of 30 s and the recording {n_recorded}"
        advice = "see whether they are of the same night"
        raise RecordingError(night.annotation, f"{problem}; {advice}.")
    # A last epoch that was not finished is no loss.
    return short, long - short if long - short > 1 else 0
