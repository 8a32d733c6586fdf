"""The sleep experiments' people: who is in which part, what is trained on, and how it is scored."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from cida.experiments.sleep.sleep_data import (
    MAX_SCORED_SEGMENTS_PER_NIGHT,
    AgeRange,
    CohortSelection,
    SleepTaskData,
    SubjectGroup,
    draw_sleep_data,
)
from cida.experiments.sleep.sleep_store import (
    SegmentCounts,
    SleepStore,
    StoreEntry,
    StoreSettings,
    Subjects,
    write_store,
)
from cida.experiments.sleep.sleep_tasks import SLEEP_CROSS, SLEEP_INTRA, SLEEP_MULTI
from cida.experiments.sleep.studies import INDEX_NAMES

TASKS = [pytest.param(b, id=b.name) for b in (*SLEEP_INTRA, *SLEEP_CROSS, *SLEEP_MULTI)]
SHHS_EXTRAPOLATION = SLEEP_INTRA[0]
SOF_INTERPOLATION = SLEEP_INTRA[5]


def parts_of(nights):
    """Each part's people, by study and id."""
    parts = (nights.source, nights.target, nights.scored_source, nights.scored_target)
    return [{(p.store.study, p.store.subjects.ids[n]) for n in p.subject_numbers} for p in parts]


def ages_of(*people):
    return np.concatenate([p.store.subjects["age"][p.subject_numbers] for p in people])


# --- the people of each task -------------------------------------------------------------------


def side_of_title(words, other):
    """What a side of a title says: the study, and which ages are in it."""
    study, _, ages = words.partition("@")
    if not ages:
        return study.lower(), lambda age: np.full(age.shape, True)
    if ages == "Outside":
        _, inside = side_of_title(other, "")
        return study.lower(), lambda age: ~inside(age)
    bracket, low, high = re.fullmatch(r"([\[(])(\d+),(\d+)\]", ages).groups()
    above = np.greater_equal if bracket == "[" else np.greater
    return study.lower(), lambda age: above(age, int(low)) & (age <= int(high))


def sides_of_title(benchmark):
    if benchmark in SLEEP_MULTI:
        benchmark = SHHS_EXTRAPOLATION  # as the paper's Table 4 says
    source, target = benchmark.title.split(" → ")
    return side_of_title(source, target), side_of_title(target, source)


@pytest.mark.parametrize("protocol", ["clean", "development"])
@pytest.mark.parametrize("benchmark", TASKS)
def test_every_part_has_people_of_the_titles_study_and_ages_and_nobody_is_in_two(
    benchmark, protocol, cohorts
):
    nights = benchmark.draw_data(0, protocol, cohorts.stores)
    people = parts_of(nights)
    assert all(people)
    assert len(set().union(*people)) == sum(len(part) for part in people)
    source, target = sides_of_title(benchmark)
    for parts, (study, inside) in (
        ((nights.source, nights.scored_source), source),
        ((nights.target, nights.scored_target), target),
    ):
        assert {part.store.study for part in parts} == {study}
        assert inside(ages_of(*parts)).all()


@pytest.mark.parametrize("benchmark", TASKS)
def test_clean_has_four_fifths_of_the_source_and_half_of_the_target_and_leaves_out_nobody(
    benchmark, cohorts
):
    nights = benchmark.draw_data(0, "clean", cohorts.stores)
    for share, trained, scored, (_, inside) in zip(
        (0.8, 0.5),
        (nights.source, nights.target),
        (nights.scored_source, nights.scored_target),
        sides_of_title(benchmark),
        strict=True,
    ):
        everyone = np.flatnonzero(inside(trained.store.subjects["age"]))
        assert sorted([*trained.subject_numbers, *scored.subject_numbers]) == everyone.tolist()
        assert len(trained.subject_numbers) == round(share * len(everyone))


@pytest.mark.parametrize("benchmark", TASKS)
def test_development_never_touches_the_scored_people_of_clean(benchmark, cohorts):
    clean = parts_of(benchmark.draw_data(0, "clean", cohorts.stores))
    development = parts_of(benchmark.draw_data(0, "development", cohorts.stores))
    touched = set().union(*development)
    assert not touched & (clean[2] | clean[3])
    assert development[0] | development[2] == clean[0]
    assert development[1] | development[3] == clean[1]


def test_the_seed_has_no_say_in_who_is_where_and_the_fingerprint_tells_draws_apart(cohorts):
    def draw(benchmark, seed, protocol="clean"):
        return benchmark.draw_data(seed, protocol, cohorts.stores)

    first, second = draw(SHHS_EXTRAPOLATION, 0), draw(SHHS_EXTRAPOLATION, 5)
    assert parts_of(first) == parts_of(second)
    assert first.fingerprint() == second.fingerprint()
    others = [draw(SHHS_EXTRAPOLATION, 0, "development"), draw(SOF_INTERPOLATION, 0)]
    assert len({sample.fingerprint() for sample in (first, *others)}) == 3
    assert first.is_simulated


