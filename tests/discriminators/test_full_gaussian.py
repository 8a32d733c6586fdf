"""The Gaussian head with a full covariance."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from cida import FullGaussian, Gaussian, Line, Periodic, Product
from cida.discriminators.base import VARIANCE_FLOOR

SPACES = {
    "line": Line(2.0, 3.0),
    "circle": Periodic(24.0),
    "two columns": Product([Line(1.0, 2.0), Periodic(24.0)]),
    "four numbers": Product([Line(), Line(), Periodic(10.0)]),
}
spaces = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)


def some(space, rows=40, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(rows, space.width, generator=generator, dtype=torch.float64)


def built(space, rows=40):
    head = FullGaussian(hidden=(4,)).build(2, space, some(space))
    generator = torch.Generator().manual_seed(1)
    beliefs = torch.randn(rows, head.params_width, generator=generator, dtype=torch.float64)
    return head, beliefs


@spaces
def test_the_loss_is_the_negative_log_density_without_its_constant(space):
    head, beliefs = built(space)
    u = some(space)
    mean, covariance = head.moments(beliefs)
    half = 0.5 * math.log(2 * math.pi) * space.embedding_width
    expected = [
        -multivariate_normal.logpdf(row, m, c) - half
        for row, m, c in zip(space.embed(u), mean, covariance, strict=True)
    ]
    assert head.loss(beliefs, u).tolist() == pytest.approx(expected, rel=1e-8, abs=1e-8)


@spaces
def test_its_gradient_is_right(space):
    head, beliefs = built(space, rows=5)
    u = some(space, rows=5)
    assert torch.autograd.gradcheck(lambda p: head.loss(p, u), beliefs.requires_grad_())


@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=20)
def test_without_weights_below_the_diagonal_it_is_the_gaussian_head(seed):
    space = SPACES["four numbers"]
    full, beliefs = built(space)
    plain = Gaussian(hidden=(4,)).build(2, space, some(space))
    u = some(space, seed=seed)
    beliefs[:, 2 * space.embedding_width :] = 0
    expected = plain.loss(beliefs[:, : plain.params_width], u)
    assert torch.allclose(full.loss(beliefs, u), expected, rtol=1e-10)


def test_on_a_line_it_is_the_gaussian_head():
    u = some(Line())
    heads = [kind(hidden=(4,)).build(2, Line(), u) for kind in (FullGaussian, Gaussian)]
    assert torch.equal(heads[0].ceiling(u), heads[1].ceiling(u))


@spaces
def test_the_blind_belief_is_the_mean_and_the_covariance_under_the_weights(space):
    head, _ = built(space)
    u, weights = some(space), torch.linspace(1, 4, 40, dtype=torch.float64)
    belief = head.marginal_params(u, weights / weights.sum())
    mean, covariance = head.moments(belief[None])
    points = space.embed(u)
    expected = torch.cov(points.T, correction=0, aweights=weights)
    assert torch.allclose(mean[0], weights @ points / weights.sum())
    assert torch.allclose(covariance[0], expected.reshape(covariance[0].shape), atol=1e-8)


@spaces
def test_the_ceiling_is_half_the_width_plus_half_the_log_determinant(space):
    head, _ = built(space)
    u = some(space)
    covariance = torch.cov(space.embed(u).T, correction=0).reshape([space.embedding_width] * 2)
    expected = space.embedding_width / 2 + float(torch.logdet(covariance)) / 2
    assert float(head.ceiling(u).mean()) == pytest.approx(expected, abs=1e-4)


def test_columns_that_follow_from_each_other_rest_on_the_floor():
    line = torch.linspace(-1, 1, 50, dtype=torch.float64)
    u = torch.stack([line, 2 * line, -line], dim=1)
    space = Product([Line(), Line(), Line()])
    head = FullGaussian(hidden=(4,)).build(2, space, u)
    free = 0.5 + float(line.var(correction=0).log()) / 2
    expected = free + 2 * math.log(VARIANCE_FLOOR) / 2
    assert float(head.ceiling(u).mean()) == pytest.approx(expected, abs=0.01)
