"""A belt's signal to segments: resampled, scaled and cut."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.signal import resample_poly

__all__ = [
    "SEGMENT_RATE_HZ",
    "SEGMENT_SECONDS",
    "cut_segments",
    "find_gaps",
    "mark_gap_segments",
    "normalize",
    "resample",
]

Array = np.ndarray[Any, Any]

SEGMENT_RATE_HZ = 10.0  # breathing is below 1 Hz; SHHS was recorded at this rate
SEGMENT_SECONDS = 30
MIN_GAP_SECONDS = 10.0
MAX_ABS_SIGNAL = 8.0

MIN_BELT_RATE_HZ, MAX_BELT_RATE_HZ = 4.0, 20000.0
MAX_RATIO_DENOMINATOR = 5000
IQR_OF_GAUSSIAN = 1.349


def find_gaps(signal: Array, rate_hz: float) -> Array:
    """Stretches of more than 10 s that are flat or no numbers: start and stop in seconds, (n, 2).

    To be found at the belt's own rate: resampling rounds their edges.
    """
    finite = np.isfinite(signal)
    is_flat = (signal[1:] == signal[:-1]) | ~(finite[1:] | finite[:-1])
    edges = np.flatnonzero(np.diff(is_flat, prepend=False, append=False))
    first, last = edges[::2], edges[1::2] + 1  # n samples alike have n - 1 steps between them
    gaps = np.stack([first, last], axis=1) / rate_hz
    return gaps[gaps[:, 1] - gaps[:, 0] > MIN_GAP_SECONDS]


def resample(signal: Array, rate_hz: float, to_hz: float = SEGMENT_RATE_HZ) -> Array:
    """The signal at another rate, float32; what the new rate cannot hold is filtered out first.

    Samples that are no numbers are bridged by straight lines, since the filter would spread them.
    """
    if not MIN_BELT_RATE_HZ <= rate_hz <= MAX_BELT_RATE_HZ:
        raise ValueError(
            f"rate_hz is {rate_hz:g}; a belt is recorded with {MIN_BELT_RATE_HZ:g} to "
            f"{MAX_BELT_RATE_HZ:g} Hz."
        )
    ratio = Fraction(to_hz / rate_hz).limit_denominator(MAX_RATIO_DENOMINATOR)
    padding = "median"  # with zeros, a belt that does not rest at zero would begin with a jump
    resampled: Array = resample_poly(
        _interpolate_missing(signal), ratio.numerator, ratio.denominator, padtype=padding
    )
    return resampled.astype(np.float32, copy=False)


def normalize(signal: Array, gaps: Array, rate_hz: float = SEGMENT_RATE_HZ) -> Array:
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
    clipped: Array = np.clip(scaled, -MAX_ABS_SIGNAL, MAX_ABS_SIGNAL, dtype=np.float32)
    return clipped


def cut_segments(signal: Array, rate_hz: float = SEGMENT_RATE_HZ) -> Array:
    """The signal in whole segments of 30 s, (n, 300); what is left at the end is cut off."""
    width = round(SEGMENT_SECONDS * rate_hz)
    count = len(signal) // width
    return signal[: count * width].reshape(count, width)


def mark_gap_segments(gaps: Array, count: int) -> Array:
    """Which of so many segments have more than 10 s of one gap in them."""
    has_gap = np.zeros(count, bool)
    for start, stop in gaps:
        first, last = int(start // SEGMENT_SECONDS), math.ceil(stop / SEGMENT_SECONDS)
        begin = np.arange(first, min(last, count)) * SEGMENT_SECONDS
        overlap_seconds = np.minimum(stop, begin + SEGMENT_SECONDS) - np.maximum(start, begin)
        has_gap[first:last] |= overlap_seconds > MIN_GAP_SECONDS
    return has_gap


def _interpolate_missing(signal: Array) -> Array:
    finite = np.isfinite(signal)
    if finite.all():
        return signal
    sample_numbers = np.arange(len(signal))
    return np.interp(sample_numbers, sample_numbers[finite], signal[finite]).astype(np.float32)
