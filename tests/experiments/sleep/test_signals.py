"""Breathing is resampled without changing its rate or depth, and cut into segments."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import resample as resample_fourier

from cida.experiments.sleep.recordings import (
    cut_segments,
    find_gaps,
    mark_gap_segments,
    normalize,
    resample,
)

NO_GAPS = np.empty((0, 2))


def sine(frequency_hz, rate_hz, seconds=600):
    return np.sin(2 * np.pi * frequency_hz * np.arange(round(seconds * rate_hz)) / rate_hz)


@pytest.mark.parametrize("rate_hz", [10, 16, 25, 32, 50, 8, 125, 12.8, 256 / 3, 32.123456])
@pytest.mark.parametrize("frequency_hz", [0.1, 0.3, 1.0, 2.5])
def test_a_breath_keeps_its_rate_and_its_depth(rate_hz, frequency_hz):
    found = resample(sine(frequency_hz, rate_hz), rate_hz)
    assert found.dtype == np.float32
    assert len(found) == pytest.approx(6000, abs=1)
    middle = slice(200, 5800)
    right = sine(frequency_hz, 10)[middle]
    assert np.abs(found[middle] - right).max() < 0.01


def test_it_agrees_with_resampling_by_fourier():
    signal = sine(0.25, 32) + 0.3 * sine(1.75, 32)
    found, other = resample(signal, 32), resample_fourier(signal, 6000)
    assert np.abs(found - other)[100:-100].max() < 0.01


@pytest.mark.parametrize("frequency_hz", [7, 9.75, 13])
def test_what_ten_hertz_cannot_hold_vanishes(frequency_hz):
    assert np.abs(resample(sine(frequency_hz, 32), 32)[100:-100]).max() < 0.005


def test_a_signal_far_from_zero_does_not_begin_with_a_jump():
    found = resample(1000 + sine(0.25, 32), 32)
    assert found.min() > 998
    assert found.max() < 1002


def test_missing_samples_are_bridged():
    signal = sine(0.25, 32)
    signal[100:120] = np.nan
    signal[-5:] = np.nan
    found = resample(signal, 32)
    assert np.isfinite(found).all()
    assert np.abs(found - sine(0.25, 10))[50:-50].max() < 0.1


@pytest.mark.parametrize("rate_hz", [0, -10, 1, math.nan, math.inf, 1e6])
def test_an_absurd_rate_is_refused(rate_hz):
    with pytest.raises(ValueError, match=r"rate_hz is .*; a belt is recorded with 4 to 20000 Hz"):
        resample(np.zeros(100), rate_hz)


def test_the_night_gives_its_own_unit():
    random = np.random.default_rng(1)
    signal = (40 + 7 * random.normal(size=100_000)).astype(np.float32)
    found = normalize(signal, NO_GAPS)
    assert found.dtype == np.float32
    assert np.median(found) == pytest.approx(0, abs=0.01)
    assert found.std() == pytest.approx(1, abs=0.01)


def test_turns_in_bed_do_not_set_the_unit():
    random = np.random.default_rng(1)
    signal = random.normal(size=100_000).astype(np.float32)
    turned = signal.copy()
    turned[::50] = 500
    found = normalize(turned, NO_GAPS)
    calm = np.arange(len(signal)) % 50 != 0
    assert np.abs(found - signal)[calm].max() < 0.15
    assert found.max() == 8


def test_gaps_do_not_set_the_unit():
    random = np.random.default_rng(1)
    signal = random.normal(size=10_000).astype(np.float32)
    signal[2000:] = 9
    assert normalize(signal, np.array([[200, 1000]]))[:2000].std() == pytest.approx(1, abs=0.05)
    with pytest.raises(ValueError, match="hardly moves"):
        normalize(signal, NO_GAPS)
    with pytest.raises(ValueError, match="flat all night"):
        normalize(signal, np.array([[0, 1000]]))


@given(st.integers(0, 2000), st.integers(1, 60))
def test_segments_are_the_signal_itself_in_order(length, rate_hz):
    signal = np.arange(length)
    found = cut_segments(signal, rate_hz)
    assert found.shape == (length // (30 * rate_hz), 30 * rate_hz)
    assert np.array_equal(found.ravel(), signal[: found.size])
    assert length - found.size < 30 * rate_hz


def test_a_segment_has_three_hundred_samples():
    assert cut_segments(np.zeros(3299)).shape == (10, 300)
    assert cut_segments(np.zeros(299)).shape == (0, 300)


def test_flat_and_missing_stretches_of_more_than_ten_seconds_are_gaps():
    signal = np.random.default_rng(1).normal(size=1000)
    signal[100:201] = 4  # 10.1 s
    signal[300:400] = 4  # 10.0 s
    signal[500:640] = np.nan
    signal[990:] = 7
    assert find_gaps(signal, 10).tolist() == [[10, 20.1], [50, 64]]
    assert find_gaps(np.zeros(1000), 10).tolist() == [[0, 100]]
    assert find_gaps(np.arange(1000.0), 10).shape == (0, 2)


def test_a_segment_is_left_out_for_more_than_ten_seconds_of_a_gap():
    gaps = np.array([[20, 35], [70, 80.5], [89, 121], [200, 209.9]])
    #        10 s and 5 s; 10.5 s; 1 s, all, 1 s; 9.9 s
    assert mark_gap_segments(gaps, 8).tolist() == [
        False,
        False,
        True,
        True,
        False,
        False,
        False,
        False,
    ]
    assert mark_gap_segments(np.array([[0, 1000]]), 3).all()
    assert mark_gap_segments(np.array([[100, 1000]]), 3).tolist() == [False] * 3
    assert not mark_gap_segments(NO_GAPS, 3).any()
