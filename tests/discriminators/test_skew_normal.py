"""The skew-normal head: losses, numerics where there is no skewness, and what it finds."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import skewnorm
from torch import Tensor

from cida import Gaussian, Line, Periodic, Product, SkewNormal
from cida.discriminators.skew_normal import HALF_NORMAL_MEAN, MAX_SKEWNESS, SKEWNESS_FACTOR
from cida.training import seeded

HALF = 0.5 * math.log(2 * math.pi)
SPACES = {
    "line": Line(2.0, 3.0),
    "circle": Periodic(24.0),
    "two columns": Product([Line(1.0, 2.0), Periodic(360.0)]),
}
spaces = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
QUANTILES = (torch.arange(4000, dtype=torch.float64) + 0.5) / 4000


def some(space, rows=40, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(rows, space.width, generator=generator, dtype=torch.float64)


def built(space=Line(), u=None, hidden=(4,)):  # noqa: B008 - spaces do not change
    return SkewNormal(hidden=hidden).build(1, space, some(space) if u is None else u)


def slanted(skewness: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Location, scale and delta of the skew-normal of mean 0 and variance 1."""
    root = skewness.sign() * (skewness.abs() / SKEWNESS_FACTOR) ** (1 / 3)
    scale = (1 + root.square()).sqrt()
    return -root, scale, root / (HALF_NORMAL_MEAN * scale)


@spaces
def test_the_loss_is_the_negative_log_density_without_its_constant(space):
    head, u = built(space), some(space)
    generator = torch.Generator().manual_seed(1)
    beliefs = torch.randn(40, head.params_width, generator=generator, dtype=torch.float64)
    location, scale, slant = head.direct_params(beliefs)
    density = skewnorm.logpdf(space.embed(u), slant, location, scale).sum(1)
    expected = -density - HALF * space.embedding_width
    assert head.loss(beliefs, u).tolist() == pytest.approx(expected.tolist(), rel=1e-8, abs=1e-8)


@given(st.floats(-5, 5), st.floats(-5, 5), st.floats(-20, 20))
@settings(deadline=None, max_examples=50)
def test_mean_variance_and_skewness_are_those_of_the_density(mean, raw, number):
    belief = torch.tensor([[mean, raw, number]], dtype=torch.float64)
    head = built()
    location, scale, slant = (float(n) for n in head.direct_params(belief))
    expected = skewnorm.stats(slant, location, scale, moments="mvs")
    found = [float(n) for n in head.moments(belief)]
    assert found == pytest.approx([float(n) for n in expected], rel=1e-6, abs=1e-9)
    assert abs(found[2]) <= MAX_SKEWNESS
    assert abs(slant) < 11


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(-3, 3))
@settings(deadline=None, max_examples=30)
def test_a_mirrored_belief_about_a_mirrored_index_has_the_same_loss(mean, raw, number):
    head, u = built(), some(Line())
    belief = torch.tensor([[mean, raw, number]], dtype=torch.float64).expand(40, 3)
    mirrored = belief * torch.tensor([-1.0, 1.0, -1.0], dtype=torch.float64)
    assert torch.allclose(head.loss(belief, u), head.loss(mirrored, -u), atol=1e-9)


def test_without_skewness_it_is_the_gaussian_head():
    u = some(Line())
    gaussian = Gaussian(hidden=(4,)).build(1, Line(), u)
    belief = torch.tensor([[0.3, -0.4, 0.0]], dtype=torch.float64).expand(40, 3)
    assert torch.allclose(built().loss(belief, u), gaussian.loss(belief[:, :2], u), rtol=1e-10)


@pytest.mark.parametrize("number", [0.0, 1e-6, -1e-3, 0.02, -1.0, 4.0])
def test_the_gradient_is_right_also_around_no_skewness(number):
    head, u = built(), some(Line(), rows=5)
    belief = torch.tensor([[0.3, -0.4, number]], dtype=torch.float64).expand(5, 3).clone()
    assert torch.autograd.gradcheck(lambda p: head.loss(p, u), belief.requires_grad_(), atol=1e-4)


@pytest.mark.parametrize("number", [0.0, 1e-20, 1e-3, 50.0])
@pytest.mark.parametrize("far", [0.0, 1e3])
def test_loss_and_gradient_are_finite_in_single_precision(number, far):
    belief = torch.tensor([[0.0, -50.0, number]]).expand(2, 3).clone().requires_grad_()
    loss = built().loss(belief, torch.tensor([[far], [-far]], dtype=torch.float64))
    (gradient,) = torch.autograd.grad(loss.sum(), belief)
    assert loss.isfinite().all()
    assert gradient.isfinite().all()


def test_mean_and_variance_stay_where_they_are_when_the_skewness_moves():
    numbers = torch.linspace(-3, 3, 7, dtype=torch.float64)[:, None]
    beliefs = torch.cat([torch.full_like(numbers, 0.3), torch.full_like(numbers, -0.4), numbers], 1)
    mean, variance, skewness = built().moments(beliefs)
    assert torch.equal(mean, mean[:1].expand(7, 1))
    assert torch.equal(variance, variance[:1].expand(7, 1))
    assert (skewness.diff(dim=0) > 0).all()


@pytest.mark.parametrize("skewness", [-0.9, -0.3, 0.0, 0.05, 0.6])
def test_the_blind_belief_of_a_skew_normal_index_is_that_skew_normal(skewness):
    location, scale, delta = slanted(torch.tensor(skewness, dtype=torch.float64))
    slant = float(delta / (1 - delta.square()).sqrt())
    u = torch.from_numpy(skewnorm.ppf(QUANTILES, slant, float(location), float(scale)))[:, None]
    head = built(u=u)
    mean, variance, found = (float(n) for n in head.moments(head.blind))
    assert mean == pytest.approx(0, abs=0.01)
    assert variance == pytest.approx(1, abs=0.02)
    assert found == pytest.approx(skewness, abs=0.02)
    entropy = float(skewnorm.entropy(slant, float(location), float(scale)))
    assert float(head.ceiling(u).mean()) == pytest.approx(entropy - HALF, abs=2e-3)


