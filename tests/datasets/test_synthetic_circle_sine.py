"""Circle and Sine are the paper's: sizes, places, labels and scaling."""

import numpy as np
import pytest
from scipy.stats import kstest, truncnorm

from cida.datasets.synthetic import make_circle, make_sine

WORLDS = {"circle": (make_circle, 30, 100, 6), "sine": (make_sine, 12, 190, 5)}


@pytest.fixture(params=WORLDS)
def world(request):
    return WORLDS[request.param]


def circle_before_scaling(world, domains):
    """Undoes the z-score: the affine map that takes the mean of each disc to its centre."""
    angle = np.linspace(0, np.pi, domains)
    centres = 5 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    means = world.x.reshape(domains, -1, 2).mean(axis=1)
    x = np.empty_like(world.x)
    for column in range(2):
        slope, start = np.polyfit(means[:, column], centres[:, column], 1)
        x[:, column] = slope * world.x[:, column] + start
    return x, np.repeat(centres, len(x) // domains, axis=0)


def sine_before_scaling(world, domains):
    """Undoes the z-score: the ends of x0 are known, and x1 is sin(3 x0) plus noise around it."""
    along = world.x[:, 0] - world.x[:, 0].min()
    along *= domains * np.pi / 9 / along.max()
    wave = np.sin(3 * along)
    slope, start = np.polyfit(wave, world.x[:, 1], 1)
    return along, (world.x[:, 1] - start) / slope - wave


def test_a_world_has_the_papers_size_index_and_sources(world):
    make, domains, points, sources = world
    data = make()
    assert f"make_{data.name}" == make.__name__
    assert data.x.shape == (domains * points, 2)
    assert np.array_equal(data.u, np.repeat(np.arange(domains) / (domains - 1), points))
    assert np.array_equal(data.source, np.repeat(np.arange(domains), points) < sources)
    assert set(np.unique(data.y)) == {0, 1}


def test_inputs_are_scaled_over_all_points(world):
    x = world[0]().x
    assert np.allclose(x.mean(axis=0), 0, atol=1e-12)
    assert np.allclose(x.std(axis=0), 1, atol=1e-12)


def test_both_classes_live_in_every_domain(world):
    make, domains, _, _ = world
    share = make(n_per_domain=1000).y.reshape(domains, -1).mean(axis=1)
    # A circle of radius 5 leaves a little more than half of each disc outside.
    assert np.all((share > 0.44) & (share < 0.60))


def test_training_labels_are_missing_on_the_target_alone(world):
    data = world[0]()
    assert np.isnan(data.training_labels[~data.source]).all()
    assert np.array_equal(data.training_labels[data.source], data.y[data.source])


def test_a_seed_gives_the_same_world_and_another_seed_another(world):
    make = world[0]
    first, again, other = make(seed=3), make(seed=3), make(seed=4)
    assert np.array_equal(first.x, again.x)
    assert np.array_equal(first.y, again.y)
    assert not np.array_equal(first.x, other.x)
    assert not np.array_equal(first.y, other.y)


def test_a_world_leaves_numpys_global_random_state_alone(world):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    world[0]()
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_circle_has_discs_of_radius_one_on_a_half_circle_of_radius_five():
    x, centres = circle_before_scaling(make_circle(n_per_domain=3000), 30)
    radius = np.linalg.norm(x - centres, axis=1)
    assert radius.max() == pytest.approx(1, abs=0.02)
    # The squared radius of a standard normal in the plane is exponential with mean 2.
    truncated = (1 - np.exp(-(radius**2) / 2)) / (1 - np.exp(-0.5))
    assert kstest(truncated[::30], "uniform").pvalue > 1e-3
    offset = x - centres
    turn = np.arctan2(offset[:, 1], offset[:, 0]) / (2 * np.pi) + 0.5
    assert kstest(turn[::30], "uniform").pvalue > 1e-3


def test_circle_labels_say_which_points_lie_beyond_radius_five():
    world = make_circle(n_per_domain=3000)
    x, _ = circle_before_scaling(world, 30)
    beyond = np.linalg.norm(x, axis=1) - 5
    clear = np.abs(beyond) > 0.02  # undoing the scaling is only so exact
    assert clear.mean() > 0.95
    assert np.array_equal(world.y[clear] == 1, beyond[clear] > 0)


def test_sine_has_slices_of_equal_width_with_bounded_noise_around_the_wave():
    world = make_sine(n_per_domain=3000)
    along, noise = sine_before_scaling(world, 12)
    slices = along.reshape(12, -1) / (np.pi / 9)
    assert np.allclose(slices.min(axis=1), np.arange(12), atol=0.02)
    assert np.allclose(slices.max(axis=1), np.arange(12) + 1, atol=0.02)
    assert kstest((slices.ravel() % 1)[::12], "uniform").pvalue > 1e-3
    assert np.abs(noise).max() == pytest.approx(1, abs=0.03)
    assert kstest(noise[::12], truncnorm(-1, 1).cdf).pvalue > 1e-3


def test_sine_labels_say_which_points_lie_above_the_wave():
    world = make_sine(n_per_domain=3000)
    _, noise = sine_before_scaling(world, 12)
    clear = np.abs(noise) > 0.03
    assert np.array_equal(world.y[clear] == 1, noise[clear] > 0)


def test_a_draw_scaled_as_another_uses_its_mean_and_deviation_exactly(world):
    make = world[0]
    first, own = make(seed=3), make(seed=4)
    fresh = make(seed=4, scaling_from=first)
    raw = own.x * own.scaling[1] + own.scaling[0]
    assert fresh.scaling is first.scaling
    assert np.allclose(fresh.x, (raw - first.scaling[0]) / first.scaling[1], atol=1e-12)
    assert not np.allclose(fresh.x, own.x, atol=1e-6)
    assert np.array_equal(fresh.y, own.y)
    assert np.array_equal(fresh.u, own.u)
    assert np.array_equal(make(seed=3, scaling_from=first).x, first.x)


def test_sizes_can_be_chosen(world):
    make = world[0]
    data = make(n_domains=4, n_per_domain=7, n_source_domains=1)
    assert data.x.shape == (28, 2)
    assert np.unique(data.u).tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert data.source.sum() == 7


@pytest.mark.parametrize(
    "sizes",
    [
        {"n_domains": 1, "n_source_domains": 1},
        {"n_per_domain": 0},
        {"n_source_domains": 0},
        {"n_domains": 5, "n_source_domains": 6},
    ],
)
def test_sizes_that_make_no_world_are_refused_with_their_values(world, sizes):
    with pytest.raises(ValueError, match="make no data; use at least 2 domains") as caught:
        world[0](**sizes)
    assert all(f"{name}={value}" in str(caught.value) for name, value in sizes.items())
