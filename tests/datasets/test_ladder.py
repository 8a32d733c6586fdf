"""The moment ladder: what tells the sides apart, in closed form and in a draw."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from scipy.stats import beta

from cida.datasets import make_ladder
from cida.datasets.ladder import SOURCE_EDGE, SWITCH_POINTS_BY_MOMENT, index_quantile, shortcut_side

DENSITY = Polynomial([0.75, 0, -0.75])  # 3/4 (1 - u^2) on [-1, 1]
ORDER = {"mean": 1, "variance": 2, "skewness": 3, "whole": 4}


@pytest.fixture(params=SWITCH_POINTS_BY_MOMENT)
def rung(request):
    return request.param


def integral(polynomial, low, high):
    whole = polynomial.integ()
    return whole(high) - whole(low)


def moment(rung, power):
    """``E[u^power side(u)]``, exactly: side is constant between its edges."""
    inside = [SOURCE_EDGE, *SWITCH_POINTS_BY_MOMENT[rung]]
    edges = np.array([-1, *(-e for e in reversed(inside)), *inside, 1])
    signs = shortcut_side((edges[1:] + edges[:-1]) / 2, rung)
    weighted = DENSITY * Polynomial([0] * power + [1])
    parts = [integral(weighted, *ends) for ends in pairwise(edges)]
    return float(signs @ np.array(parts))


# --- the equations ----------------------------------------------------------------------------


def test_the_density_is_one_in_all_and_the_source_holds_four_tenths():
    assert integral(DENSITY, -1, 1) == pytest.approx(1, abs=1e-15)
    assert integral(DENSITY, -SOURCE_EDGE, SOURCE_EDGE) == pytest.approx(0.4, abs=1e-12)


def test_no_moment_below_the_rungs_own_tells_the_sides_apart(rung):
    for power in range(ORDER[rung]):
        assert moment(rung, power) == pytest.approx(0, abs=1e-12)


def test_the_rungs_own_moment_does(rung):
    assert abs(moment(rung, ORDER[rung])) > 0.005


def test_a_side_is_plus_or_minus_one_beyond_the_source_and_zero_inside(rung):
    u = np.linspace(-1, 1, 2001)
    where = shortcut_side(u, rung)
    assert set(where[np.abs(u) > SOURCE_EDGE]) == {-1, 1}
    assert set(where[np.abs(u) <= SOURCE_EDGE]) == {0}
    mirrored = -where if rung in ("mean", "skewness") else where
    assert np.array_equal(where[::-1], mirrored)


def test_quantile_inverts_the_share_of_rows_below():
    share = np.linspace(0, 1, 501)
    u = index_quantile(share)
    assert np.allclose(0.5 + 0.75 * u - 0.25 * u**3, share, atol=1e-12)
    # (1 + u) / 2 is Beta(2, 2).
    assert np.allclose(u, 2 * beta(2, 2).ppf(share) - 1, atol=1e-8)
    assert (u[0], u[-1]) == pytest.approx((-1, 1), abs=1e-8)


# --- a draw -----------------------------------------------------------------------------------


def test_the_source_is_the_middle_with_four_tenths_of_the_rows(rung):
    world = make_ladder(rung, n_samples=4000, seed=1)
    assert world.name == f"ladder of the {rung}"
    assert world.x.shape == (4000, 3)
    assert abs(int(world.source.sum()) - 1600) <= 2
    assert np.array_equal(world.source, np.abs(world.u) <= SOURCE_EDGE)


def test_the_strata_put_one_row_into_each_even_share(rung):
    u = make_ladder(rung, n_samples=500, seed=2).u
    share = 0.5 + 0.75 * u - 0.25 * u**3
    assert np.array_equal(np.floor(share * 500), np.arange(500))


def test_the_sample_has_the_moments_of_the_design(rung):
    u = make_ladder(rung, n_samples=4000, seed=3).u
    where = shortcut_side(u, rung)
    assert abs(where.mean()) < 2e-3
    for power in range(1, 5):
        assert np.mean(u**power * where) == pytest.approx(moment(rung, power), abs=2e-3)


def test_the_label_is_the_product_of_the_two_switches_everywhere(rung):
    world = make_ladder(rung, seed=4)
    product = np.sign(world.x[:, 1]) * np.sign(world.x[:, 2])
    # A switch is 1 / 0.25 = 4 deviations from the middle.
    assert np.mean((product > 0) == (world.y == 1)) > 0.999
    assert world.y.mean() == pytest.approx(0.5, abs=0.04)
    for switch in (1, 2):  # one alone says nothing
        assert abs(np.corrcoef(world.x[:, switch], world.y)[0, 1]) < 0.07


def test_the_shortcut_repeats_the_label_in_the_source_and_the_side_in_the_target(rung):
    world = make_ladder(rung, n_samples=8000, seed=5)
    label = 2 * world.y - 1
    said = np.where(world.source, label, shortcut_side(world.u, rung))
    noise = world.x[:, 0] - said
    assert noise.mean() == pytest.approx(0, abs=4 * 0.5 / np.sqrt(8000))
    assert noise.std() == pytest.approx(0.5, rel=0.04)
    right = np.sign(world.x[:, 0]) == label
    assert right[world.source].mean() > 0.96  # a normal is below 2 deviations with chance 0.977
    by_chance = 4 * 0.5 / np.sqrt((~world.source).sum())
    assert right[~world.source].mean() == pytest.approx(0.5, abs=by_chance)


def test_switches_and_label_are_independent_of_the_index(rung):
    world = make_ladder(rung, n_samples=4000, seed=6)
    for column in (world.x[:, 1], world.x[:, 2], world.y):
        for power in (1, 2, 3):
            assert abs(np.corrcoef(column, world.u**power)[0, 1]) < 4 / np.sqrt(4000)


def test_a_seed_gives_the_same_world_and_another_seed_another(rung):
    first, again, other = (make_ladder(rung, n_samples=100, seed=seed) for seed in (3, 3, 4))
    for name in ("x", "y", "u", "source"):
        assert np.array_equal(getattr(first, name), getattr(again, name))
    for name in ("x", "y", "u"):
        assert not np.array_equal(getattr(first, name), getattr(other, name))


def test_an_unknown_rung_is_refused_with_those_that_are_known():
    with pytest.raises(ValueError, match=r"^rung is 'mode'; known are mean, variance, skewness"):
        make_ladder("mode")


@pytest.mark.parametrize("rows", [9, 0, -5])
def test_too_few_rows_are_refused(rows):
    with pytest.raises(ValueError, match=rf"^rows is {rows}; a ladder needs at least 10\.$"):
        make_ladder(n_samples=rows)
    assert len(make_ladder(n_samples=10).u) == 10