def test_of_two_best_beliefs_the_blind_one_is_the_better():
    """From no skewness or a mild one, the fit of these rows ends 0.04 above the strong one."""
    u = torch.tensor([0, 2, 11, 0.5, 3, 4, 5, -11, 12, -1, 1]).double()[:, None]
    weights = torch.tensor([1, 1, 2, 1, 1, 1, 1, 1, 3, 2, 3]).double()
    head = built(u=u)
    head.fit_marginal(u, weights)
    found = float(weights / weights.sum() @ head.ceiling(u).double())
    strong = torch.tensor([[4.3893, 40.9693, -8.4137]]).double()
    rival = float(weights / weights.sum() @ head.score(strong, head.target(u)))
    assert found == pytest.approx(rival, abs=1e-4)


def test_no_start_of_a_long_optimisation_ends_below_the_ceiling():
    u = torch.cat([-torch.log1p(-QUANTILES), 4 + QUANTILES])[::4, None]  # skewed beyond the family
    head = built(Line().fit(u), u)
    ceiling = float(head.ceiling(u).mean())
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        belief = torch.randn(1, 3, generator=generator, dtype=torch.float64).requires_grad_()
        optimiser = torch.optim.LBFGS([belief], max_iter=200, line_search_fn="strong_wolfe")

        def step(belief=belief, optimiser=optimiser):
            optimiser.zero_grad()
            loss = head.loss(belief.expand(len(u), 3), u).mean()
            loss.backward()
            return loss

        optimiser.step(step)
        assert float(head.loss(belief.detach().expand(len(u), 3), u).mean()) > ceiling - 1e-3


def skewness_at(z: Tensor) -> Tensor:
    return 0.8 * torch.sin(2 * z)


def drawn(seed: int) -> tuple[Tensor, Tensor]:
    """u|z skew-normal of mean 0, variance 1 and a skewness that moves with z."""
    draws = torch.quasirandom.SobolEngine(3, scramble=True, seed=seed).draw(8192)
    draws = draws.double().clamp(1e-9, 1 - 1e-9)
    z = 3 * draws[:, :1] - 1.5
    location, scale, delta = slanted(skewness_at(z))
    half, rest = torch.special.ndtri(draws[:, 1:2]).abs(), torch.special.ndtri(draws[:, 2:])
    return z.float(), location + scale * (delta * half + (1 - delta.square()).sqrt() * rest)


def test_trained_it_finds_the_conditional_skewness_under_one_mean_and_variance():
    z, u = drawn(0)
    with seeded(0):
        head = built(u=u, hidden=(64, 64))
        optimiser = torch.optim.Adam(head.parameters(), fused=True)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-2, total_steps=150)
        for _ in range(150):
            optimiser.zero_grad()
            head.loss(head(z), u).mean().backward()
            optimiser.step()
            schedule.step()
    grid = torch.linspace(-1.4, 1.4, 57)[:, None]
    with torch.no_grad():
        mean, variance, skewness = head.moments(head(grid))
        test = head.loss(head(drawn(1)[0]), drawn(1)[1]).mean()
    assert mean.abs().max() < 0.1
    assert (variance - 1).abs().max() < 0.15
    assert (skewness - skewness_at(grid)).abs().mean() < 0.06
    # A Gaussian is at its ceiling of 1/2 here: only the skewness can tell.
    z, u = drawn(1)
    location, scale, delta = slanted(skewness_at(z.double()))
    slant = delta / (1 - delta.square()).sqrt()
    best = float(-skewnorm.logpdf(u, slant, location, scale).mean() - HALF)
    assert float(test) == pytest.approx(best, abs=0.003)
    assert best < 0.5 - 0.025


def best_loss(u, chances):
    """The loss of the best belief about an index of these values and chances."""
    points = torch.tensor(u, dtype=torch.float64)[:, None]
    share = torch.tensor(chances, dtype=torch.float64) / sum(chances)
    head = built()
    belief = head.marginal_params(points, share)
    return float(share @ head.loss(belief.expand(len(points), -1), points))


def test_it_sees_a_skewness_under_one_mean_and_variance():
    """The joint of docs/theory.md on which the Gaussian is at its ceiling."""
    one, other = (best_loss([1, 2, 3, 4], chances) for chances in ([2, 0, 3, 1], [1, 3, 0, 2]))
    assert one == pytest.approx(other, abs=1e-4)  # mirrored
    assert one < best_loss([1, 2, 3, 4], [3, 3, 3, 3]) - 0.01


def test_symmetric_indices_of_one_variance_and_another_shape_fool_it():
    two, three = math.sqrt(2), math.sqrt(3)
    assert best_loss([-three, 0, three], [1, 4, 1]) == pytest.approx(0.5, abs=1e-5)
    many = [-three, -two, -1 / two, 0, 1 / two, two, three]
    assert best_loss(many, [5, 6, 6, 26, 6, 6, 5]) == pytest.approx(0.5, abs=1e-5)
    both = best_loss(many, [15, 6, 6, 66, 6, 6, 15])  # either, with even odds
    assert both == pytest.approx(0.5, abs=1e-5)


def test_where_tails_are_short_a_strong_skewness_is_closer_than_none():
    two = math.sqrt(2)
    assert best_loss([-two, 0, two], [1, 2, 1]) == pytest.approx(0.48805, abs=1e-4)
