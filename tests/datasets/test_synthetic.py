"""Each world does what its docstring says."""

import numpy as np
import pytest
from scipy.stats import kstest, norm
from sklearn.datasets import make_moons

from cida.datasets import (
    make_drifting_regression,
    make_hours,
    make_irrelevant_index,
    make_noise_index,
    make_noisy_index,
    make_plane,
    make_rotating_moons,
    make_shifting_labels,
)

ROWS = 6000
CHANCE = 4 / np.sqrt(ROWS)  # a correlation of independent columns stays within it
SOURCES = {
    make_rotating_moons: lambda u: u <= 60,
    make_drifting_regression: lambda u: u <= 4,
    make_plane: lambda u: (u[:, 0] < 0.5) & (u[:, 1] < 0.5),
    make_hours: lambda u: (u >= 9) & (u <= 17),
    make_noisy_index: lambda u: u <= 0.4,
    make_irrelevant_index: lambda u: u <= 0.4,
    make_noise_index: lambda u: u <= 0.4,
    make_shifting_labels: lambda u: u <= 0.5,
}
ENDS = {make_rotating_moons: 180, make_drifting_regression: 10, make_hours: 24}
BALANCED = [
    make_rotating_moons,
    make_plane,
    make_hours,
    make_noisy_index,
    make_irrelevant_index,
    make_noise_index,
]


@pytest.fixture(params=SOURCES, ids=lambda make: make.__name__)
def make(request):
    return request.param


def away(world, *path):
    """The first columns less the path along u, and of the first also less the class."""
    left = world.x.copy()
    left[:, 0] -= np.where(world.y == 1, 1.0, -1.0)
    for column, drift in enumerate(path):
        left[:, column] -= drift
    left[:, 0] *= 2  # its clouds have half the deviation
    return left


def is_standard_normal_at_every(u, left):
    """Each column is standard normal, and says nothing of u."""
    for column in left.T:
        assert kstest(column, norm.cdf).pvalue > 1e-3
        for said in (column, column**2):
            assert abs(np.corrcoef(said, u)[0, 1]) < CHANCE


# --- what all have ----------------------------------------------------------------------------


def test_the_index_covers_its_range_and_the_source_is_where_it_is_said_to_be(make):
    world = make(n_samples=ROWS)
    assert len(world.x) == len(world.y) == len(world.u) == ROWS
    assert np.array_equal(world.source, SOURCES[make](world.u))
    assert 0.2 < world.source.mean() < 0.55
    if make is not make_noisy_index:  # its u goes a little beyond
        assert kstest(world.u.ravel() / ENDS.get(make, 1), "uniform").pvalue > 1e-3


@pytest.mark.parametrize("make", BALANCED, ids=lambda make: make.__name__)
def test_classes_are_balanced_and_say_nothing_of_the_index(make):
    world = make(n_samples=ROWS)
    assert set(world.y) == {0, 1}
    assert world.y.mean() == pytest.approx(0.5, abs=CHANCE / 2)
    for column in world.u.reshape(ROWS, -1).T:
        assert abs(np.corrcoef(world.y, column)[0, 1]) < CHANCE


def test_a_seed_gives_the_same_world_and_another_seed_another(make):
    first, again, other = (make(n_samples=50, seed=seed) for seed in (3, 3, 4))
    for name in ("x", "y", "u", "source"):
        assert np.array_equal(getattr(first, name), getattr(again, name))
    for name in ("x", "y", "u"):
        assert not np.array_equal(getattr(first, name), getattr(other, name))


def test_a_world_leaves_numpys_global_random_state_alone(make):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    make(n_samples=50)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_training_labels_are_missing_on_the_target_alone(make):
    world = make(n_samples=200)
    assert np.isnan(world.training_labels[~world.source]).all()
    assert np.array_equal(world.training_labels[world.source], world.y[world.source])


@pytest.mark.parametrize("rows", [9, 0, -5])
def test_too_few_rows_are_refused(make, rows):
    with pytest.raises(ValueError, match=rf"^n_samples is {rows}; use at least 10\.$"):
        make(n_samples=rows)
    assert len(make(n_samples=10).u) == 10


# --- what each has of its own -----------------------------------------------------------------


def test_moons_turned_back_by_u_are_moons_that_were_never_turned():
    world = make_rotating_moons(n_samples=ROWS, seed=7)
    angle = np.deg2rad(world.u)
    back = np.stack(
        [
            np.cos(angle) * world.x[:, 0] + np.sin(angle) * world.x[:, 1],
            np.cos(angle) * world.x[:, 1] - np.sin(angle) * world.x[:, 0],
        ],
        axis=1,
    )
    # The upper half of a circle around (-1/2, -1/4), the lower half of one around the opposite.
    upward = np.where(world.y == 0, 1, -1)[:, None]
    centred = upward * back - [-0.5, -0.25]
    radius = np.linalg.norm(centred, axis=1)
    assert radius.mean() == pytest.approx(1, abs=0.01)
    assert radius.std() == pytest.approx(0.1, rel=0.05)
    assert centred[:, 1].min() > -0.5
    expected, y = make_moons(ROWS, noise=0.1, random_state=7)
    assert np.allclose(back, expected - [0.5, 0.25], atol=1e-12)
    assert np.array_equal(world.y, y)


