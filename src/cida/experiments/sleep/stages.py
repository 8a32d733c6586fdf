"""Sleep stages: NSRR's annotation files, and the four classes of the paper."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

import numpy as np

from cida.experiments.sleep.recording_errors import RecordingError
from cida.io.files import write_atomically

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

ANNOTATION = """<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<PSGAnnotation>
<SoftwareVersion>cida</SoftwareVersion>
<EpochLength>{}</EpochLength>
<ScoredEvents>
{}</ScoredEvents>
</PSGAnnotation>
"""
EVENT = """<ScoredEvent>
<EventType>Stages|Stages</EventType>
<EventConcept>{}</EventConcept>
<Start>{:.1f}</Start>
<Duration>{:.1f}</Duration>
</ScoredEvent>
"""


def read_stages(path: str | os.PathLike[str]) -> np.ndarray:
    """The class of each epoch of 30 s, int8; UNSCORED where no stage was scored."""
    events = list(_read_stage_events(Path(path)))
    length = max((first + count for first, count, _ in events), default=0)
    if length == 0:
        raise RecordingError(path, "it has no sleep stage; download the NSRR annotation again.")
    if length > MAX_EPOCHS:
        hours = length / 120
        raise RecordingError(path, f"its stages last {hours:.0f} hours; that is not a night.")
    stages = np.full(length, UNSCORED, np.int8)
    is_taken = np.zeros(length, bool)
    for first, count, stage in events:
        span = slice(first, first + count)
        if is_taken[span].any():
            start = first * EPOCH_SECONDS
            raise RecordingError(path, f"the stage at {start} s overlaps another; keep one.")
        is_taken[span] = True
        stages[span] = stage
    return stages


def write_stages(path: str | os.PathLike[str], numbers: Sequence[int] | np.ndarray) -> None:
    """NSRR's annotation file of a night: the stage's number (0 to 6, or 9) of each epoch."""
    numbers = [int(number) for number in numbers]
    unknown_numbers = sorted(set(numbers) - set(NSRR_STAGES))
    if unknown_numbers or not numbers:
        problem = f"has {unknown_numbers[0]}" if unknown_numbers else "is empty"
        known = sorted(NSRR_STAGES)
        raise ValueError(f"numbers {problem}; give a stage of {known} for each epoch.")
    events, start = "", 0
    for number, run in groupby(numbers):
        seconds = EPOCH_SECONDS * len(list(run))
        events += EVENT.format(NSRR_STAGES[number][0], start, seconds)
        start += seconds
    write_atomically(path, ANNOTATION.format(EPOCH_SECONDS, events).encode())


def _read_stage_events(path: Path) -> Iterator[tuple[int, int, int]]:
    """First epoch, number of epochs and class of each stage event.

    XML entities are refused, since a small file could grow into all the memory.
    """
    from defusedxml import DefusedXmlException, ElementTree  # of the extra cida[sleep]

    try:
        root = ElementTree.parse(path).getroot()
    except DefusedXmlException:
        raise RecordingError(path, "it declares XML entities, which no annotation needs.") from None
    except (ParseError, ValueError, LookupError) as error:
        raise RecordingError(path, f"it is not XML ({error}); download it again.") from None
    for event in root.iter("ScoredEvent"):
        if (event.findtext("EventType") or "").strip() == "Stages|Stages":
            concept = (event.findtext("EventConcept") or "").strip()
            number = concept.rpartition("|")[2]
            if not number.isdecimal() or int(number) not in NSRR_STAGES:
                known = ", ".join(name for name, _ in NSRR_STAGES.values())
                raise RecordingError(path, f"{concept!r} is not a stage; known stages are {known}.")
            first, count = (_parse_epochs(path, event, what) for what in ("Start", "Duration"))
            yield first, count, NSRR_STAGES[int(number)][1]


def _parse_epochs(path: Path, event: Element, tag: str) -> int:
    """A time in epochs."""
    text = (event.findtext(tag) or "").strip()
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (0 <= seconds < math.inf) or seconds % EPOCH_SECONDS:
        rule = f"it must be a multiple of {EPOCH_SECONDS} seconds"
        raise RecordingError(path, f"a stage has {tag} {text!r}; {rule}.")
    return int(seconds) // EPOCH_SECONDS
