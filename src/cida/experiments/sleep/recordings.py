"""The breathing belt of an EDF recording: its signal, resampled, scaled and cut into segments."""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.signal import resample_poly

from cida.experiments.sleep.recording_errors import RecordingError
from cida.experiments.sleep.studies import BELT_ALIASES, normalize_label

if TYPE_CHECKING:
    from edfio import Edf, EdfSignal


SEGMENT_RATE_HZ = 10.0  # breathing is below 1 Hz; SHHS was recorded at this rate
SEGMENT_SECONDS = 30
MIN_GAP_SECONDS = 10.0
MAX_ABS_SIGNAL = 8.0

MIN_BELT_RATE_HZ, MAX_BELT_RATE_HZ = 4.0, 20000.0
MAX_RATIO_DENOMINATOR = 5000
IQR_OF_GAUSSIAN = 1.349


@dataclass(frozen=True)
class Belt:
    """A belt at its own rate, float32 in the file's physical units."""

    signal: np.ndarray
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
    finite, label = signal[np.isfinite(signal)], belt_signal.label
    if not finite.size:
        raise RecordingError(path, f"channel {label!r} contains no numbers.")
    if finite.min() == finite.max():
        raise RecordingError(path, f"channel {label!r} is flat: the belt was not connected.")
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
    problem = f"{problem} among its channels ({available})"
    raise RecordingError(path, f"{problem}; name the belt as channel.")


def _check_header(path: Path) -> None:
    """Refuses what edfio reads leniently: a file cut short, and one whose records have gaps."""
    with path.open("rb") as file:
        fixed_header = file.read(256)
        try:
            n_records, n_channels = int(fixed_header[236:244]), int(fixed_header[252:])
            duration = float(fixed_header[244:252])
            sizes = file.read(256 * n_channels)[216 * n_channels : 224 * n_channels]
            samples = [int(sizes[8 * number : 8 * number + 8]) for number in range(n_channels)]
        except ValueError:
            samples = []
    # The version of EDF is 0. Only annotations may have records that last no time.
    is_edf = fixed_header[:8].strip() == b"0"
    if not samples or min(samples) < 0 or not is_edf or not 0 < duration < math.inf:
        problem = "it is not an EDF file, or its header is broken"
        raise RecordingError(path, f"{problem}; download it again.")
    if fixed_header[192:197] == b"EDF+D":
        raise RecordingError(path, "it is a discontinuous EDF+ (EDF+D); make it continuous first.")
    size, record_bytes = path.stat().st_size - 256 * (n_channels + 1), 2 * sum(samples)
    if n_records == 0 or size < record_bytes or not record_bytes:
        raise RecordingError(path, "it is empty: a header without records.")
    if size < n_records * record_bytes:
        record_note = f"{size // record_bytes} of {n_records} records are there"
        raise RecordingError(path, f"it was cut short ({record_note}); download it again.")


def read_signal(edf: Path, channel: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """A recording's segments, and which of them have a signal."""
    belt = read_belt(edf, channel)
    gaps = find_gaps(belt.signal, belt.rate_hz)
    try:
        rows = cut_segments(normalize(resample(belt.signal, belt.rate_hz), gaps))
    except ValueError as error:
        raise RecordingError(edf, str(error)) from None
    return rows, ~mark_gap_segments(gaps, len(rows))


def find_gaps(signal: np.ndarray, rate_hz: float) -> np.ndarray:
    """Stretches of more than 10 s that are flat or no numbers: start and stop in seconds, (n, 2).

    To be found at the belt's own rate: resampling rounds their edges.
    """
    finite = np.isfinite(signal)
    is_flat = (signal[1:] == signal[:-1]) | ~(finite[1:] | finite[:-1])
    edges = np.flatnonzero(np.diff(is_flat, prepend=False, append=False))
    first, last = edges[::2], edges[1::2] + 1  # n samples alike have n - 1 steps between them
    gaps = np.stack([first, last], axis=1) / rate_hz
    return gaps[gaps[:, 1] - gaps[:, 0] > MIN_GAP_SECONDS]


def resample(signal: np.ndarray, rate_hz: float, to_hz: float = SEGMENT_RATE_HZ) -> np.ndarray:
    """The signal at another rate, float32; what the new rate cannot hold is filtered out first.

    Samples that are no numbers are bridged by straight lines, since the filter would spread them.
    """
    if not MIN_BELT_RATE_HZ <= rate_hz <= MAX_BELT_RATE_HZ:
        allowed = f"{MIN_BELT_RATE_HZ:g} to {MAX_BELT_RATE_HZ:g} Hz"
        raise ValueError(f"rate_hz is {rate_hz:g}; a belt is recorded with {allowed}.")
    ratio = Fraction(to_hz / rate_hz).limit_denominator(MAX_RATIO_DENOMINATOR)
    finite, samples = np.isfinite(signal), np.arange(len(signal))
    if not finite.all():
        signal = np.interp(samples, samples[finite], signal[finite]).astype(np.float32)
    up, down = ratio.numerator, ratio.denominator
    padding = "median"  # with zeros, a belt that does not rest at zero would begin with a jump
    resampled: np.ndarray = resample_poly(signal, up, down, padtype=padding)
    return resampled.astype(np.float32, copy=False)


def normalize(signal: np.ndarray, gaps: np.ndarray, rate_hz: float = SEGMENT_RATE_HZ) -> np.ndarray:
    """The night around 0 with a spread of about 1, limited to +-8.

    Belts have no common unit, so each night gives its own. Median and interquartile range, since a
    turn in bed is some hundred times a breath and would set mean and variance; the limit keeps what
    is left of it from ruling a network's batch. Gaps do not count.
    """
    is_valid = np.ones(len(signal), bool)
    for start, stop in gaps:
        is_valid[math.floor(start * rate_hz) : math.ceil(stop * rate_hz)] = False
    if not is_valid.any():
        raise ValueError("the belt is flat all night; it was not connected.")
    low, median, high = np.percentile(signal[is_valid], [25, 50, 75])
    if not high > low:
        raise ValueError("the belt hardly moves all night; it was not connected well.")
    scaled = (signal - median) * (IQR_OF_GAUSSIAN / (high - low))
    return np.asarray(np.clip(scaled, -MAX_ABS_SIGNAL, MAX_ABS_SIGNAL, dtype=np.float32))


def cut_segments(signal: np.ndarray, rate_hz: float = SEGMENT_RATE_HZ) -> np.ndarray:
    """The signal in whole segments of 30 s, (n, 300); what is left at the end is cut off."""
    width = round(SEGMENT_SECONDS * rate_hz)
    count = len(signal) // width
    return signal[: count * width].reshape(count, width)


def mark_gap_segments(gaps: np.ndarray, count: int) -> np.ndarray:
    """Which of so many segments have more than 10 s of one gap in them."""
    has_gap = np.zeros(count, bool)
    for start, stop in gaps:
        first, last = int(start // SEGMENT_SECONDS), math.ceil(stop / SEGMENT_SECONDS)
        begin = np.arange(first, min(last, count)) * SEGMENT_SECONDS
        overlap_seconds = np.minimum(stop, begin + SEGMENT_SECONDS) - np.maximum(start, begin)
        has_gap[first:last] |= overlap_seconds > MIN_GAP_SECONDS
    return has_gap
