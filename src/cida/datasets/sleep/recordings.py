"""The breathing belt of an EDF recording."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cida.datasets.sleep.errors import RecordingError
from cida.datasets.sleep.studies import plain

if TYPE_CHECKING:
    from edfio import Edf, EdfSignal

__all__ = ["Belt", "read_belt"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Belt:
    """A belt at its own rate, float32 in the file's physical units."""

    signal: Array
    rate_hz: float
    label: str


def read_belt(
    path: str | os.PathLike[str], aliases: Sequence[str], channel: str | None = None
) -> Belt:
    """The channel of this name, or the first of the aliases that the file has.

    The file is memory-mapped: no other channel is read into memory.
    """
    path = Path(path)
    _check_header(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # edfio warns of what is checked here, or does not matter
        try:
            edf = _open(path)
        except OSError:
            raise
        except Exception as error:  # whatever a broken header makes of edfio
            raise RecordingError(path, f"it cannot be read as EDF ({error}).") from error
        found = _choose(path, edf, aliases, channel)
        signal = found.data.astype(np.float32)
    _check_signal(path, found.label, signal)
    return Belt(signal, float(found.sampling_frequency), found.label)


def _open(path: Path) -> Edf:
    from edfio import read_edf  # of the extra cida[sleep]

    return read_edf(path, lazy_load_data=True)


def _choose(path: Path, edf: Edf, aliases: Sequence[str], channel: str | None) -> EdfSignal:
    signals: dict[str, EdfSignal] = {}
    for signal in edf.signals:
        signals.setdefault(plain(signal.label), signal)
    for name in aliases if channel is None else (channel,):
        if plain(name) in signals:
            return signals[plain(name)]
    wanted = "no breathing belt is" if channel is None else f"channel {channel!r} is not"
    there = ", ".join(repr(signal.label) for signal in signals.values()) or "none"
    raise RecordingError(path, f"{wanted} among its channels ({there}); name the belt as channel.")


def _check_signal(path: Path, label: str, signal: Array) -> None:
    finite = signal[np.isfinite(signal)]
    if not finite.size:
        raise RecordingError(path, f"channel {label!r} has no number in it.")
    if finite.min() == finite.max():
        raise RecordingError(path, f"channel {label!r} is flat: the belt was not connected.")


def _check_header(path: Path) -> None:
    """Refuses what edfio reads leniently: a file cut short, and one whose records have gaps."""
    with path.open("rb") as file:
        fixed = file.read(256)
        try:
            records, duration, count = int(fixed[236:244]), float(fixed[244:252]), int(fixed[252:])
            sizes = file.read(256 * count)[216 * count : 224 * count]
            samples = [int(sizes[8 * number : 8 * number + 8]) for number in range(count)]
        except ValueError:
            samples = []
    # The version of EDF is 0. Only annotations may have records that last no time.
    if not samples or min(samples) < 0 or fixed[:8].strip() != b"0" or not 0 < duration < math.inf:
        raise RecordingError(path, "it is no EDF file, or its header is broken; download it again.")
    if fixed[192:197] == b"EDF+D":
        raise RecordingError(path, "it is a discontinuous EDF+ (EDF+D); make it continuous first.")
    size, record_bytes = path.stat().st_size - 256 * (count + 1), 2 * sum(samples)
    if records == 0 or size < record_bytes or not record_bytes:
        raise RecordingError(path, "it is empty: a header and not one record.")
    if size < records * record_bytes:
        here = f"{size // record_bytes} of {records} records are there"
        raise RecordingError(path, f"it was cut short ({here}); download it again.")
