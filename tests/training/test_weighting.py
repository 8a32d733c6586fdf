"""How much each source row counts, by how near it is to the target."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from cida.training import proximity_weights
from cida.training.weighting import MIN_RELATIVE_WEIGHT

quick = settings(deadline=None, max_examples=60)
SHARES = st.floats(0.05, 0.99)


def effective(weights):
    """How many rows count in effect, as a share, the twentieth for all left aside."""
    weights = weights / weights.max() - MIN_RELATIVE_WEIGHT
    return float(weights.sum() ** 2 / weights.square().sum() / len(weights))


def distances(rows, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(rows, generator=generator, dtype=torch.float64) * 3 + 0.5


@quick
@given(st.integers(30, 500), SHARES, st.integers(0, 99))
def test_the_mean_is_one_and_the_effective_share_is_as_asked(rows, share, seed):
    weights = proximity_weights(distances(rows, seed), share)
    assert weights.mean().item() == pytest.approx(1)
    assert effective(weights) == pytest.approx(share, rel=1e-6)
    assert (weights >= 0).all()


@quick
@given(st.integers(2, 200), SHARES, st.integers(0, 99))
def test_the_nearer_the_more(rows, share, seed):
    distance = distances(rows, seed)
    weights = proximity_weights(distance, share)
    assert (weights[distance.argsort()].diff() <= 1e-12).all()


def test_it_is_the_bell_that_scipy_finds():
    distance, share = distances(200, 0), 0.4
    d = (distance - distance.min()).numpy()

    def bell(h):
        return np.exp(-(d**2) / (2 * h**2))

    h = brentq(lambda h: bell(h).sum() ** 2 / (bell(h) ** 2).sum() - share * 200, 1e-2, 1e3)
    expected = MIN_RELATIVE_WEIGHT + (1 - MIN_RELATIVE_WEIGHT) * bell(h)
    expected /= expected.mean()
    np.testing.assert_allclose(proximity_weights(distance, share).numpy(), expected, rtol=1e-6)


@quick
@given(SHARES, st.floats(1e-3, 1e6), st.floats(0, 1e3), st.integers(0, 99))
def test_neither_the_unit_nor_a_gap_before_the_target_matters(share, unit, gap, seed):
    distance = distances(100, seed)
    expected = proximity_weights(distance, share)
    assert torch.allclose(proximity_weights(unit * distance + gap, share), expected, atol=1e-4)


def test_a_larger_share_is_flatter():
    distance = distances(300, 1)
    spreads = [
        proximity_weights(distance, share).std().item() for share in (0.1, 0.3, 0.6, 0.9, 0.99)
    ]
    assert spreads == sorted(spreads, reverse=True)


@pytest.mark.parametrize("share", [1.0, 1.5])
def test_a_share_of_one_counts_every_row_the_same(share):
    assert torch.equal(proximity_weights(distances(50, 0), share), torch.ones(50).double())


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("distance", [0.0, 2.5])
def test_equal_distances_count_the_same(share, distance):
    weights = proximity_weights(torch.full((40,), distance), share)
    assert torch.equal(weights, torch.ones(40).double())


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5])
def test_where_as_many_rows_are_nearest_of_all_the_others_count_a_twentieth(share):
    distance = torch.tensor([0.7] * 30 + [0.8] * 10 + [3.0] * 20)
    weights = proximity_weights(distance, share)
    expected = torch.tensor([1.0] * 30 + [MIN_RELATIVE_WEIGHT] * 30).double()
    assert torch.allclose(weights, expected / expected.mean())


@quick
@given(st.integers(2, 500), st.floats(0, 1), st.integers(0, 99))
def test_no_row_is_forgotten(rows, share, seed):
    weights = proximity_weights(distances(rows, seed) ** 4, share)
    assert (weights >= 0.999 * MIN_RELATIVE_WEIGHT * weights.max()).all()


def test_no_rows_have_no_weights():
    assert proximity_weights(torch.zeros(0), 0.5).tolist() == []


@quick
@given(st.integers(1, 40), st.floats(0.45, 0.95))
def test_many_rows_at_distance_zero_and_a_larger_share(zeros, share):
    distance = torch.cat([torch.zeros(zeros), torch.linspace(0.1, 2, 60)])
    weights = proximity_weights(distance, share)
    assert effective(weights) == pytest.approx(share, rel=1e-6)
    assert (weights[:zeros] == weights.max()).all()


def test_one_row_has_weight_one():
    assert proximity_weights(torch.tensor([3.0]), 0.3).tolist() == [1]
