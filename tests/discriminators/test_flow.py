"""The flow head: densities that add up, bounded, and right for what is known in closed form."""

import math
import sys
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, vonmises, wrapcauchy

from cida import Flow, Gaussian, Line, Periodic, Product

HALF = 0.5 * math.log(2 * math.pi)
RADIANS = Periodic(2 * math.pi)
SPACES = {
    "line": Line(2.0, 3.0),
    "circle": Periodic(24.0),
    "two columns": Product([Line(1.0, 2.0), Periodic(360.0)]),
}
spaces = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
QUANTILES = (torch.arange(2000, dtype=torch.float64) + 0.5) / 2000


def some(space, rows=40, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(rows, space.width, generator=generator, dtype=torch.float64)


@cache
def head_of(space, **given):
    return Flow(hidden=(4,), **given).build(2, space, some(space))


def built(space, u):
    return Flow(hidden=(4,)).build(2, space, u)


def beliefs_of(head, rows=40, seed=1, size=1.0):
    generator = torch.Generator().manual_seed(seed)
    return size * torch.randn(rows, head.params_width, generator=generator, dtype=torch.float64)


def test_without_a_bend_it_is_the_gaussian_head_on_a_line():
    head, u = head_of(Line()), some(Line())
    belief = torch.zeros(40, head.params_width, dtype=torch.float64)
    belief[:, 0], belief[:, 1] = 0.3, -0.4
    gaussian = Gaussian(hidden=(4,)).build(2, Line(), u)
    assert torch.allclose(head.loss(belief, u), gaussian.loss(belief[:, :2], u), rtol=1e-10)
    scale = math.sqrt(float(torch.nn.functional.softplus(belief[0, 1])) + 1e-4)
    expected = -norm.logpdf(u[:, 0], 0.3, scale) - HALF
    assert head.loss(belief, u).tolist() == pytest.approx(expected.tolist(), rel=1e-9)


def test_without_a_bend_it_is_a_wrapped_cauchy_on_a_circle():
    head, u = head_of(RADIANS), some(RADIANS)
    belief = torch.zeros(40, head.params_width, dtype=torch.float64)
    belief[:, 0], belief[:, 1] = 0.8, -0.6  # a length of 1, in the direction of -0.6435
    length = 0.99 / math.sqrt(2)
    angle = torch.remainder(u[:, 0] + math.atan2(0.6, 0.8), 2 * math.pi)
    expected = -wrapcauchy.logpdf(angle, length) - HALF
    assert head.loss(belief, u).tolist() == pytest.approx(expected.tolist(), rel=1e-9)


@pytest.mark.parametrize("size", [0.3, 1.0, 4.0])
def test_every_belief_is_a_density_that_adds_up_to_one(size):
    line = torch.linspace(-40, 40, 80_001, dtype=torch.float64)[:, None]
    circle = torch.linspace(0, 2 * math.pi, 20_001, dtype=torch.float64)[:, None]
    for head, grid in ((head_of(Line()), line), (head_of(RADIANS), circle)):
        for belief in beliefs_of(head, rows=3, size=size):
            density = (-head.loss(belief.expand(len(grid), -1), grid) - HALF).exp()
            assert float(torch.trapezoid(density, grid[:, 0])) == pytest.approx(1, abs=2e-3)


@spaces
def test_its_gradient_is_right(space):
    head, u = head_of(space, bins=4), some(space, rows=4)
    beliefs = beliefs_of(head, rows=4).requires_grad_()
    assert torch.autograd.gradcheck(lambda p: head.loss(p, u), beliefs)


@pytest.mark.parametrize("size", [0.0, 1.0, 100.0])
@spaces
def test_loss_and_gradient_are_finite_in_single_precision(space, size):
    head = head_of(space)
    beliefs = beliefs_of(head, size=size).float().requires_grad_()
    loss = head.loss(beliefs, some(space))
    (gradient,) = torch.autograd.grad(loss.sum(), beliefs)
    assert loss.isfinite().all()
    assert gradient.isfinite().all()


@given(st.integers(0, 10**6), st.integers(-4, 4))
@settings(deadline=None, max_examples=20)
def test_whole_periods_change_nothing(seed, periods):
    head, u = head_of(Periodic(24.0)), some(Periodic(24.0))
    beliefs = beliefs_of(head, seed=seed)
    assert torch.allclose(head.loss(beliefs, u + 24 * periods), head.loss(beliefs, u), atol=1e-9)


def test_two_columns_are_scored_one_by_one():
    space = SPACES["two columns"]
    head, u = head_of(space), some(space)
    beliefs = beliefs_of(head)
    parts = [
        head_of(column).loss(beliefs[:, 25 * j : 25 * (j + 1)], u[:, j : j + 1])
        for j, column in enumerate(space.column_spaces)
    ]
    assert torch.allclose(head.loss(beliefs, u), parts[0] + parts[1], rtol=1e-10)


def test_the_ceiling_is_the_entropy_where_the_family_holds_the_density():
    normal = torch.special.ndtri(QUANTILES)[:, None]
    assert float(built(Line(), normal).ceiling(normal).mean()) == pytest.approx(0.5, abs=0.003)
    even = 2 * math.pi * QUANTILES[:, None]
    assert float(built(RADIANS, even).ceiling(even).mean()) == pytest.approx(HALF, abs=0.003)


def test_the_ceiling_is_near_the_entropy_of_what_no_gaussian_holds():
    modes = torch.cat([0.5 * torch.special.ndtri(QUANTILES) + side for side in (-3, 3)])[:, None]
    expected = 0.5 + math.log(0.5) + math.log(2)
    assert float(built(Line(), modes).ceiling(modes).mean()) == pytest.approx(expected, abs=0.02)
    exponential = -torch.log1p(-QUANTILES)[:, None]
    expected = 1 - HALF  # the entropy of the exponential, whose edge no spline has
    assert (
        expected < float(built(Line(), exponential).ceiling(exponential).mean()) < expected + 0.05
    )


def test_two_directions_on_a_circle_are_near_their_entropy():
    around = 2 * math.pi * QUANTILES
    weights = sum(torch.from_numpy(vonmises.pdf(around.numpy(), 8.0, loc=at)) for at in (1.0, 4.0))
    head = head_of(RADIANS)
    share = weights / weights.sum()
    belief = head.marginal_params(around[:, None], share)
    expected = float(vonmises.entropy(8.0)) + math.log(2) - HALF
    found = share @ head.loss(belief.expand(2000, -1), around[:, None])
    assert float(found) == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("space", [Line(), Periodic(30.0)], ids=["line", "circle"])
def test_an_index_of_thirty_values_is_no_reason_to_run_away(space):
    u = torch.arange(30, dtype=torch.float64).repeat(10)[:, None]
    space = space.fit(u)
    spread = math.log(math.sqrt(12)) if isinstance(space, Line) else math.log(2 * math.pi)
    even = spread - HALF  # of the density that is flat over the values
    assert float(built(space, u).ceiling(u).mean()) == pytest.approx(even, abs=0.05)


def test_no_belief_is_sharper_than_a_bound():
    head = head_of(Line())
    u = torch.linspace(-1, 1, 2001, dtype=torch.float64)[:, None]
    for seed in range(20):
        belief = beliefs_of(head, rows=1, seed=seed, size=1e3)
        belief[:, :2] = torch.tensor([0.0, -1e3])  # as narrow as it gets
        assert float(head.loss(belief.expand(len(u), -1), u).min()) > -math.log(1e2 * 1e2)


def test_the_blind_belief_starts_from_the_moments_so_that_any_scale_is_met():
    u = 50 + 0.02 * torch.special.ndtri(QUANTILES)[:, None]  # far off, in a space not fitted to it
    expected = 0.5 + math.log(0.02)
    assert float(built(Line(), u).ceiling(u).mean()) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("space", [Line(), Periodic(360.0)], ids=["line", "circle"])
def test_of_very_many_rows_some_are_enough_for_the_blind_belief(space):
    """Up to a hundredth: the likelihood of a spline has several optima, all about as low."""
    u = 350 * (torch.arange(60_017, dtype=torch.float64) / 60_017).square()[:, None]
    head, share = built(space.fit(u), u), torch.full((60_017,), 1 / 60_017, dtype=torch.float64)
    with torch.no_grad():
        thin = float(head.ceiling(u).double().mean())
        head.blind = head.marginal_params(u, share).float()[None]
    assert thin == pytest.approx(float(head.ceiling(u).double().mean()), abs=0.01)


def test_trained_it_beats_the_gaussian_by_the_known_divergence_on_a_bimodal_index():
    """As test_theory.py has it for the mixture: modes at +-(1.2 + z/3), noise of 0.2."""

    def drawn(seed):
        draws = torch.quasirandom.SobolEngine(3, scramble=True, seed=seed).draw(8192)
        draws = draws.double().clamp(1e-9, 1 - 1e-9)
        z = 3 * draws[:, :1] - 1.5
        side = torch.sign(draws[:, 1:2] - 0.5)
        return z.float(), side * (1.2 + z / 3) + 0.2 * torch.special.ndtri(draws[:, 2:])

    z, u = drawn(0)
    torch.manual_seed(0)
    head = Flow(hidden=(64, 64)).build(1, Line(), u)
    optimiser = torch.optim.Adam(head.parameters(), fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-2, total_steps=600)
    for _ in range(600):
        rows = torch.randint(len(z), (1024,))
        optimiser.zero_grad()
        head.loss(head(z[rows]), u[rows]).mean().backward()
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        z, u = drawn(1)
        reached = float(head.loss(head(z), u).mean())
    grid = torch.linspace(-1.5, 1.5, 20_001, dtype=torch.float64)
    gaussian = float((0.5 + ((1.2 + grid / 3).square() + 0.2**2).log() / 2).mean())
    assert gaussian - reached == pytest.approx(1.084, abs=0.02)


def test_without_zuko_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "zuko.transforms", None)
    with pytest.raises(ImportError, match=r"'flow' needs zuko.*pip install 'cida\[flow\]'"):
        built(Line(), some(Line()))


def test_one_bin_is_refused():
    with pytest.raises(ValueError, match="bins must be at least 2, got 1"):
        Flow(bins=1)
