"""Whether the balance of labels moves along the index."""

import numpy as np
import pytest
import torch

from cida.label_shift import LabelShift, measure_label_shift
from cida.spaces import Line, Periodic, Product


def index(*columns):
    return torch.from_numpy(np.stack(columns, axis=1))


def shift(space, u, y, **more):
    return measure_label_shift(space.fit(u), u, torch.as_tensor(y), **more)


def moving(rng, rows, low=0.2, high=0.8):
    """An even index on a line, and a class whose share goes from low to high along it."""
    u = np.sort(rng.uniform(0, 10, rows))
    share = low + (high - low) * u / 10
    return index(u), (rng.random(rows) < share).astype(np.int64)


@pytest.mark.parametrize(
    ("rows", "classes"), [(200, 2), (600, 2), (600, 5), (3000, 2), (300, None), (3000, None)]
)
def test_it_is_silent_where_labels_know_nothing_of_the_index(rows, classes):
    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        u = index(rng.normal(size=rows))
        y = rng.normal(size=rows) if classes is None else rng.integers(0, classes, rows)
        alarms += shift(Line(), u, y).is_suspected
    assert alarms <= 4  # by its rule one in fifty


@pytest.mark.parametrize("share", [0.5, 0.05])
def test_a_rare_class_that_is_as_rare_everywhere_is_no_shift(share):
    alarms = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        u, y = moving(rng, 1000, share, share)
        alarms += shift(Line(), u, y).is_suspected
    assert alarms <= 3


@pytest.mark.parametrize(("rows", "least"), [(200, 16), (500, 20), (5000, 20)])
def test_a_class_share_that_moves_is_told(rows, least):
    seeds = [np.random.default_rng(seed) for seed in range(20)]
    assert sum(shift(Line(), *moving(rng, rows)).is_suspected for rng in seeds) >= least


def test_how_far_it_moves_and_where_is_told():
    u, y = moving(np.random.default_rng(0), 20_000)
    found = shift(Line(), u, y)
    # |share - 1/2| is 0.6 |t - 1/2| along t from 0 to 1: its mean is 0.15, twice for two classes.
    assert found.shift == pytest.approx(0.15, abs=0.015)
    assert found.low == pytest.approx(0.2, abs=0.07)
    assert found.high == pytest.approx(0.8, abs=0.07)
    low_end, high_end = (found.low_at[0], found.high_at[0]) if found.label else (
        found.high_at[0], found.low_at[0],
    )  # fmt: skip
    assert low_end < 1.5
    assert high_end > 8.5


def test_a_share_that_moves_there_and_back_is_told():
    rng = np.random.default_rng(0)
    u = np.sort(rng.uniform(0, 10, 2000))
    y = (rng.random(2000) < 0.5 + 0.4 * np.sin(u)).astype(np.int64)
    assert abs(np.corrcoef(u, y)[0, 1]) < 0.25
    assert shift(Line(), index(u), y).is_suspected


@pytest.mark.parametrize("moved", [0, 1, 2, 3])
def test_the_class_that_moves_most_is_named(moved):
    rng = np.random.default_rng(moved)
    u = np.sort(rng.uniform(0, 1, 4000))
    others = [code for code in range(4) if code != moved]
    y = np.where(rng.random(4000) < 0.1 + 0.7 * u, moved, rng.choice(others, 4000))
    found = shift(Line(), index(u), y)
    assert found.is_suspected
    assert found.label == moved
    assert found.low_at[0] < 0.3 < 0.7 < found.high_at[0]
    assert found.low < 0.25 < 0.6 < found.high


def test_numbers_with_a_trend_are_told_by_the_share_of_their_variance():
    rng = np.random.default_rng(0)
    u = np.sort(rng.uniform(-1, 1, 10_000))
    trend = 2 * u
    y = 100 + trend + rng.normal(size=10_000) * trend.std()  # half of the variance
    found = shift(Line(), index(u), y)
    assert found.is_suspected
    assert found.label is None
    assert found.shift == pytest.approx(0.5, abs=0.06)
    assert found.low == pytest.approx(98, abs=0.4)
    assert found.high == pytest.approx(102, abs=0.4)
    assert found.low_at[0] < -0.7
    assert found.high_at[0] > 0.7


def test_numbers_in_a_column_and_in_another_unit_are_the_same():
    rng = np.random.default_rng(0)
    u = rng.uniform(-1, 1, 1000)
    y = u + rng.normal(size=1000)
    found = shift(Line(), index(u), y)
    column = shift(Line(), index(u), 1e6 * y[:, None] - 3)
    assert column.shift == pytest.approx(found.shift)
    assert column.max_permuted_shift == pytest.approx(found.max_permuted_shift)


