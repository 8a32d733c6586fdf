"""Von Mises beliefs on a circle, one and several."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ive
from scipy.stats import norm, vonmises

from cida import Gaussian, Line, Mixture, Periodic, Product, VonMises, VonMisesMixture
from cida.discriminators.base import VARIANCE_FLOOR, raw_from_variance
from cida.discriminators.von_mises import MAX_CONCENTRATION, natural_from_raw, raw_from_natural

HALF = 0.5 * math.log(2 * math.pi)
RADIANS = Periodic(2 * math.pi)
EVEN = torch.arange(0, 360, 1.0, dtype=torch.float64)[:, None]
KAPPAS = [0.0, 1e-3, 0.1, 1.0, 30.0, 1e3, 1e4]


def angles(rows=50, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return 2 * math.pi * torch.rand(rows, 1, generator=generator, dtype=torch.float64)


def drawn_as(density, *numbers):
    """Angles all around, and weights that stand for draws of such a density around 1."""
    u = torch.linspace(1 - math.pi, 1 + math.pi, 10_001, dtype=torch.float64)[1:, None]
    weights = torch.from_numpy(density(u[:, 0].numpy(), *numbers, loc=1.0))
    return u, weights / weights.sum()


def head_of(kind=VonMises, space=RADIANS, u=None, **given):
    return kind(hidden=(4,), **given).build(2, space, angles() if u is None else u)


def belief_of(kappa, direction=1.0):
    """The numbers whose belief has this concentration and direction."""
    natural = torch.tensor([[math.cos(direction), math.sin(direction)]], dtype=torch.float64)
    return raw_from_natural(kappa * natural)


@pytest.mark.parametrize("kappa", KAPPAS[1:])
def test_the_loss_is_the_negative_log_density_of_the_angle_less_the_gaussians_constant(kappa):
    u = 1 + torch.linspace(-4, 4, 30, dtype=torch.float64)[:, None] / math.sqrt(kappa + 1)
    loss = head_of().loss(belief_of(kappa).expand(30, 2), u)
    expected = -vonmises.logpdf(u[:, 0], kappa, loc=1.0) - HALF
    assert loss.tolist() == pytest.approx(expected.tolist(), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kappa", KAPPAS)
def test_single_precision_gives_the_same_loss_and_gradient(kappa):
    u = 1 + torch.linspace(-2, 2, 9, dtype=torch.float64)[:, None] / math.sqrt(kappa + 1)
    found = []
    for dtype in (torch.float64, torch.float32):
        belief = belief_of(kappa).to(dtype).expand(9, 2).clone().requires_grad_()
        loss = head_of().loss(belief, u)
        (gradient,) = torch.autograd.grad(loss.sum(), belief)
        assert gradient.isfinite().all()
        found.append((loss.detach().double(), gradient.double()))
    (exact, slope), (single, single_slope) = found
    assert torch.allclose(single, exact, atol=2e-4)
    assert torch.allclose(single_slope, slope, rtol=1e-2, atol=1e-2 * float(slope.abs().max()))


@pytest.mark.parametrize("kappa", [0.0, 1e-9, 1e-4, 1.0, 50.0, 2e3])
def test_the_gradient_is_right_also_around_no_direction(kappa):
    head, u = head_of(), angles(5)
    belief = belief_of(kappa).expand(5, 2).clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda p: head.loss(p, u), belief)


@pytest.mark.parametrize("kappa", [300.0, 3e3])
def test_a_sharp_belief_is_a_gaussian_of_variance_one_over_kappa(kappa):
    off = torch.linspace(-2, 2, 9, dtype=torch.float64)[:, None] / math.sqrt(kappa)
    loss = head_of().loss(belief_of(kappa).expand(9, 2), 1 + off)
    raw = raw_from_variance(torch.tensor(1 / kappa, dtype=torch.float64))
    gaussian = head_of(Gaussian, Line()).loss(torch.stack([raw * 0, raw]).expand(9, 2), off)
    assert torch.allclose(loss, gaussian, atol=1 / kappa)


def test_a_straight_column_beside_a_round_one_has_the_gaussians_terms():
    space = Product([Line(1.0, 2.0), RADIANS])
    u = torch.cat([angles(seed=1), angles(seed=2)], dim=1)
    head = head_of(space=space, u=u)
    mean = torch.full((50, 1), 0.3, dtype=torch.float64)
    raw = raw_from_variance(torch.full((50, 1), 0.7, dtype=torch.float64))
    loss = head.loss(torch.cat([mean, raw, belief_of(2.0).expand(50, 2)], dim=1), u)
    straight = norm.logpdf((u[:, 0] - 1) / 2, 0.3, math.sqrt(0.7))
    expected = -straight - vonmises.logpdf(u[:, 1], 2.0, loc=1.0) - 2 * HALF
    assert loss.tolist() == pytest.approx(expected.tolist(), rel=1e-9)


numbers = st.floats(-30, 30)


@given(numbers, numbers, st.floats(-7, 7))
@settings(deadline=None, max_examples=50)
def test_turning_all_angles_and_the_belief_with_them_changes_nothing(a, b, turn):
    head, u = head_of(), angles()
    belief = torch.tensor([a, b], dtype=torch.float64)
    cos, sin = math.cos(turn), math.sin(turn)
    turned = torch.tensor([[cos, -sin], [sin, cos]], dtype=torch.float64) @ belief
    before = head.loss(belief.expand(50, 2), u)
    assert torch.allclose(head.loss(turned.expand(50, 2), u + turn), before, atol=1e-9)


@given(numbers, numbers, st.integers(-5, 5))
@settings(deadline=None, max_examples=30)
def test_whole_periods_change_nothing(a, b, periods):
    head, u = head_of(space=Periodic(24.0)), 4 * angles()
    belief = torch.tensor([[a, b]], dtype=torch.float64).expand(50, 2)
    assert torch.allclose(head.loss(belief, u + 24 * periods), head.loss(belief, u), atol=1e-9)


@pytest.mark.parametrize("kappa", KAPPAS[1:])
def test_the_numbers_of_a_belief_are_eta_but_for_a_bound_that_is_undone(kappa):
    natural = torch.tensor([[0.6 * kappa, -0.8 * kappa]], dtype=torch.float64)
    assert torch.allclose(natural_from_raw(raw_from_natural(natural)), natural, rtol=1e-9)
    huge = natural_from_raw(torch.tensor([[1e9, -1e9]], dtype=torch.float64))
    assert float(huge.norm()) == pytest.approx(MAX_CONCENTRATION)
    assert pytest.approx(2 / VARIANCE_FLOOR) == MAX_CONCENTRATION


@pytest.mark.parametrize("kappa", [0.01, 1.0, 20.0, 3e3])
def test_the_blind_belief_has_the_mean_direction_and_solves_for_the_concentration(kappa):
    head, (u, weights) = head_of(), drawn_as(vonmises.pdf, kappa)
    natural = natural_from_raw(head.marginal_params(u, weights))
    assert float(natural.norm()) == pytest.approx(kappa, rel=1e-3)
    assert math.atan2(natural[1], natural[0]) == pytest.approx(1.0, abs=1e-4)
    entropy = math.log(2 * math.pi * ive(0, kappa)) + kappa * (1 - ive(1, kappa) / ive(0, kappa))
    head.fit_marginal(u, weights)
    assert float(weights @ head.ceiling(u).double()) == pytest.approx(entropy - HALF, abs=1e-3)


@pytest.mark.parametrize("kind", [VonMises, VonMisesMixture])
def test_the_ceiling_of_an_even_circle_is_the_log_of_a_turn_less_the_constant(kind):
    head = head_of(kind, Periodic(360), EVEN)
    assert float(head.ceiling(EVEN).mean()) == pytest.approx(HALF, abs=1e-3)


@pytest.mark.parametrize("kind", [VonMises, VonMisesMixture])
def test_the_ceiling_of_a_constant_angle_rests_on_the_most_concentrated_belief(kind):
    u = torch.full((20, 1), 2.5, dtype=torch.float64)
    found = float(head_of(kind, u=u).ceiling(u).mean())
    assert found == pytest.approx(-0.5 * math.log(MAX_CONCENTRATION), abs=0.01)


def test_a_mixture_of_one_is_the_plain_head():
    space = Product([Line(1.0, 2.0), RADIANS])
    u = torch.cat([angles(seed=1), angles(seed=2)], dim=1)
    one, plain = head_of(VonMisesMixture, space, u, components=1), head_of(VonMises, space, u)
    beliefs = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)).double()
    weighted = torch.cat([torch.full((50, 1), 3.0, dtype=torch.float64), beliefs], dim=1)
    assert torch.allclose(one.loss(weighted, u), plain.loss(beliefs, u), rtol=1e-9)
    assert torch.allclose(one.ceiling(u), plain.ceiling(u), atol=1e-5)


def test_the_mixtures_loss_is_the_negative_log_of_the_summed_densities():
    head = head_of(VonMisesMixture, components=2)
    logits = torch.tensor([[0.3, -0.5]], dtype=torch.float64)
    belief = torch.cat([logits, belief_of(2.0, 0.5), belief_of(40.0, 3.0)], dim=1)
    u, weight = angles(), logits.softmax(1)[0]
    one = torch.from_numpy(vonmises.pdf(u[:, 0].numpy(), 2.0, loc=0.5))
    other = torch.from_numpy(vonmises.pdf(u[:, 0].numpy(), 40.0, loc=3.0))
    expected = -torch.log(weight[0] * one + weight[1] * other) - HALF
    assert torch.allclose(head.loss(belief.expand(50, -1), u), expected, rtol=1e-9)
    assert torch.autograd.gradcheck(
        lambda p: head.loss(p, u[:4]), belief.expand(4, -1).clone().requires_grad_()
    )


def test_the_blind_mixture_finds_morning_and_evening():
    u, weights = drawn_as(vonmises.pdf, 50.0)
    u, weights = torch.cat([u, u + 2.9]), torch.cat([weights, weights]) / 2
    entropy = math.log(2 * math.pi * ive(0, 50)) + 50 * (1 - ive(1, 50) / ive(0, 50))
    expected = entropy + math.log(2) - HALF  # too far apart to overlap
    found = []
    for head in (head_of(VonMisesMixture, components=2), head_of(VonMises)):
        head.fit_marginal(u, weights)
        found.append(float(weights @ head.ceiling(u).double()))
    assert found[0] == pytest.approx(expected, abs=0.005)
    assert found[1] > expected + 1


def test_on_a_line_the_mixture_is_the_gaussian_mixture():
    u = torch.cat([angles(seed=1), 20 + angles(seed=2)])
    heads = [head_of(kind, Line().fit(u), u, components=2) for kind in (VonMisesMixture, Mixture)]
    assert torch.allclose(heads[0].ceiling(u), heads[1].ceiling(u), atol=1e-4)


def test_a_mixture_of_none_is_refused():
    with pytest.raises(ValueError, match="components must be at least 1, got 0"):
        VonMisesMixture(components=0)
