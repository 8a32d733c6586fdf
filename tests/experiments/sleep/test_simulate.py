"""The simulated cohorts: their files, and what comes back out of them."""

import errno
import math
from importlib import import_module

import numpy as np
import pytest

from cida.experiments.sleep.covariates import read_covariates
from cida.experiments.sleep.physiology import SF36_SCALES
from cida.experiments.sleep.prepare import prepare_study, read_night
from cida.experiments.sleep.recording_errors import (
    PreparationError,
    RecordingError,
    translate_job_errors,
)
from cida.experiments.sleep.recordings import find_gaps, read_belt
from cida.experiments.sleep.simulate import simulate_cohorts
from cida.experiments.sleep.stages import STAGE_CLASSES, UNSCORED, read_stages
from cida.experiments.sleep.studies import STUDIES, is_simulated

simulation = import_module("cida.experiments.sleep.simulate")
COHORTS = simulation.SIMULATED_COHORTS
SUBJECTS = 3


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Three people in each cohort, of seed 0; to be read, not changed."""
    out = tmp_path_factory.mktemp("made")
    return dict(zip(COHORTS, simulate_cohorts(out, SUBJECTS, 0), strict=True))


def contents(root):
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def nights(root):
    return {name: content for name, content in contents(root).items() if "polysom" in name}


def people(study, count=SUBJECTS, seed=0):
    first = COHORTS[study].first_id
    return {str(n): simulation.draw_subject(study, n, seed) for n in range(first, first + count)}


# --- the folder -------------------------------------------------------------------------------


@pytest.mark.parametrize("study", COHORTS)
def test_the_study_finds_what_was_simulated_and_nothing_else_is_there(made, study):
    recordings = STUDIES[study].find_recordings(made[study])
    assert [night.subject for night in recordings] == list(people(study))
    files = {path for night in recordings for path in (night.edf, night.annotation)}
    files |= {made[study] / name for name in ("SIMULATED.txt", "simulation.json")}
    files.add(STUDIES[study].find_table(made[study]))
    assert {path for path in made[study].rglob("*") if path.is_file()} == files


@pytest.mark.parametrize("study", COHORTS)
def test_the_table_has_the_people(made, study):
    found = read_covariates(made[study], STUDIES[study])
    assert list(found) == list(people(study))
    known = {*STUDIES[study].columns, *STUDIES[study].constants}
    for subject, person in people(study).items():
        expected = {"age": person.age, "heart_rate": person.heart_rate, "gender": person.gender}
        expected |= person.scales
        for index, value in found[subject].items():
            assert value == expected[index] if index in known else math.isnan(value)


def test_shhs_alone_knows_all_eleven_indices(made):
    found = read_covariates(made["shhs"], STUDIES["shhs"])["200001"]
    assert not any(math.isnan(value) for value in found.values())
    assert set(SF36_SCALES) < set(found)


@pytest.mark.parametrize(
    ("study", "low", "high"), [("shhs", 44, 90), ("mesa", 54, 95), ("sof", 72, 90)]
)
def test_ages_are_whole_and_fill_the_papers_ranges(study, low, high):
    found = people(study, 1500)
    ages = np.array([person.age for person in found.values()])
    assert (ages == ages.round()).all()
    assert low <= ages.min() < low + 3
    assert high - 3 < ages.max() <= high
    women = np.mean([person.gender == 2 for person in found.values()])
    assert women == pytest.approx(COHORTS[study].share_women, abs=0.05)


def test_sof_are_women_and_older_than_the_others():
    ages = {name: np.mean([p.age for p in people(name, 500).values()]) for name in COHORTS}
    assert ages["shhs"] < ages["mesa"] < ages["sof"]
    assert {person.gender for person in people("sof", 500).values()} == {2}


def test_people_differ_by_seed_number_and_study():
    people = [(number, seed) for number in range(20) for seed in (0, 1)]
    drawn = [simulation.draw_subject("shhs", number, seed) for number, seed in people]
    drawn += [simulation.draw_subject("mesa", number, 0) for number in range(20)]
    assert len({(p.age, p.heart_rate, *p.scales.values()) for p in drawn}) == len(drawn)


def test_more_subjects_leave_the_first_ones_as_they_were(made, tmp_path):
    for study in ("shhs", "sof"):
        simulate_cohorts(tmp_path, SUBJECTS - 1, 0, cohorts=[study])
        fewer, more = (nights(root) for root in (tmp_path / study, made[study]))
        assert len(fewer) == 2 * (SUBJECTS - 1)
        assert fewer.items() <= more.items()
        short, long = (STUDIES[study].find_table(r) for r in (tmp_path / study, made[study]))
        assert long.read_text().startswith(short.read_text())


def test_what_is_there_is_kept_and_what_is_missing_is_made(made, tmp_path):
    seen = []

    def go(subjects):
        seen.clear()
        simulate_cohorts(
            tmp_path, subjects, 0, on_progress=lambda *done: seen.append(done), cohorts=["shhs"]
        )
        return list(seen)

    assert go(2) == [(1, 2), (2, 2)]
    kept = STUDIES["shhs"].recording_paths(tmp_path / "shhs", 200001)
    kept.edf.write_bytes(b"mine")
    STUDIES["shhs"].recording_paths(tmp_path / "shhs", 200002).annotation.unlink()
    assert go(SUBJECTS) == [(1, 2), (2, 2)]
    assert kept.edf.read_bytes() == b"mine"
    kept.edf.unlink()
    assert go(SUBJECTS) == [(1, 1)]
    assert contents(tmp_path / "shhs") == contents(made["shhs"])
    assert go(SUBJECTS) == []


def test_two_jobs_write_the_same_bytes(made, tmp_path):
    simulate_cohorts(tmp_path, SUBJECTS, 0, n_jobs=2, cohorts=["shhs"])
    assert contents(tmp_path / "shhs") == contents(made["shhs"])


def test_another_seed_makes_other_nights(made, tmp_path):
    simulate_cohorts(tmp_path, 1, 1, cohorts=["shhs"])
    other, usual = nights(tmp_path / "shhs"), nights(made["shhs"])
    assert other.keys() < usual.keys()
    assert all(other[name] != usual[name] for name in other)


def test_a_folder_of_another_seed_is_refused_and_left_alone(tmp_path):
    simulate_cohorts(tmp_path, 1, 0, cohorts=["shhs"])
    before = contents(tmp_path)
    with pytest.raises(ValueError, match=r"out has nights of another seed in .*shhs; choose"):
        simulate_cohorts(tmp_path, 1, 1, cohorts=["shhs"])
    assert contents(tmp_path) == before


def test_a_folder_of_real_recordings_is_refused_and_left_alone(shhs, tmp_path):
    before = contents(shhs(1))
    with pytest.raises(ValueError, match=r"out has recordings that are not simulated in .*shhs;"):
        simulate_cohorts(tmp_path, 1, 0)
    assert contents(tmp_path / "shhs") == before
    assert not is_simulated(tmp_path / "shhs")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"n_subjects": 0}, "subjects is 0; it must be at least 1."),
        ({"seed": -1}, "seed is -1; it must not be negative."),
        ({"n_jobs": 0}, "jobs is 0; it must be at least 1."),
    ],
)
def test_wrong_numbers_are_one_sentence_and_nothing_is_written(tmp_path, wrong, said):
    with pytest.raises(ValueError, match=said):
        simulate_cohorts(tmp_path / "out", **{"n_subjects": 1, "seed": 0, **wrong})
    assert not (tmp_path / "out").exists()


def test_a_home_folder_is_understood(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert simulate_cohorts("~/nights", 1, 0, cohorts=["shhs"]) == [tmp_path / "nights/shhs"]
    assert is_simulated(tmp_path / "nights/shhs")


def test_a_full_disk_is_told_in_a_sentence(tmp_path):
    with (
        pytest.raises(PreparationError, match=r"the disk of .* is full; free some space and run"),
        translate_job_errors(tmp_path),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")


# --- a night ----------------------------------------------------------------------------------


@pytest.fixture
def heard(monkeypatch):
    """What the belts gave and what was handed to the file, of the nights written since."""
    found = {"belts": [], "written": [], "stages": []}

    def belts(traits, heart_rate, stages, *more, real=simulation.physiology.simulate_belts):
        signals = real(traits, heart_rate, stages, *more)
        found["stages"].append(stages.copy())
        found["belts"].append([signal.copy() for signal in signals])
        return signals

    def write(path, signals, *more, real=simulation._write_edf):
        found["written"].append([signal.copy() for signal in signals])
        real(path, signals, *more)

    monkeypatch.setattr(simulation.physiology, "simulate_belts", belts)
    monkeypatch.setattr(simulation, "_write_edf", write)
    return found


@pytest.mark.parametrize("study", ["shhs", "sof"])
def test_the_file_gives_back_the_belts_within_its_quantisation(tmp_path, heard, study):
    number = COHORTS[study].first_id
    simulate_cohorts(tmp_path, 1, 0, cohorts=[study])
    edf = STUDIES[study].recording_paths(tmp_path / study, number).edf
    names = next(names for names in COHORTS[study].belt_names if _has(edf, names[0]))
    loose = np.zeros(len(heard["belts"][0][0]), bool)
    for name, belt, written in zip(names, heard["belts"][0], heard["written"][0], strict=True):
        found = read_belt(edf, name)
        assert len(found.signal) == len(belt)
        assert found.rate_hz in COHORTS[study].rates_hz
        # Sixteen bits for the range; the header has its ends to a few digits, which may widen it.
        step = float(written.max() - written.min()) / 2**16
        assert np.abs(found.signal - written).max() < 1.01 * step
        assert np.abs(found.signal - written).max() > 0.1 * step
        # What is written is the belt with a gain, where the belts were on.
        gain = written.max() / belt.max()
        for start, stop in find_gaps(found.signal, found.rate_hz):
            loose[int(start * found.rate_hz) : int(stop * found.rate_hz) + 1] = True
        assert np.allclose(written[~loose], gain * belt[~loose], rtol=1e-5, atol=1e-6)
        assert np.abs(found.signal - gain * belt)[~loose].max() < 1.05 * step
    assert loose.mean() < 0.1


def _has(edf, name):
    try:
        return bool(read_belt(edf, name))
    except RecordingError:
        return False


def test_nights_are_as_long_as_the_papers_and_everybody_has_an_own_one(made):
    epochs = [len(read_stages(night.annotation))
              for study, root in made.items()
              for night in STUDIES[study].find_recordings(root)]  # fmt: skip
    assert all(840 <= count <= 1160 for count in epochs)
    assert np.mean(epochs) == pytest.approx(1000, abs=60)
    assert len(set(epochs)) >= len(epochs) - 1  # two may be alike by chance


@pytest.mark.parametrize("study", COHORTS)
def test_every_night_can_be_prepared_whole(made, study):
    for recording in STUDIES[study].find_recordings(made[study]):
        night = read_night(recording)
        assert night.counts.cut == 0
        assert sorted(set(night.stages)) == list(range(len(STAGE_CLASSES)))
        assert night.counts.segments > 750


OUR = np.array([0, 1, 1, 2, 3])  # our class of each stage of the simulator
BACK = {0: 0, 1: 1, 2: 2, 3: 3, 4: 3, 5: 4}  # NSRR's number to the simulator's stage
NEIGHBOURS = {(0, 1), (1, 0), (2, 3), (3, 2), (4, 1)}


def test_the_annotation_is_the_night_apart_from_a_twentieth(tmp_path, heard):
    simulate_cohorts(tmp_path, 2, 0, cohorts=["shhs"])
    for number, stages in zip((200001, 200002), heard["stages"], strict=True):
        annotation = STUDIES["shhs"].recording_paths(tmp_path / "shhs", number).annotation
        found = read_stages(annotation)
        scored = found != UNSCORED
        assert len(found) == len(stages)
        assert 0 < (~scored).sum() < 60
        # Awake for stage 1 and the like; of the classes fewer differ than of the stages.
        assert 0.02 < (found[scored] != OUR[stages[scored]]).mean() < 0.08


@pytest.mark.parametrize("stage_4", [True, False])
def test_a_scorer_errs_one_epoch_in_twenty_to_a_neighbour(stage_4):
    rng = np.random.default_rng(0)
    stages = rng.integers(0, 5, 200_000)
    numbers = np.array(simulation._score_stages(stages, stage_4, rng))
    scored = numbers != 9
    assert not scored[-2:].any()
    assert 2 <= (~scored).sum() < 20 + 40
    said = np.array([BACK[number] for number in numbers[scored].tolist()])
    true = stages[scored]
    # Four standard deviations of a share of 200,000.
    assert (said != true).mean() == pytest.approx(0.05, abs=0.002)
    errors = set(zip(true[said != true].tolist(), said[said != true].tolist(), strict=True))
    assert errors == NEIGHBOURS
    deep = numbers[scored][said == 3]
    assert (deep == 4).mean() == pytest.approx(0.4 if stage_4 else 0, abs=0.01)


def test_one_scorer_in_ten_leaves_out_some_epochs_between():
    stages = np.ones(1000, np.int64)
    found = 0
    for seed in range(400):
        numbers = np.array(simulation._score_stages(stages, False, np.random.default_rng(seed)))
        assert (numbers == 9).sum() < 60
        found += (numbers[:980] == 9).any()
    assert 0.05 < found / 400 < 0.15


def test_in_one_night_in_six_the_belts_come_off_for_some_minutes():
    rate_hz, loosened = 4, 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        before = rng.normal(size=(2, 4 * 1500))
        after = before.copy()
        simulation._add_belt_gap(tuple(after), rate_hz, rng)
        changed = (after != before).any(0)
        if changed.any():
            loosened += 1
            gaps = [find_gaps(signal, rate_hz) for signal in after]
            assert np.array_equal(*gaps)
            assert len(gaps[0]) == 1
            assert 119 < np.diff(gaps[0])[0, 0] <= 600
            first, last = np.flatnonzero(changed)[[0, -1]]
            assert (after[:, first : last + 1] == after[:, first : first + 1]).all()
    assert 0.1 < loosened / 300 < 0.24


def test_a_study_that_ran_for_years_has_some_other_belts():
    rng = np.random.default_rng(0)
    drawn = np.array([simulation._draw_variant(2, rng) for _ in range(20_000)])
    assert 1 / 20 < drawn.mean() < 1 / 7
    assert set(drawn.tolist()) == {0, 1}


# --- stores -----------------------------------------------------------------------------------


def test_a_store_of_simulated_people_says_so(made, tmp_path):
    store = prepare_study(STUDIES["shhs"], made["shhs"], tmp_path / "out").store
    assert store.is_simulated
    assert '"simulated": true' in (tmp_path / "out/store.json").read_text()
    assert store.subjects.ids == tuple(people("shhs"))
    assert store.subjects["age"].tolist() == [person.age for person in people("shhs").values()]
