"""The ceiling of each head is the loss of its best parameters that ignore z."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.mixture import GaussianMixture

from cida.discriminators import (
    L1,
    L2,
    FullGaussian,
    Gaussian,
    Histogram,
    Mixture,
    SkewNormal,
    VonMises,
    VonMisesMixture,
)
from cida.discriminators.base import VARIANCE_FLOOR
from cida.spaces import Line, Periodic, Product

SPACES = {
    "line": Line(0.0, 2.0),
    "periodic": Periodic(24.0),
    "product": Product([Line(1.0, 2.0), Periodic(360.0)]),
}
HEADS = {
    "l2": L2,
    "l1": L1,
    "gaussian": Gaussian,
    "mixture": lambda: Mixture(components=3),
    "soft histogram": lambda: Histogram(bins=6, kernel=0.7),
    "hard histogram": lambda: Histogram(bins=6, kernel=0.0),
    "skew": SkewNormal,
    "von mises": VonMises,
    "von mises mixture": lambda: VonMisesMixture(components=2),
    "full gaussian": FullGaussian,
}
LOCAL = ("mixture", "von mises mixture")  # likelihoods with several optima
heads = pytest.mark.parametrize("make", HEADS.values(), ids=HEADS)
LOOSE = {"rel": 1e-5, "abs": 1e-5}  # the blind belief is kept in single precision


@pytest.fixture(params=SPACES)
def space(request):
    return SPACES[request.param]


def some_index(space, rows=200, seed=0):
    random = np.random.default_rng(seed)
    return torch.from_numpy(random.gamma(2.0, 3.0, size=(rows, space.width)))


def ceiling_of(head, space, u):
    return head.build(3, space, u).ceiling(u).mean().item()


def test_the_l2_ceiling_is_the_variance_of_u(space):
    u = some_index(space)
    variance = space.embed(u).var(0, correction=0).sum().item()
    assert ceiling_of(L2(), space, u) == pytest.approx(variance, **LOOSE)


def test_the_l2_and_gaussian_ceilings_are_one_and_a_half_on_a_fitted_line():
    u = some_index(Line())
    assert ceiling_of(L2(), Line().fit(u), u) == pytest.approx(1.0, **LOOSE)
    assert ceiling_of(Gaussian(), Line().fit(u), u) == pytest.approx(0.5, **LOOSE)


@pytest.mark.parametrize("rows", [200, 201])
def test_the_l1_ceiling_is_the_mean_absolute_deviation_from_the_median(space, rows):
    u = some_index(space, rows)
    embedding = space.embed(u).numpy()
    expected = np.abs(embedding - np.median(embedding, axis=0)).mean(axis=0).sum()
    assert ceiling_of(L1(), space, u) == pytest.approx(expected, **LOOSE)


def test_the_gaussian_ceiling_is_half_plus_half_the_log_variance_a_column(space):
    u = some_index(space)
    variance = space.embed(u).var(0, correction=0)
    expected = (0.5 + 0.5 * variance.log()).sum().item()
    assert ceiling_of(Gaussian(), space, u) == pytest.approx(expected, **LOOSE)


def test_the_gaussian_ceiling_of_a_constant_index_rests_on_the_variance_floor():
    u = torch.full((10, 1), 7.0, dtype=torch.float64)
    expected = 0.5 * math.log(VARIANCE_FLOOR)
    assert ceiling_of(Gaussian(), Line().fit(u), u) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("kernel", [0.0, 0.5, 3.0])
def test_the_histogram_ceiling_is_the_entropy_of_the_mean_target(space, kernel):
    u = some_index(space)
    head = Histogram(bins=8, kernel=kernel).build(3, space, u)
    mean = head.target(u).mean(0)
    expected = torch.special.entr(mean).sum().item()
    assert head.ceiling(u).mean().item() == pytest.approx(expected, **LOOSE)


@heads
def test_weights_count_as_repeats(make, space):
    u = some_index(space, rows=40)
    times = torch.from_numpy(np.random.default_rng(1).integers(1, 6, size=40))
    repeated = u.repeat_interleave(times, dim=0)
    head = make().build(3, space, u)
    head.fit_marginal(u, times)
    weighted = head.ceiling(repeated)
    head.fit_marginal(repeated)
    assert torch.allclose(weighted, head.ceiling(repeated), atol=1e-3)
    assert weighted.mean().item() == pytest.approx(head.ceiling(repeated).mean().item(), **LOOSE)


@heads
def test_only_the_ratios_of_weights_matter_and_rows_of_weight_zero_do_not_count(make, space):
    u = some_index(space, rows=60)
    head = make().build(3, space, u)
    weights = (torch.arange(60) < 30).double()
    head.fit_marginal(u, 1e-3 * weights)
    partly = head.ceiling(u)
    head.fit_marginal(u[:30])
    assert partly[:30].mean().item() == pytest.approx(head.ceiling(u[:30]).mean().item(), **LOOSE)


@heads
def test_the_ceiling_scores_the_belief_fitted_on_all_rows_not_one_refitted_on_the_batch(make):
    u = some_index(Line())
    head = make().build(3, Line().fit(u), u)
    everywhere = head.ceiling(u)
    batch = u[:, 0].argsort()[-5:]
    assert torch.equal(head.ceiling(u[batch]), everywhere[batch])
    assert torch.equal(head.ceiling(u), everywhere)
    # A belief fitted on the batch itself would do better there.
    refitted = make().build(3, head.space, u)
    refitted.fit_marginal(u[batch])
    assert refitted.ceiling(u[batch]).mean() < everywhere[batch].mean() - 1e-3


@heads
def test_the_blind_belief_travels_with_the_state_of_the_module(make):
    u = some_index(Line())
    first = make().build(3, Line(), u)
    second = make().build(3, Line(), u)
    second.fit_marginal(u[:20])
    second.load_state_dict(first.state_dict())
    assert torch.equal(first.ceiling(u), second.ceiling(u))


finite = st.floats(-20, 20, allow_nan=False)


@pytest.mark.parametrize("kind", [name for name in HEADS if name not in LOCAL])
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_no_constant_belief_beats_the_blind_one_on_the_rows_it_was_fitted_on(kind, data):
    space = SPACES[data.draw(st.sampled_from(list(SPACES)))]
    count = data.draw(st.integers(2, 12))
    row = st.lists(finite, min_size=space.width, max_size=space.width)
    u = torch.tensor(
        data.draw(st.lists(row, min_size=count, max_size=count, unique_by=tuple))
    ).double()
    weights = torch.tensor(
        data.draw(st.lists(st.floats(0.01, 10), min_size=count, max_size=count))
    ).double()
    # Anchors need a range to cover; the belief is fitted on the drawn rows alone.
    head = HEADS[kind]().build(3, space, torch.cat([u, some_index(space)]))
    head.fit_marginal(u, weights)
    share = weights / weights.sum()
    blind = (share @ head.ceiling(u).double()).item()
    seed = data.draw(st.integers(0, 2**31))
    noise = torch.randn(
        20, head.params_width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    nearby = head.blind.double() + noise * torch.logspace(-3, 1, 20).double()[:, None]
    for belief in nearby:
        rival = (share @ head.loss(belief.expand(len(u), -1), u)).item()
        assert blind <= rival + 1e-4 * max(1, abs(rival))


@pytest.mark.parametrize("seed", range(3))
def test_no_nearby_mixture_beats_the_blind_one(seed):
    # The likelihood of a mixture has local optima, so only beliefs nearby are a fair rival.
    space = Line()
    u = some_index(space, seed=seed)
    head = Mixture(components=3).build(3, space.fit(u), u)
    blind = head.ceiling(u).mean().item()
    generator = torch.Generator().manual_seed(seed)
    for size in np.logspace(-3, -1, 50):
        noise = torch.randn(head.blind.shape, generator=generator)
        rival = head.loss((head.blind + size * noise).expand(len(u), -1), u).mean().item()
        assert blind <= rival + 1e-4


def two_bumps(random):
    return np.concatenate([random.normal(-3, 0.5, 300), random.normal(2, 1, 700)])[:, None]


def scattered(random):
    return np.concatenate([random.normal(m, 0.3, 150) for m in (0, 2, 5, 9)])[:, None]


WORLDS = {
    "two bumps": (Line(), 2, two_bumps),
    "four bumps": (Line(), 4, scattered),
    "one long tail": (Line(), 5, lambda random: random.gamma(2, 3, (800, 1))),
    "uniform": (Line(), 5, lambda random: random.uniform(0, 1, (1000, 1))),
    "thirty values": (Line(), 5, lambda random: random.integers(0, 30, (900, 1)) / 29),
    "four values": (Line(), 5, lambda random: random.integers(0, 4, (400, 1)).astype(float)),
    "hours": (Periodic(24.0), 4, lambda random: random.normal(6, 5, (600, 1))),
    "many rows": (Line(), 3, lambda random: random.gamma(2, 3, (6000, 1))),
    "a plane": (Product([Line(), Line()]), 4, lambda random: random.gamma(2, 1, (600, 2))),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("world", WORLDS)
def test_the_blind_mixture_is_as_likely_as_scikit_learns(world):
    space, components, draw = WORLDS[world]
    u = torch.from_numpy(draw(np.random.default_rng(0)))
    space = space.fit(u)
    head = Mixture(components).build(3, space, u)
    ours = head.ceiling(u).double().mean().item()
    embedding = space.embed(u).numpy()
    # Their regulariser is added to each variance: the same floor as ours, so neither is sharper.
    theirs = GaussianMixture(
        components,
        covariance_type="diag",
        reg_covar=VARIANCE_FLOOR,
        n_init=4,
        tol=1e-7,
        max_iter=500,
        random_state=0,
    ).fit(embedding)
    constant = 0.5 * math.log(2 * math.pi) * space.embedding_width
    assert ours <= -theirs.score(embedding) - constant + 0.01
