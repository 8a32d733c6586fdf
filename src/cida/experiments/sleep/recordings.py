"""The breathing belt of an EDF recording."""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cida.experiments.sleep.recording_errors import RecordingError
from cida.experiments.sleep.studies import BELT_ALIASES, normalize_label

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


def read_belt(path: str | os.PathLike[str], channel: str | None = None) -> Belt:
    """The channel of this name, or the first belt of `BELT_ALIASES` that the file has.

    The file is memory-mapped: no other channel is read into memory.
    """
    path = Path(path)
    _check_header(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # edfio warns of what is checked here, or does not matter
        try:
            edf = _open_edf(path)
        except OSError:
            raise
        except Exception as error:  # whatever a broken header makes of edfio
            raise RecordingError(path, f"it cannot be read as EDF ({error}).") from error
        belt_signal = _choose_channel(path, edf, channel)
        signal = belt_signal.data.astype(np.float32)
    _check_signal(path, belt_signal.label, signal)
    return Belt(signal, float(belt_signal.sampling_frequency), belt_signal.label)


def _open_edf(path: Path) -> Edf:
    from edfio import read_edf  # of the extra cida[sleep]

    return read_edf(path, lazy_load_data=True)


def _choose_channel(path: Path, edf: Edf, channel: str | None) -> EdfSignal:
    signals: dict[str, EdfSignal] = {}
    for signal in edf.signals:
        signals.setdefault(normalize_label(signal.label), signal)
    for name in BELT_ALIASES if channel is None else (channel,):
        if normalize_label(name) in signals:
            return signals[normalize_label(name)]
    problem = "no breathing belt is" if channel is None else f"channel {channel!r} is not"
    available = ", ".join(repr(signal.label) for signal in signals.values()) or "none"
    raise RecordingError(
        path, f"{problem} among its channels ({available}); name the belt as channel."
    )


def _check_signal(path: Path, label: str, signal: Array) -> None:
    finite = signal[np.isfinite(signal)]
    if not finite.size:
        raise RecordingError(path, f"channel {label!r} has no number in it.")
    if finite.min() == finite.max():
        raise RecordingError(path, f"channel {label!r} is flat: the belt was not connected.")


def _check_header(path: Path) -> None:
    """Refuses what edfio reads leniently: a file cut short, and one whose records have gaps."""
    with path.open("rb") as file:
        fixed_header = file.read(256)
        try:
            n_records, duration, n_channels = (
                int(fixed_header[236:244]),
                float(fixed_header[244:252]),
                int(fixed_header[252:]),
            )
            sizes = file.read(256 * n_channels)[216 * n_channels : 224 * n_channels]
            samples = [int(sizes[8 * number : 8 * number + 8]) for number in range(n_channels)]
        except ValueError:
            samples = []
    # The version of EDF is 0. Only annotations may have records that last no time.
    if (
        not samples
        or min(samples) < 0
        or fixed_header[:8].strip() != b"0"
        or not 0 < duration < math.inf
    ):
        raise RecordingError(path, "it is no EDF file, or its header is broken; download it again.")
    if fixed_header[192:197] == b"EDF+D":
        raise RecordingError(path, "it is a discontinuous EDF+ (EDF+D); make it continuous first.")
    size, record_bytes = path.stat().st_size - 256 * (n_channels + 1), 2 * sum(samples)
    if n_records == 0 or size < record_bytes or not record_bytes:
        raise RecordingError(path, "it is empty: a header and not one record.")
    if size < n_records * record_bytes:
        record_note = f"{size // record_bytes} of {n_records} records are there"
        raise RecordingError(path, f"it was cut short ({record_note}); download it again.")
