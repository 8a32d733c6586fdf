"""What the heads cannot see on a circle (docs/theory.md), computed exactly.

An encoding that holds u and u + 180 degrees with even odds says a lot about u. A head that cannot
tell it from an encoding that says nothing is content with it.
"""

import pytest
import torch

from cida.discriminators import (
    L2,
    Discriminator,
    Flow,
    FullGaussian,
    Gaussian,
    Histogram,
    VonMises,
    VonMisesMixture,
)
from cida.spaces import Periodic

CIRCLE = torch.arange(0, 360, 1.0, dtype=torch.float64)[:, None]


def at_best(head: Discriminator, u: torch.Tensor) -> float:
    """The loss of the best belief about these rows: what the head gives if z holds just them."""
    head.fit_marginal(u)
    return float(head.ceiling(u).mean())


def left_to_see(head: Discriminator, pair: float) -> float:
    """How far below the ceiling a head gets if z holds two opposite angles."""
    head.build(1, Periodic(360), CIRCLE)
    ceiling = at_best(head, CIRCLE)
    return ceiling - at_best(head, torch.tensor([[pair], [pair + 180]], dtype=torch.float64))


@pytest.mark.parametrize("pair", [0.0, 20.0, 45.0, 100.0, 135.0])
def test_the_mean_of_two_opposite_angles_is_that_of_the_whole_circle(pair):
    assert left_to_see(L2(), pair) == pytest.approx(0, abs=1e-6)
    assert left_to_see(VonMises(), pair) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("pair", [45.0, 135.0])
def test_so_are_mean_and_variances_if_the_angles_are_on_a_diagonal(pair):
    assert left_to_see(Gaussian(), pair) == pytest.approx(0, abs=1e-6)


def test_elsewhere_the_variances_tell():
    assert left_to_see(Gaussian(), 0.0) > 1
    assert left_to_see(Gaussian(), 20.0) > 0.1


@pytest.mark.parametrize("pair", [0.0, 20.0, 45.0, 100.0, 135.0])
def test_with_their_covariance_every_pair_tells(pair):
    assert left_to_see(FullGaussian(), pair) > 1


@pytest.mark.parametrize("pair", [0.0, 20.0, 45.0, 100.0, 135.0])
@pytest.mark.parametrize("kind", [Flow, VonMisesMixture])
def test_so_does_a_head_of_several_directions(kind, pair):
    assert left_to_see(kind(), pair) > 1


@pytest.mark.parametrize("pair", [0.0, 20.0, 45.0, 100.0, 135.0])
def test_a_histogram_sees_every_pair(pair):
    assert left_to_see(Histogram(bins=36), pair) > 1