def test_moons_turn_on_the_spot():
    world = make_rotating_moons(n_samples=ROWS)
    cells = [world.x[(world.u >= low) & (world.u < low + 30)] for low in range(0, 180, 30)]
    for cell in cells:
        doubt = cell.std(0) / np.sqrt(len(cell))
        assert np.all(np.abs(cell.mean(0)) < 4 * doubt)
    axes = [np.linalg.eigh(np.cov(cell.T))[1][:, 1] for cell in cells]
    assert abs(axes[0] @ axes[3]) < 0.2  # a quarter of a turn later


def test_after_half_a_turn_each_moon_is_where_the_other_one_was():
    world = make_rotating_moons(n_samples=60_000)
    first, last = world.u < 5, world.u > 175
    for kind in (0, 1):
        before = world.x[first & (world.y == kind)].mean(0)
        after = world.x[last & (world.y == 1 - kind)].mean(0)
        assert np.allclose(before, after, atol=0.15)
        assert np.linalg.norm(before) > 0.5


def test_drifting_regression_is_one_function_of_what_is_left_without_the_arc():
    world = make_drifting_regression(n_samples=ROWS)
    arc = np.stack([4 * np.sin(world.u / 5), 6 - 6 * np.cos(world.u / 5)], axis=1)
    s = world.x - arc
    is_standard_normal_at_every(world.u, s)
    noise = world.y - np.sin(2 * s[:, 0]) - s[:, 1] / 2
    is_standard_normal_at_every(world.u, noise[:, None] / 0.1)


def test_the_two_numbers_of_the_plane_act_together():
    world = make_plane(n_samples=ROWS)
    a, b = world.u.T
    terms = np.stack([np.ones(ROWS), a, b, a * b], axis=1)
    drift, *_ = np.linalg.lstsq(terms, world.x, rcond=None)
    assert np.allclose(drift[:, 0], [0, 0, 0, 4], atol=0.6)
    assert np.allclose(drift[:, 1], [0, 2, -2, 0], atol=0.6)
    assert np.allclose(drift[:, 2], 0, atol=0.6)
    left = away(world, 4 * a * b, 2 * (a - b))
    for column in (a, b, a * b):
        is_standard_normal_at_every(column, left)


def test_hours_swing_once_a_day():
    world = make_hours(n_samples=ROWS)
    angle = world.u * np.pi / 12
    left = away(world, 2 * np.cos(angle), 2 * np.sin(angle))
    for said in (world.u, np.cos(angle), np.sin(angle)):
        is_standard_normal_at_every(said, left)


def test_an_hour_before_midnight_looks_like_an_hour_after_it_and_not_like_noon():
    world = make_hours(n_samples=24_000)
    before, after = world.x[world.u >= 23.5], world.x[world.u < 0.5]
    noon = world.x[np.abs(world.u - 12) < 0.5]
    # On a swing of 2, half an hour is 2 pi / 24 = 0.26 of the way.
    assert np.allclose(before.mean(0), after.mean(0), atol=0.26 + 4 * np.sqrt(2 / 500))
    assert np.linalg.norm(noon.mean(0) - after.mean(0)) > 3.5


def test_a_noisy_index_is_the_true_one_and_normal_noise():
    known, t = (
        make_noisy_index(n_samples=ROWS, seed=5),
        make_noisy_index(n_samples=ROWS, noise=0.0, seed=5).u,
    )
    assert t.min() >= 0
    assert t.max() <= 1
    is_standard_normal_at_every(t, (known.u - t)[:, None] / 0.05)
    is_standard_normal_at_every(t, away(known, 4 * t, np.sin(4 * t)))


def test_an_irrelevant_index_moves_columns_that_say_nothing_of_the_label_alone():
    world = make_irrelevant_index(n_samples=ROWS)
    drifts = (0, 0, 3 * world.u, np.sin(6 * world.u))
    is_standard_normal_at_every(world.u, away(world, *drifts))
    for column in (1, 2, 3):
        assert abs(np.corrcoef(world.x[:, column], world.y)[0, 1]) < CHANCE
    assert np.corrcoef(world.x[:, 2], world.u)[0, 1] > 0.5


def test_an_index_of_noise_has_nothing_to_do_with_rows_or_labels():
    world = make_noise_index(n_samples=ROWS)
    is_standard_normal_at_every(world.u, away(world))
    for said in (*world.x.T, *(world.x**2).T, world.y, world.y * world.x[:, 0]):
        for moment in (world.u, (world.u - 0.5) ** 2):
            assert abs(np.corrcoef(said, moment)[0, 1]) < CHANCE


def test_shifting_labels_shift_from_few_to_nearly_all_and_rows_of_a_class_stay():
    world = make_shifting_labels(n_samples=20 * ROWS)
    for low in np.linspace(0, 0.9, 10):
        mine = (world.u >= low) & (world.u < low + 0.1)
        expected = 0.05 + 0.9 * world.u[mine].mean()
        doubt = np.sqrt(expected * (1 - expected) / mine.sum())
        assert world.y[mine].mean() == pytest.approx(expected, abs=4 * doubt)
    world = make_shifting_labels(n_samples=ROWS)
    is_standard_normal_at_every(world.u, away(world))
    assert np.corrcoef(world.x[:, 0], world.u)[0, 1] > 0.2  # the label alone tells u
