"""One night: from its two files to its segments, kept as a part until all nights are there."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cida.arrays import read_arrays
from cida.datasets.sleep.errors import RecordingError
from cida.datasets.sleep.recordings import read_belt
from cida.datasets.sleep.signals import find_gaps, gap_segments, normalise, resample, segments
from cida.datasets.sleep.stages import UNSCORED, read_stages
from cida.datasets.sleep.store import Counts, Settings
from cida.datasets.sleep.studies import Recording
from cida.files import write_atomically

__all__ = [
    "Failure",
    "Night",
    "Task",
    "prepare_night",
    "read_night",
    "read_part",
    "read_signal",
    "write_part",
]

Array = np.ndarray[Any, Any]

UNLIKE = 0.05  # an annotation that is so much longer or shorter may be of another night


@dataclass(frozen=True)
class Night:
    """The segments of a night that have a stage and a signal."""

    segments: Array
    stages: Array
    counts: Counts


@dataclass(frozen=True)
class Failure:
    """A subject that is left out, the file at fault and one sentence."""

    subject: str
    file: str
    sentence: str


@dataclass(frozen=True)
class Task:
    """What a job needs to prepare one night."""

    recording: Recording
    belts: tuple[str, ...]
    settings: Settings
    part: Path


def prepare_night(task: Task) -> Failure | None:
    """Writes the part of a night, or tells why there is none.

    That a part cannot be written is no fault of the night and is raised.
    """
    subject = task.recording.subject
    try:
        night = read_night(task.recording, task.belts, task.settings.channel)
    except RecordingError as error:
        return Failure(subject, error.path, error.fault)
    except OSError as error:
        return Failure(subject, str(error.filename), f"it cannot be read ({error.strerror}).")
    write_part(task.part, night, task.settings)
    return None


def read_night(recording: Recording, belts: tuple[str, ...], channel: str | None) -> Night:
    """The night's segments, float16, and their classes, int8."""
    stages = read_stages(recording.annotation)
    rows, real = read_signal(recording.edf, belts, channel)
    count, cut = _common(recording, len(rows), len(stages))
    scored = stages[:count] != UNSCORED
    real = real[:count]
    keep = scored & real
    if not keep.any():
        raise RecordingError(recording.edf, "no segment has both a sleep stage and a signal.")
    counts = Counts(int(keep.sum()), int((~scored).sum()), int((scored & ~real).sum()), cut)
    return Night(rows[:count][keep].astype(np.float16), stages[:count][keep], counts)


def read_signal(edf: Path, belts: tuple[str, ...], channel: str | None) -> tuple[Array, Array]:
    """A recording's segments, and which of them have a signal."""
    belt = read_belt(edf, belts, channel)
    gaps = find_gaps(belt.signal, belt.rate_hz)
    try:
        rows = segments(normalise(resample(belt.signal, belt.rate_hz), gaps))
    except ValueError as error:
        raise RecordingError(edf, str(error)) from None
    return rows, ~gap_segments(gaps, len(rows))


def _common(recording: Recording, recorded: int, annotated: int) -> tuple[int, int]:
    """How many epochs both files have, and how many only one has."""
    short, long = sorted((recorded, annotated))
    if long - short > max(1, UNLIKE * long):
        raise RecordingError(
            recording.annotation,
            f"it has {annotated} epochs of 30 s and the recording {recorded}; "
            f"see whether they are of the same night.",
        )
    # A last epoch that was not finished is no loss.
    return short, long - short if long - short > 1 else 0


def write_part(path: Path, night: Night, settings: Settings) -> None:
    """The whole part or none."""
    made = io.BytesIO()
    np.savez(
        made,
        segments=night.segments,
        stages=night.stages,
        counts=np.array(list(asdict(night.counts).values())),
        settings=np.array(_words(settings)),
    )
    write_atomically(path, made.getvalue())


def read_part(path: Path, settings: Settings, counts_only: bool = False) -> Night | None:
    """The night, or None where there is no part of these settings; without its arrays if told."""
    try:
        part = read_arrays(path, ("settings", "counts"))
        if str(part["settings"]) != _words(settings):
            return None
        counts = Counts(*(int(count) for count in part["counts"]))
        if counts_only:
            return Night(np.empty(0), np.empty(0), counts)
        part = read_arrays(path, ("segments", "stages"))
        return Night(part["segments"], part["stages"], counts)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _words(settings: Settings) -> str:
    """The settings that a part depends on: the columns are read when the store is written."""
    return json.dumps([settings.study, settings.simulated, settings.channel])
