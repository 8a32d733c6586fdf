"""Simulated people: their indices, their stages and what their belts record."""

from dataclasses import astuple, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import butter, sosfiltfilt

from cida.experiments.sleep import physiology
from cida.experiments.sleep.physiology import (
    BREATHING_BY_STAGE,
    EPOCH_SECONDS,
    LOG_IRREGULARITY_WEIGHTS,
    N2,
    N3,
    REM,
    SF36_SCALES,
    WAKE,
    BreathingTraits,
    Person,
    draw_person,
    simulate_belts,
    simulate_hypnogram,
)
from cida.experiments.sleep.studies import INDEX_NAMES

quick = settings(deadline=None, max_examples=50)
ages = st.floats(40, 100)
RATE_HZ = 10

AVERAGE = Person(60.0, 66.0, 1, dict.fromkeys(SF36_SCALES, 60.0))
CALM = BreathingTraits(  # nothing but breathing in the belt
    rate_per_minute=15.0, irregularity=0.02, restlessness=0.0, apneas_per_hour=0.0,
    asymmetry=0.0, heartbeat_amplitude=0.0,
)  # fmt: skip


def rng(seed=0):
    return np.random.default_rng(seed)


def traits(person=AVERAGE, seed=0):
    return BreathingTraits.draw(person, rng(seed))


def changed(person, index, value):
    """The same person with another value of one index."""
    if index in SF36_SCALES:
        return replace(person, scales={**person.scales, index: value})
    return replace(person, **{index: value})


# --- people -----------------------------------------------------------------------------------


def test_a_person_has_the_eleven_indices():
    assert {"age", "heart_rate", "gender", *SF36_SCALES} == set(INDEX_NAMES)


@quick
@given(ages, st.booleans(), st.integers(0, 10**6))
def test_scales_are_in_their_range_and_the_heart_beats(age, woman, seed):
    person = draw_person(age, woman, rng(seed))
    assert (person.age, person.gender) == (age, 2 if woman else 1)
    assert set(person.scales) == set(SF36_SCALES)
    assert all(0 <= score <= 100 for score in person.scales.values())
    assert 42 <= person.heart_rate <= 110
    assert person == draw_person(age, woman, rng(seed))


def many(age, woman, count=3000):
    random = rng(int(age))
    return [draw_person(age, woman, random) for _ in range(count)]


def test_scales_follow_age_as_their_table_says():
    young, old = many(50, True), many(70, True)
    for name, (mean, slope, load) in SF36_SCALES.items():
        # The median does not mind that scores end at 100.
        low, high = (np.median([one.scales[name] for one in people]) for people in (young, old))
        error = 4 * 1.25 * np.hypot(load, physiology.SF36_SCALE_NOISE_STD) / np.sqrt(2 * len(young))
        assert abs((low + high) / 2 - mean) < error, name
        assert abs((high - low) / 2 - slope) < error, name


def test_scales_share_one_health_and_the_unfit_have_faster_hearts():
    people = many(60, False)
    scores = np.array([[*person.scales.values(), person.heart_rate] for person in people])
    found = np.corrcoef(scores.T)
    assert (found[:8, :8] > 0.2).all()
    assert (found[8, :8] < -0.05).all()


def test_womens_hearts_beat_three_a_minute_faster():
    women, men = (np.mean([p.heart_rate for p in many(60, woman)]) for woman in (True, False))
    assert women - men == pytest.approx(3, abs=1)


# --- traits -----------------------------------------------------------------------------------


