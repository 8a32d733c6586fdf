"""A belt's signal to segments: resampled, scaled and cut."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.signal import resample_poly

__all__ = ["RATE_HZ", "SEGMENT_SECONDS", "find_gaps", "gap_segments", "normalise", "resample",
           "segments"]  # fmt: skip

Array = np.ndarray[Any, Any]

RATE_HZ = 10.0  # breathing is below 1 Hz; SHHS was recorded at this rate
SEGMENT_SECONDS = 30
GAP_SECONDS = 10.0
LIMIT = 8.0

SLOWEST_HZ, FASTEST_HZ = 4.0, 20000.0
DENOMINATOR_MAX = 5000
IQR_OF_GAUSSIAN = 1.349


def find_gaps(signal: Array, rate_hz: float) -> Array:
    """Stretches of more than 10 s that are flat or no numbers: start and stop in seconds, (n, 2).

    To be found at the belt's own rate: resampling rounds their edges.
    """
    finite = np.isfinite(signal)
    still = (signal[1:] == signal[:-1]) | ~(finite[1:] | finite[:-1])
    edges = np.flatnonzero(np.diff(still, prepend=False, append=False))
    first, last = edges[::2], edges[1::2] + 1  # n samples alike have n - 1 steps between them
    gaps = np.stack([first, last], axis=1) / rate_hz
    return gaps[gaps[:, 1] - gaps[:, 0] > GAP_SECONDS]


def resample(signal: Array, rate_hz: float, to_hz: float = RATE_HZ) -> Array:
    """The signal at another rate, float32; what the new rate cannot hold is filtered out first.

    Samples that are no numbers are bridged by straight lines, since the filter would spread them.
    """
    if not SLOWEST_HZ <= rate_hz <= FASTEST_HZ:
        raise ValueError(
            f"rate_hz is {rate_hz:g}; a belt is recorded with {SLOWEST_HZ:g} to {FASTEST_HZ:g} Hz."
        )
    ratio = Fraction(to_hz / rate_hz).limit_denominator(DENOMINATOR_MAX)
    padding = "median"  # with zeros, a belt that does not rest at zero would begin with a jump
    found: Array = resample_poly(
        _bridged(signal), ratio.numerator, ratio.denominator, padtype=padding
    )
    return found.astype(np.float32, copy=False)


def normalise(signal: Array, gaps: Array, rate_hz: float = RATE_HZ) -> Array:
    """The night around 0 with a spread of about 1, limited to +-8.

    Belts have no common unit, so each night gives its own. Median and interquartile range, since a
    turn in bed is some hundred times a breath and would set mean and variance; the limit keeps what
    is left of it from ruling a network's batch. Gaps do not count.
    """
    real = np.ones(len(signal), bool)
    for start, stop in gaps:
        real[math.floor(start * rate_hz) : math.ceil(stop * rate_hz)] = False
    if not real.any():
        raise ValueError("the belt is flat all night; it was not connected.")
    low, middle, high = np.percentile(signal[real], [25, 50, 75])
    if not high > low:
        raise ValueError("the belt hardly moves all night; it was not connected well.")
    scaled = (signal - middle) * (IQR_OF_GAUSSIAN / (high - low))
    found: Array = np.clip(scaled, -LIMIT, LIMIT, dtype=np.float32)
    return found


def segments(signal: Array, rate_hz: float = RATE_HZ) -> Array:
    """The signal in whole segments of 30 s, (n, 300); what is left at the end is cut off."""
    width = round(SEGMENT_SECONDS * rate_hz)
    count = len(signal) // width
    return signal[: count * width].reshape(count, width)


def gap_segments(gaps: Array, count: int) -> Array:
    """Which of so many segments have more than 10 s of one gap in them."""
    found = np.zeros(count, bool)
    for start, stop in gaps:
        first, last = int(start // SEGMENT_SECONDS), math.ceil(stop / SEGMENT_SECONDS)
        begin = np.arange(first, min(last, count)) * SEGMENT_SECONDS
        shared = np.minimum(stop, begin + SEGMENT_SECONDS) - np.maximum(start, begin)
        found[first:last] |= shared > GAP_SECONDS
    return found


def _bridged(signal: Array) -> Array:
    finite = np.isfinite(signal)
    if finite.all():
        return signal
    places = np.arange(len(signal))
    return np.interp(places, places[finite], signal[finite]).astype(np.float32)
