"""Sleep stages: NSRR's annotation files, and the four classes of the paper."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError

import numpy as np

from cida.experiments.sleep.recording_errors import RecordingError
from cida.io.files import write_atomically

__all__ = [
    "AWAKE",
    "DEEP",
    "EPOCH_SECONDS",
    "LIGHT",
    "REM",
    "STAGE_CLASSES",
    "UNSCORED",
    "read_stages",
    "write_stages",
]

Array = np.ndarray[Any, Any]

AWAKE, LIGHT, DEEP, REM = range(4)
STAGE_CLASSES = ("awake", "light", "deep", "rem")
UNSCORED = -1

EPOCH_SECONDS = 30
MAX_EPOCHS = 2 * 24 * 120  # two days: a wrong duration must not ask for all the memory

# NSRR's number of a stage: its name there, and our class.
NSRR_STAGES = {
    0: ("Wake|0", AWAKE),
    1: ("Stage 1 sleep|1", LIGHT),
    2: ("Stage 2 sleep|2", LIGHT),
    3: ("Stage 3 sleep|3", DEEP),
    4: ("Stage 4 sleep|4", DEEP),
    5: ("REM sleep|5", REM),
    6: ("Movement|6", UNSCORED),
    9: ("Unscored|9", UNSCORED),
}


def read_stages(path: str | os.PathLike[str]) -> Array:
    """The class of each epoch of 30 s, int8; UNSCORED where no stage was scored."""
    events = list(_read_stage_events(Path(path)))
    length = max((first + count for first, count, _ in events), default=0)
    if length == 0:
        raise RecordingError(path, "no sleep stage is in it; download the NSRR annotation again.")
    if length > MAX_EPOCHS:
        raise RecordingError(path, f"its stages last {length / 120:.0f} hours; that is no night.")
    stages = np.full(length, UNSCORED, np.int8)
    is_taken = np.zeros(length, bool)
    for first, count, stage in events:
        span = slice(first, first + count)
        if is_taken[span].any():
            start = first * EPOCH_SECONDS
            raise RecordingError(path, f"the stage at {start} s overlaps another; leave one.")
        is_taken[span] = True
        stages[span] = stage
    return stages


def write_stages(path: str | os.PathLike[str], numbers: Sequence[int] | Array) -> None:
    """NSRR's annotation file of a night: the stage's number (0 to 6, or 9) of each epoch."""
    numbers = [int(number) for number in numbers]
    unknown_numbers = sorted(set(numbers) - set(NSRR_STAGES))
    if unknown_numbers or not numbers:
        problem = f"has {unknown_numbers[0]}" if unknown_numbers else "is empty"
        raise ValueError(
            f"numbers {problem}; give a stage of {sorted(NSRR_STAGES)} for each epoch."
        )
    lines = [
        '<?xml version="1.0" encoding="UTF-8" standalone="no"?>',
        "<PSGAnnotation>",
        "<SoftwareVersion>cida</SoftwareVersion>",
        f"<EpochLength>{EPOCH_SECONDS}</EpochLength>",
        "<ScoredEvents>",
    ]
    first = 0
    for number, run in groupby(numbers):
        count = len(list(run))
        lines += [
            "<ScoredEvent>",
            "<EventType>Stages|Stages</EventType>",
            f"<EventConcept>{NSRR_STAGES[number][0]}</EventConcept>",
            f"<Start>{first * EPOCH_SECONDS:.1f}</Start>",
            f"<Duration>{count * EPOCH_SECONDS:.1f}</Duration>",
            "</ScoredEvent>",
        ]
        first += count
    lines += ["</ScoredEvents>", "</PSGAnnotation>", ""]
    write_atomically(path, "\n".join(lines).encode())


def _read_stage_events(path: Path) -> Iterator[tuple[int, int, int]]:
    """First epoch, number of epochs and class of each stage event."""
    for event in _parse_xml(path).iter("ScoredEvent"):
        if (event.findtext("EventType") or "").strip() == "Stages|Stages":
            concept = (event.findtext("EventConcept") or "").strip()
            first, count = (_parse_epochs(path, event, what) for what in ("Start", "Duration"))
            yield first, count, _stage_class(path, concept)


def _parse_xml(path: Path) -> Element:
    """The root element; entities are refused, since a small file could grow into all the memory."""
    from defusedxml import DefusedXmlException, ElementTree  # of the extra cida[sleep]

    try:
        root: Element = ElementTree.parse(path).getroot()
    except DefusedXmlException:
        raise RecordingError(path, "it declares XML entities, which no annotation needs.") from None
    except (ParseError, ValueError, LookupError) as error:
        raise RecordingError(path, f"it is no XML ({error}); download it again.") from None
    return root


def _stage_class(path: Path, concept: str) -> int:
    number = concept.rpartition("|")[2]
    if not number.isdecimal() or int(number) not in NSRR_STAGES:
        stage_names = ", ".join(name for name, _ in NSRR_STAGES.values())
        raise RecordingError(path, f"{concept!r} is no stage; known are {stage_names}.")
    return NSRR_STAGES[int(number)][1]


def _parse_epochs(path: Path, event: Element, tag: str) -> int:
    """A time in epochs."""
    text = (event.findtext(tag) or "").strip()
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (0 <= seconds < math.inf) or seconds % EPOCH_SECONDS:
        raise RecordingError(
            path, f"a stage has {tag} {text!r}; it must be a multiple of {EPOCH_SECONDS} seconds."
        )
    return int(seconds) // EPOCH_SECONDS