@quick
@given(ages, ages, st.integers(1, 2), st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_breathing_is_less_regular_the_older_one_is(one, other, gender, seed, random):
    scales = {name: random.uniform(0, 100) for name in SF36_SCALES}
    young, old = (Person(age, 70.0, gender, scales) for age in sorted((one, other)))
    assert traits(young, seed).irregularity <= traits(old, seed).irregularity


def test_most_of_all_around_eighty():
    years = np.arange(44, 96)
    growth = np.diff(
        [np.log(traits(changed(AVERAGE, "age", float(age))).irregularity) for age in years]
    )
    assert (growth > 0).all()
    assert 78 <= years[growth.argmax()] <= 84


def test_whatever_age_changes_grows_with_it():
    young, old = (astuple(traits(changed(AVERAGE, "age", age))) for age in (50.0, 80.0))
    assert all(a < b for a, b in zip(young, old, strict=True))


# One standard deviation each, as `UNSTEADY` counts them; gender goes from a man's to a woman's.
STEPS = {"heart_rate": (66.0, 75.0), "gender": (1, 2), **dict.fromkeys(SF36_SCALES, (50.0, 68.0))}


@pytest.mark.parametrize("index", STEPS)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_standard_deviation_of_an_index_moves_log_irregularity_as_the_table_says(index, seed):
    low, high = (traits(changed(AVERAGE, index, value), seed) for value in STEPS[index])
    change = np.log(high.irregularity / low.irregularity)
    assert change == pytest.approx(LOG_IRREGULARITY_WEIGHTS[index])
    assert (change > 0) == (index == "heart_rate")  # well is steady, and so are women


def test_the_indices_that_move_more_than_regularity():
    person = traits()
    woman = traits(changed(AVERAGE, "gender", 2))
    assert woman.rate_per_minute - person.rate_per_minute == pytest.approx(0.7)
    assert woman.apneas_per_hour / person.apneas_per_hour == pytest.approx(np.exp(-0.5))
    fast = traits(changed(AVERAGE, "heart_rate", 75.0))
    assert fast.rate_per_minute - person.rate_per_minute == pytest.approx(0.5)
    for index in SF36_SCALES:
        worse = traits(changed(AVERAGE, index, 30.0))
        restless = worse.restlessness > person.restlessness
        assert restless == (index in ("bodily_pain", "mental_health"))  # pain and worry


@quick
@given(ages, st.booleans(), st.integers(0, 10**6))
def test_every_trait_is_one_that_a_sleeper_can_have(age, woman, seed):
    random = rng(seed)
    found = BreathingTraits.draw(draw_person(age, woman, random), random)
    assert 8 < found.rate_per_minute < 25
    assert 0.2 < found.irregularity < 10
    assert found.restlessness > 0
    assert found.apneas_per_hour > 0
    assert 0 <= found.asymmetry <= 0.8
    assert found.heartbeat_amplitude > 0


# --- stages -----------------------------------------------------------------------------------


def still(decades):
    """The shares of the stages that the chances, mean over the night, leave as they are."""
    steps = np.mean(
        [physiology._transition_matrix(decades, night) for night in np.linspace(0, 1, 12)], axis=0
    )
    unit = np.append(np.zeros(5), 1.0)
    found, *_ = np.linalg.lstsq(np.vstack([steps.T - np.eye(5), np.ones(5)]), unit)
    return found


@quick
@given(st.floats(20, 120), st.floats(0, 1))
def test_chances_are_chances(age, night):
    steps = physiology._transition_matrix((age - 60) / 10, night)
    assert (steps >= 0).all()
    assert np.allclose(steps.sum(1), 1)


def test_the_chances_of_a_table_are_not_changed_by_asking():
    before = physiology.STAGE_TRANSITIONS_AT_60.copy()
    physiology._transition_matrix(3.0, 0.2)
    assert np.array_equal(physiology.STAGE_TRANSITIONS_AT_60, before)
    assert np.allclose(before.sum(1), 1)
    assert np.allclose(physiology._transition_matrix(0.0, 0.5), before)


@quick
@given(ages, ages)
def test_the_old_sleep_less_deeply_and_wake_more(one, other):
    young, old = (still((age - 60) / 10) for age in sorted((one, other)))
    assert young.min() > 0
    assert old[N3] <= young[N3] + 1e-12
    assert old[WAKE] >= young[WAKE] - 1e-12


def shares(age, nights=60):
    person, random = changed(AVERAGE, "age", age), rng(3)
    stages = [simulate_hypnogram(person, 1000, random) for _ in range(nights)]
    return np.bincount(np.concatenate(stages), minlength=5) / (1000 * nights)


def test_nights_have_the_shares_that_their_chances_promise():
    young, middle, old = (shares(age) for age in (44.0, 60.0, 90.0))
    assert young[N3] > middle[N3] > old[N3]
    assert young[WAKE] < middle[WAKE] < old[WAKE]
    for found, decades in ((young, -1.6), (middle, 0.0), (old, 3.0)):
        assert np.abs(found - still(decades)).max() < 0.03
    awake, first, second, deep, rem = middle
    said = [1 / 5, 1 / 2, 1 / 7, 1 / 6]
    assert np.allclose([awake, first + second, deep, rem], said, atol=0.06)


def test_deep_sleep_comes_early_and_rem_late():
    nights = np.stack([simulate_hypnogram(AVERAGE, 900, rng(seed)) for seed in range(60)])
    early, late = nights[:, :450], nights[:, 450:]
    assert (early == N3).mean() > 1.2 * (late == N3).mean()
    assert (late == REM).mean() > 1.2 * (early == REM).mean()


@quick
@given(st.integers(1, 400), ages, st.integers(0, 10**6))
def test_a_night_takes_only_steps_that_have_a_chance(epochs, age, seed):
    stages = simulate_hypnogram(changed(AVERAGE, "age", age), epochs, rng(seed))
    assert len(stages) == epochs
    path = np.append(WAKE, stages)  # it begins awake
    assert (physiology.STAGE_TRANSITIONS_AT_60[path[:-1], path[1:]] > 0).all()
    assert np.array_equal(
        stages, simulate_hypnogram(changed(AVERAGE, "age", age), epochs, rng(seed))
    )


# --- breathing --------------------------------------------------------------------------------


def breathe(found, stage, minutes=60, seed=0, heart_rate=60.0):
    """The belt on the chest in so many minutes of one stage."""
    stages = np.full(minutes * 60 // EPOCH_SECONDS, stage)
    return simulate_belts(found, heart_rate, stages, RATE_HZ, rng(seed))[0]


def peak_per_minute(signal):
    """Where most power is."""
    power = np.abs(np.fft.rfft(signal - signal.mean())) ** 2
    return 60 * np.fft.rfftfreq(len(signal), 1 / RATE_HZ)[power.argmax()]


def breaths(signal):
    """The seconds between one breath in and the next."""
    smooth = sosfiltfilt(butter(2, [0.08, 0.8], "bandpass", fs=RATE_HZ, output="sos"), signal)
    ups = np.flatnonzero((smooth[:-1] < 0) & (smooth[1:] >= 0))
    exact = ups + smooth[ups] / (smooth[ups] - smooth[ups + 1])
    return np.diff(exact) / RATE_HZ


def loudness(signal, seconds=5):
    """The root mean square of each few seconds."""
    pieces = signal[: len(signal) // (seconds * RATE_HZ) * seconds * RATE_HZ]
    return np.sqrt(np.square(pieces.reshape(-1, seconds * RATE_HZ)).mean(1))


@pytest.mark.parametrize("stage", BREATHING_BY_STAGE)
@pytest.mark.parametrize("rate", [11.0, 15.0, 19.0])
def test_the_spectrum_peaks_at_the_persons_rate(stage, rate):
    signal = breathe(replace(CALM, rate_per_minute=rate), stage)
    assert peak_per_minute(signal) == pytest.approx(rate * BREATHING_BY_STAGE[stage].rate, rel=0.01)


@pytest.mark.parametrize("stage", BREATHING_BY_STAGE)
def test_breaths_are_as_many_as_the_rate_says_however_irregular(stage):
    found = replace(CALM, irregularity=1.0)
    mean = 60 / np.mean(breaths(breathe(found, stage, minutes=240)))
    assert mean == pytest.approx(15 * BREATHING_BY_STAGE[stage].rate, rel=0.06)


def unrest(signal):
    """How much the length of a breath changes to the next; movements hardly count in a median."""
    return np.median(np.abs(np.diff(np.log(breaths(signal)))))


@pytest.mark.parametrize("seed", range(3))
def test_deep_sleep_breathes_like_a_clock_and_rem_does_not(seed):
    found = {
        stage: unrest(breathe(traits(seed=seed), stage, seed=seed)) for stage in BREATHING_BY_STAGE
    }
    assert found[N3] < 0.7 * found[N2]
    assert found[N2] < 0.7 * min(found[REM], found[WAKE])


@pytest.mark.parametrize("stage", BREATHING_BY_STAGE)
def test_an_irregular_person_is_irregular_in_every_stage(stage):
    steady, unsteady = (
        unrest(breathe(replace(CALM, irregularity=much), stage)) for much in (0.5, 1.5)
    )
    assert steady < 0.7 * unsteady


def test_rem_is_shallow():
    depth = {stage: np.median(loudness(breathe(CALM, stage))) for stage in BREATHING_BY_STAGE}
    for stage, found in depth.items():
        # A sine's root mean square, and the belt's own noise.
        expected = np.hypot(BREATHING_BY_STAGE[stage].depth / np.sqrt(2), 0.04)
        assert found == pytest.approx(expected, rel=0.03)


def test_apnoeas_lower_the_depth_and_more_so_in_rem():
    often = replace(CALM, apneas_per_hour=40.0)

    def quiet(found, stage):
        heard = loudness(breathe(found, stage, minutes=240))
        usual = BREATHING_BY_STAGE[stage].depth / np.sqrt(2)
        return (heard < 0.5 * usual).mean()

    assert quiet(CALM, N2) == 0
    assert 0.1 < quiet(often, N2) < 0.25
    assert quiet(often, N3) < quiet(often, N2) < quiet(often, REM)


def test_an_apnoea_is_a_fall_to_a_fifth_of_ten_to_thirty_seconds_and_an_overshoot():
    depth = physiology._apnea_depth(replace(CALM, apneas_per_hour=2.0), np.full(20000, N2), rng(4))
    low = (depth >= 0.1) & (depth <= 0.35)
    assert (low | (depth == 1) | (depth == 1.4)).all()
    edges = np.flatnonzero(np.diff(low, prepend=False, append=False)).reshape(-1, 2)
    seconds = np.diff(edges, axis=1)[:, 0] / physiology.BREATH_SAMPLE_HZ
    assert len(seconds) > 1
    assert seconds.min() >= 9.5
    assert seconds.max() <= 30
    assert all((depth[stop : stop + 16] == 1.4).all() for _, stop in edges)


def test_the_restless_move_and_most_when_awake():
    def moved(much, stage):
        signal = breathe(replace(CALM, restlessness=much), stage, minutes=240)
        return (np.abs(signal) > 1.6).mean()

    assert moved(0.0, WAKE) == 0
    assert 0 < moved(1.0, WAKE) < moved(3.0, WAKE)
    assert moved(1.0, N3) < moved(1.0, N2) < moved(1.0, WAKE)


@pytest.mark.parametrize("heart_rate", [48.0, 66.0, 90.0])
def test_heartbeats_shake_the_belt_at_the_sleeping_hearts_rate(heart_rate):
    loud = replace(CALM, heartbeat_amplitude=5.0)
    found = peak_per_minute(breathe(loud, N3, heart_rate=heart_rate))
    assert found == pytest.approx(0.93 * heart_rate, rel=0.001)


@pytest.mark.parametrize("rate_hz", [8, 10, 16, 32])
def test_a_belt_has_its_rates_samples_and_the_belly_lags(rate_hz):
    stages = np.full(20, N3)
    chest, belly = simulate_belts(CALM, 60.0, stages, rate_hz, rng())
    assert len(chest) == len(belly) == 20 * EPOCH_SECONDS * rate_hz
    assert chest.dtype == belly.dtype == np.float32
    assert belly.std() / chest.std() == pytest.approx(0.8, abs=0.01)
    # 0.25 rad behind: cos of the lag.
    assert np.corrcoef(chest, belly)[0, 1] == pytest.approx(np.cos(0.25), abs=0.02)


def test_a_night_follows_its_seed():
    stages = simulate_hypnogram(AVERAGE, 60, rng())
    first, again, other = (
        simulate_belts(traits(), 66.0, stages, RATE_HZ, rng(seed)) for seed in (5, 5, 6)
    )
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(np.allclose(a, b) for a, b in zip(first, other, strict=True))


def test_noise_has_unit_variance_and_forgets_in_its_time():
    noise = physiology._smooth_noise(400_000, 4.0, rng())
    assert noise.std() == pytest.approx(1, abs=0.02)
    later = int(4 * physiology.BREATH_SAMPLE_HZ)
    assert np.corrcoef(noise[:-later], noise[later:])[0, 1] == pytest.approx(np.exp(-1), abs=0.02)
    assert physiology._breath_variation(400_000, rng(1)).std() == pytest.approx(1, abs=0.03)
    # From the first sample on: nothing has to settle.
    starts = [physiology._smooth_noise(1, 60.0, rng(seed))[0] for seed in range(2000)]
    assert np.std(starts) == pytest.approx(1, abs=0.08)
