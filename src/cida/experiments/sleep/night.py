"""One night: from its two files to its segments, kept as a part until all nights are there."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cida.experiments.sleep.recording_errors import RecordingError
from cida.experiments.sleep.recordings import read_belt
from cida.experiments.sleep.signals import (
    cut_segments,
    find_gaps,
    mark_gap_segments,
    normalize,
    resample,
)
from cida.experiments.sleep.sleep_store import SegmentCounts, StoreSettings
from cida.experiments.sleep.stages import UNSCORED, read_stages
from cida.experiments.sleep.studies import Recording
from cida.io.arrays import read_arrays
from cida.io.files import write_atomically

__all__ = [
    "Night",
    "PreparationJob",
    "SubjectFailure",
    "prepare_night",
    "read_night",
    "read_part",
    "read_signal",
    "write_part",
]

Array = np.ndarray[Any, Any]

MAX_LENGTH_MISMATCH_SHARE = (
    0.05  # an annotation that is so much longer or shorter may be of another night
)


@dataclass(frozen=True)
class Night:
    """The segments of a night that have a stage and a signal."""

    segments: Array
    stages: Array
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
        return SubjectFailure(
            subject, str(error.filename), f"it cannot be read ({error.strerror})."
        )
    write_part(job.part_path, night, job.settings)
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
    counts = SegmentCounts(
        int(is_kept.sum()),
        int((~is_scored).sum()),
        int((is_scored & ~has_signal).sum()),
        n_unmatched,
    )
    return Night(rows[:count][is_kept].astype(np.float16), stages[:count][is_kept], counts)


def read_signal(edf: Path, channel: str | None = None) -> tuple[Array, Array]:
    """A recording's segments, and which of them have a signal."""
    belt = read_belt(edf, channel)
    gaps = find_gaps(belt.signal, belt.rate_hz)
    try:
        rows = cut_segments(normalize(resample(belt.signal, belt.rate_hz), gaps))
    except ValueError as error:
        raise RecordingError(edf, str(error)) from None
    return rows, ~mark_gap_segments(gaps, len(rows))


def _count_common_epochs(
    recording: Recording, n_recorded: int, n_annotated: int
) -> tuple[int, int]:
    """How many epochs both files have, and how many only one has."""
    short, long = sorted((n_recorded, n_annotated))
    if long - short > max(1, MAX_LENGTH_MISMATCH_SHARE * long):
        raise RecordingError(
            recording.annotation,
            f"it has {n_annotated} epochs of 30 s and the recording {n_recorded}; "
            f"see whether they are of the same night.",
        )
    # A last epoch that was not finished is no loss.
    return short, long - short if long - short > 1 else 0


def write_part(path: Path, night: Night, settings: StoreSettings) -> None:
    """The whole part or none."""
    buffer = io.BytesIO()
    np.savez(
        buffer,
        segments=night.segments,
        stages=night.stages,
        counts=np.array(list(asdict(night.counts).values())),
        settings=np.array(_settings_key(settings)),
    )
    write_atomically(path, buffer.getvalue())


def read_part(path: Path, settings: StoreSettings, counts_only: bool = False) -> Night | None:
    """The night, or None where there is no part of these settings; without its arrays if told."""
    try:
        part = read_arrays(path, ("settings", "counts"))
        if str(part["settings"]) != _settings_key(settings):
            return None
        counts = SegmentCounts(*(int(count) for count in part["counts"]))
        if counts_only:
            return Night(np.empty(0), np.empty(0), counts)
        part = read_arrays(path, ("segments", "stages"))
        return Night(part["segments"], part["stages"], counts)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _settings_key(settings: StoreSettings) -> str:
    """The settings that a part depends on: the columns are read when the store is written."""
    return json.dumps([settings.study, settings.simulated, settings.channel])