@pytest.mark.parametrize("benchmark", TASKS)
def test_one_index_extrapolates_outside_the_hull_and_interpolates_inside(benchmark, cohorts):
    found = benchmark.draw_data(0, "clean", cohorts.stores).share_outside_hull()
    if "interpolation" in benchmark.name:
        assert found == 0
    elif benchmark in SLEEP_MULTI or "extrapolation" in benchmark.name:
        assert found == 1  # with several indices too: the age alone is outside
    else:
        assert 0 <= found <= 1


# --- what is trained on ------------------------------------------------------------------------


@pytest.mark.parametrize("benchmark", [SLEEP_INTRA[2], SLEEP_CROSS[0], SLEEP_MULTI[3]])
def test_labels_of_the_target_are_wiped_and_only_an_oracle_has_them(benchmark, cohorts):
    nights = benchmark.draw_data(0, "clean", cohorts.stores)
    rows, oracle = nights.training_dataset(), nights.training_dataset(oracle=True)
    target = rows.cohort == 1
    assert torch.equal(rows.labelled, ~target)
    assert not rows.y[target].any()
    assert oracle.labelled.all()
    for number, people in enumerate((nights.source, nights.target)):
        places = rows.x[rows.cohort == number].numpy()
        truth = torch.from_numpy(people.store.stages[places]).long()
        assert torch.equal(oracle.y[rows.cohort == number], truth)
        if number == 0:
            assert torch.equal(rows.y[~target], truth)
        # All segments of the people to train on, and not one of anybody else's.
        assert set(people.store.subject[places]) == set(people.subject_numbers)
        assert len(places) == np.isin(people.store.subject, people.subject_numbers).sum()
    wanted = nights.target.store.subjects
    u = np.stack([wanted[name] for name in nights.index_names], axis=1)
    mine = nights.target.store.subject[rows.x[target].numpy()]
    assert np.array_equal(rows.u[target].numpy(), u[mine])


# --- scores, by hand ---------------------------------------------------------------------------


def store_of(ages, nights, study="shhs", **indices):
    """A store in memory: of each person the stages and, in each segment, what a model says."""
    stages = np.concatenate([np.array(truth, np.int8) for truth, _ in nights])
    segments = np.zeros((len(stages), 300), np.float16)
    segments[:, 0] = np.concatenate([said for _, said in nights])
    subject = np.repeat(np.arange(len(ages)), [len(truth) for truth, _ in nights])
    known = {name: np.full(len(ages), np.nan) for name in INDEX_NAMES}
    known |= {"age": np.array(ages, float)} | {n: np.array(v, float) for n, v in indices.items()}
    counts = tuple(SegmentCounts(len(truth), 0, 0, 0) for truth, _ in nights)
    subjects = Subjects(tuple(str(number) for number in range(len(ages))), counts, known)
    return SleepStore(
        None, StoreSettings(study, False, None, {}), segments, stages, subject, subjects
    )


# A model that says what is written in the segment.
READER = SimpleNamespace(predict=lambda x, domain_index: x[:, 0, 0].astype(int))


def nights_of(store, source, target, scored_source, scored_target, indices=("age",)):
    parts = (source, target, scored_source, scored_target)
    return SleepTaskData(
        "a task", indices, *(SubjectGroup(store, np.array(part)) for part in parts)
    )


def test_kappa_and_recalls_are_those_computed_by_hand():
    truth = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3]
    said = [0, 0, 0, 1, 1, 1, 2, 2, 0, 3]
    store = store_of(
        [50, 60, 51, 61], [([0], [0]), ([1], [1]), ([0, 1, 2, 3], [0, 1, 0, 0]), (truth, said)]
    )
    found = nights_of(store, [0], [1], [2], [3]).evaluate(READER)
    assert found["task"] == "a task"
    assert found["source_score"] == 0.5
    assert found["target_score"] == 0.7
    assert found["all_score"] == pytest.approx(9 / 14)
    # Both have 4, 3, 2 and 1 of each: chance agrees in (16 + 9 + 4 + 1) / 100.
    assert found["extra_metrics"]["kappa"] == pytest.approx((0.7 - 0.3) / (1 - 0.3))
    recalls = {"awake": 3 / 4, "light": 2 / 3, "deep": 1 / 2, "rem": 1.0}
    assert found["extra_metrics"]["recall"] == pytest.approx(recalls)


def test_by_index_has_a_bin_of_five_years_at_most_for_each_age_there_is():
    every = [0, 1, 2, 3]
    store = store_of(
        [50, 51, 60, 61, 64, 65, 74],
        [
            *[(every, every)] * 4,
            ([0, 1, 2, 3], [0, 1, 0, 0]),  # 64: two of four
            ([0, 1, 2], [0, 1, 2]),  # 65: all
            ([0, 3], [1, 2]),  # 74: none
        ],
    )
    found = nights_of(store, [0], [2], [1], [3, 4, 5, 6]).evaluate(READER)
    assert found["by_index"] == [
        {"lo": 61.0, "hi": 64.0, "score": 6 / 8, "n": 8},
        {"lo": 65.0, "hi": 65.0, "score": 1.0, "n": 3},
        {"lo": 74.0, "hi": 74.0, "score": 0.0, "n": 2},
    ]
    assert found["target_score"] == pytest.approx(9 / 13)