def test_of_two_index_numbers_the_second_is_seen_too():
    rng = np.random.default_rng(0)
    east, north = rng.uniform(0, 1, (2, 4000))
    y = (rng.random(4000) < 0.15 + 0.7 * north).astype(np.int64)
    found = shift(Product([Line(), Line()]), index(east, north), y)
    assert found.is_suspected
    low, high = (found.low_at, found.high_at)[:: 1 if found.label else -1]
    assert low[1] < 0.4 < 0.6 < high[1]
    still = shift(Product([Line(), Line()]), index(east, north), rng.integers(0, 2, 4000))
    assert not still.is_suspected


def test_on_a_circle_both_sides_of_midnight_are_one_place():
    rng = np.random.default_rng(0)
    hour = rng.uniform(0, 24, 3000)
    night = np.minimum(hour, 24 - hour) < 3
    y = (rng.random(3000) < np.where(night, 0.9, 0.3)).astype(np.int64)
    found = shift(Periodic(24), index(hour), y)
    assert found.is_suspected
    at = found.high_at[0] if found.label else found.low_at[0]
    assert min(at, 24 - at) < 3
    assert not shift(Periodic(24), index(hour), rng.integers(0, 2, 3000)).is_suspected


@pytest.mark.parametrize("rows", [2, 3, 5, 20])
@pytest.mark.parametrize("numbers", [True, False])
def test_of_a_few_rows_nothing_is_told(rows, numbers):
    u = torch.arange(rows, dtype=torch.float64)[:, None]
    y = np.arange(rows, dtype=np.float64) if numbers else np.arange(rows) % 2
    found = shift(Line(), u, y)
    assert (found.is_suspected, found.shift) == (False, 0.0)


def test_labels_that_are_all_the_same_do_not_move():
    u = torch.arange(300, dtype=torch.float64)[:, None]
    assert not shift(Line(), u, np.zeros(300, np.int64)).is_suspected
    assert not shift(Line(), u, np.full(300, 7.5)).is_suspected


def test_one_index_value_that_many_rows_share():
    rng = np.random.default_rng(0)
    age = rng.integers(1, 21, 2000).astype(float)
    y = (rng.random(2000) < 0.2 + 0.03 * age).astype(np.int64)
    assert shift(Line(), index(age), y).is_suspected
    assert not shift(Line(), index(np.full(2000, 4.0)), y).is_suspected


def test_very_many_rows_are_thinned_from_everywhere():
    rng = np.random.default_rng(0)
    u, y = moving(rng, 120_000)
    order = rng.permutation(120_000)
    found = shift(Line(), u[order], y[order])
    assert found.is_suspected
    assert found.shift == pytest.approx(0.15, abs=0.02)
    few = np.linspace(0, 119_999, 20_000).round().astype(int)
    thin = measure_label_shift(Line().fit(u), u[few], torch.from_numpy(y[few]))
    assert found == thin


def test_the_same_rows_are_told_the_same_whatever_numpy_drew_before():
    u, y = moving(np.random.default_rng(0), 400)
    found = shift(Line(), u, y)
    np.random.default_rng().random()
    assert shift(Line(), u, y) == found
    assert shift(Line(), u, y, seed=1).shift == pytest.approx(found.shift, abs=0.02)


def spread_by_hand(u, y):
    """How far the mean of y among the nearest rows is from that of all, at 50 rows along u."""
    apart = []
    for place in np.sort(u)[np.linspace(0, len(u) - 1, 50).round().astype(int)]:
        near = np.argsort(np.abs(u - place), kind="stable")[: max(20, len(u) // 20)]
        apart.append(y[near].mean() - y.mean())
    return np.array(apart)


@pytest.mark.parametrize("classes", [True, False])
def test_moves_and_chance_are_those_of_a_plain_loop_over_shuffled_labels(classes):
    rng = np.random.default_rng(0)
    u = rng.normal(size=300)
    y = (u + rng.normal(size=300) > 0).astype(float) if classes else u + rng.normal(size=300)

    def size(labels):
        apart = spread_by_hand(u, labels)
        return np.abs(apart).mean() if classes else (apart**2).mean() / y.var()

    null = np.array([size(rng.permutation(y)) for _ in range(200)])
    found = shift(Line(), index(u), y.astype(np.int64) if classes else y)
    assert found.shift == pytest.approx(size(y) - null.mean(), abs=0.02)
    assert (
        np.quantile(null, 0.9) <= found.max_permuted_shift + null.mean() <= null.max() + null.std()
    )


@pytest.mark.parametrize(
    ("moves", "chance", "suspected"),
    [(0.2, 0.1, True), (0.1, 0.2, False), (0.04, 0.01, False), (0.06, 0.01, True)],
)
def test_it_is_told_beyond_chance_and_where_it_is_worth_telling(moves, chance, suspected):
    found = LabelShift(moves, chance, 0, 0.1, 0.9, (0.0,), (1.0,))
    assert found.is_suspected is suspected