@pytest.mark.parametrize("benchmark", [SLEEP_INTRA[0], SLEEP_CROSS[1], SLEEP_MULTI[3]])
def test_the_bins_add_up_to_the_target_accuracy(benchmark, cohorts):
    nights = benchmark.draw_data(0, "clean", cohorts.stores)
    model = SimpleNamespace(predict=lambda x, domain_index: (x[:, 0].std(1) > 1).astype(int))
    found = nights.evaluate(model)
    right = sum(cell["score"] * cell["n"] for cell in found["by_index"])
    count = sum(cell["n"] for cell in found["by_index"])
    assert right / count == pytest.approx(found["target_score"])
    assert count == MAX_SCORED_SEGMENTS_PER_NIGHT * len(nights.scored_target.subject_numbers)
    ages = ages_of(nights.scored_target)
    fives = [[age for age in ages if age // 5 == five] for five in sorted({a // 5 for a in ages})]
    edges = [(cell["lo"], cell["hi"]) for cell in found["by_index"]]
    assert edges == [(min(five), max(five)) for five in fives]


def test_a_scored_night_gives_so_many_segments_evenly_spaced_and_a_short_one_all():
    store = store_of([50, 60, 70], [([0] * n, [0] * n) for n in (3, 10, 25)])
    assert SubjectGroup(store, np.array([0, 2])).segment_positions(10).tolist() == [
        0, 1, 2, *(13 + k for k in (0, 2, 5, 7, 10, 12, 15, 17, 20, 22)),
    ]  # fmt: skip
    assert SubjectGroup(store, np.array([2, 1])).segment_positions().tolist() == list(range(3, 38))


def test_the_hull_of_a_square_has_its_middle_and_nothing_beyond_its_edges():
    night = ([0], [0])
    store = store_of(
        [50, 50, 60, 60, 55, 65, 58], [night] * 7, heart_rate=[60, 80, 60, 80, 70, 70, 90]
    )
    square = nights_of(store, [0, 1, 2, 3], [4, 5, 6], [0], [0], ("age", "heart_rate"))
    assert square.share_outside_hull() == pytest.approx(2 / 3)
    assert nights_of(
        store, [0, 1, 2, 3], [4, 5, 6], [0], [0]
    ).share_outside_hull() == pytest.approx(1 / 3)


# --- ranges, and too few people ----------------------------------------------------------------


def test_a_range_has_its_upper_end_and_its_lower_one_where_it_is_closed():
    ages = np.array([51, 52, 53, 90, 91])
    assert AgeRange(52, 90).contains(ages).tolist() == [False, False, True, True, False]
    assert AgeRange(52, 90, includes_low=True).contains(ages).tolist() == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert (str(AgeRange(52, 90)), str(AgeRange(44, 52, True))) == ("(52,90]", "[44,52]")


@pytest.fixture
def small(tmp_path):
    """Writes the store of shhs with people of these ages and heart rates."""

    def write(ages, rates=None):
        entries = []
        for number, age in enumerate(ages):
            indices = dict.fromkeys(INDEX_NAMES, 50.0) | {"age": float(age)}
            indices["heart_rate"] = 60.0 if rates is None else rates[number]
            night = (np.zeros((2, 300)), np.zeros(2))
            entries.append(
                StoreEntry(str(number), indices, SegmentCounts(2, 0, 0, 0), lambda n=night: n)
            )
        (tmp_path / "shhs").mkdir()
        write_store(tmp_path / "shhs", StoreSettings("shhs", False, None, {}), entries)
        return tmp_path

    return write


def test_too_few_source_people_are_told_in_a_sentence(small):
    root = small([60, 61, 62, 63])
    with pytest.raises(ValueError, match="too few") as told:
        SHHS_EXTRAPOLATION.draw_data(0, "clean", root)
    assert str(told.value) == (
        "sleep-intra/shhs-extrapolation has too few source people: shhs has 0 to train on and 0 to "
        "score at the ages [44,52]; it needs more."
    )


def test_too_few_target_people_are_told_with_all_their_ranges(small):
    root = small([45, 46, 47, 60])
    two = CohortSelection("shhs", (AgeRange(52, 60), AgeRange(70, 90)))
    with pytest.raises(ValueError, match=re.escape("at the ages (52,60] and (70,90]; it needs")):
        draw_sleep_data(
            "a task",
            CohortSelection("shhs", (AgeRange(44, 52, True),)),
            two,
            ("age",),
            0,
            "clean",
            root,
        )


def test_people_of_whom_an_index_is_not_known_are_left_out_where_it_is_asked_for(small):
    nan = float("nan")
    root = small([45, 46, 47, 48, 60, 61, 62, 63], [60, nan, 62, 63, 64, 65, nan, 67])
    one, two = (b.draw_data(0, "clean", root) for b in SLEEP_MULTI[:2])
    assert set().union(*parts_of(one)) - set().union(*parts_of(two)) == {
        ("shhs", "1"), ("shhs", "6"),
    }  # fmt: skip
    assert not one.is_simulated
