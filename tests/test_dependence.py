"""Measures of dependence: their definitions, closed forms, and what must not change them."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cida.dependence import distance_correlation, distance_covariance, hsic, normalized_hsic

COVARIANCES = [distance_covariance, hsic]
CORRELATIONS = [distance_correlation, normalized_hsic]
MEASURES = COVARIANCES + CORRELATIONS


def rows(count, width, seed=0):
    return torch.randn(
        count, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
    )


# --- the definitions, in loops --------------------------------------------------------------------


def euclidean(a):
    count = len(a)
    return [[math.dist(a[i], a[j]) for j in range(count)] for i in range(count)]


def gaussian(a):
    apart = euclidean(a)
    found = sorted(d for i, line in enumerate(apart) for d in line[:i] if d > 0)
    h = found[(len(found) - 1) // 2] if found else 1.0
    return [[math.exp(-d * d / (2 * h * h)) for d in line] for line in apart]


def centred_by_hand(s):
    """U-centring, as Szekely and Rizzo (2014) define it."""
    n = len(s)
    others = [[j for j in range(n) if j != i] for i in range(n)]
    line = [sum(s[i][j] for j in others[i]) / (n - 2) for i in range(n)]
    whole = sum(line) / (n - 1)
    return [
        [0 if i == j else s[i][j] - line[i] - line[j] + whole for j in range(n)] for i in range(n)
    ]


def covariance_by_hand(s, t):
    n = len(s)
    first, second = centred_by_hand(s), centred_by_hand(t)
    pairs = itertools.permutations(range(n), 2)
    return sum(first[i][j] * second[i][j] for i, j in pairs) / (n * (n - 3))


def hsic_by_hand(k, m):
    """Song et al. (2012): traces and sums of kernels without their diagonals."""
    n = len(k)
    k, m = (np.array(s) * (1 - np.eye(n)) for s in (k, m))
    one = np.ones(n)
    parts = (
        np.trace(k @ m),
        (one @ k @ one) * (one @ m @ one) / ((n - 1) * (n - 2)),
        -2 / (n - 2) * (one @ k @ m @ one),
    )
    return sum(parts) / (n * (n - 3))


@pytest.mark.parametrize("count", [4, 5, 9])
@pytest.mark.parametrize("coinciding", [False, True])
def test_the_covariances_are_their_definitions(count, coinciding):
    a, b = rows(count, 3), rows(count, 2, seed=1)
    if coinciding:
        a[1], b[-1] = a[0], b[0]
    x, y = a.tolist(), b.tolist()
    by_hand = covariance_by_hand(euclidean(x), euclidean(y))
    assert distance_covariance(a, b).item() == pytest.approx(by_hand, rel=1e-9)
    assert hsic(a, b).item() == pytest.approx(hsic_by_hand(gaussian(x), gaussian(y)), rel=1e-9)


@pytest.mark.parametrize(
    ("correlation", "covariance"), list(zip(CORRELATIONS, COVARIANCES, strict=True))
)
def test_a_correlation_is_the_covariance_over_those_with_itself(correlation, covariance):
    a, b = rows(12, 3), rows(12, 1, seed=1)
    own = covariance(a, a) * covariance(b, b)
    assert correlation(a, b).item() == pytest.approx((covariance(a, b) / own.sqrt()).item())
    assert correlation(a, 3 * a).item() == pytest.approx(1)


# --- unbiased: exact means ------------------------------------------------------------------------


def coins(count):
    return [
        torch.tensor(tosses, dtype=torch.float64)[:, None]
        for tosses in itertools.product([0, 1], repeat=count)
    ]


# Of a fair coin with itself: dCov^2 = E[r^2] + E[r]^2 - 2 E[r r'] = 1/2 + 1/4 - 1/2, and the kernel
# is 1 - c r with c = 1 - exp(-1/2), since rows that differ are always 1 apart.
@pytest.mark.parametrize(
    ("measure", "truth"), [(distance_covariance, 1 / 4), (hsic, (1 - math.exp(-0.5)) ** 2 / 4)]
)
def test_over_all_samples_of_a_coin_the_mean_is_the_true_value(measure, truth):
    same = [measure(a, a).item() for a in coins(5)]
    assert np.mean(same) == pytest.approx(truth, rel=1e-12)
    apart = [measure(a, b).item() for a in coins(4) for b in coins(4)]
    assert np.mean(apart) == pytest.approx(0, abs=1e-15)
    assert min(apart) < 0  # as it has to be for that


@pytest.mark.parametrize("measure", MEASURES)
def test_over_all_permutations_of_the_rows_the_mean_is_zero(measure):
    a, b = rows(6, 2), rows(6, 1, seed=1) + rows(6, 2)[:, :1]
    values = [measure(a, b[list(order)]).item() for order in itertools.permutations(range(6))]
    assert np.mean(values) == pytest.approx(0, abs=1e-12)
    assert np.std(values) > 1e-3


@pytest.mark.parametrize("measure", MEASURES)
def test_over_many_independent_draws_the_mean_is_zero_within_its_error(measure):
    draws = [measure(rows(12, 3, seed), rows(12, 2, seed + 10_000)).item() for seed in range(500)]
    assert abs(np.mean(draws)) < 4 * np.std(draws) / math.sqrt(len(draws))


@pytest.mark.parametrize("correlation", [0.0, 0.5, -0.9])
def test_of_two_normals_it_is_the_closed_form(correlation):
    """Theorem 7 of Szekely, Rizzo and Bakirov (2007)."""
    both, _ = torch.linalg.qr(rows(1500, 2) - rows(1500, 2).mean(0))  # uncorrelated to the digit
    a, noise = (math.sqrt(1500) * both).split(1, dim=1)
    b = correlation * a + math.sqrt(1 - correlation**2) * noise

    def part(r):
        root = math.sqrt(1 - r * r) - math.sqrt(4 - r * r)
        return r * math.asin(r) + root - r * math.asin(r / 2) + 1

    r = abs(correlation)
    assert distance_covariance(a, b).item() == pytest.approx(4 / math.pi * part(r), abs=0.01)
    assert distance_correlation(a, b).item() == pytest.approx(part(r) / part(1.0), abs=0.01)


# --- what it must see, and what must not change it ------------------------------------------------


def dependent(kind, count=400):
    u, noise = rows(count, 1), rows(count, 1, seed=1)
    return {
        "mean": u + noise,
        "variance": noise * u.exp(),
        "square": u.square() + 0.3 * noise,
        "circle": torch.cat([(3 * u).cos(), (3 * u).sin()], dim=1),
    }[kind], u


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("kind", ["mean", "variance", "square", "circle"])
def test_dependence_of_every_kind_stands_out_of_chance(measure, kind):
    a, b = dependent(kind)
    generator = torch.Generator().manual_seed(0)
    chance = [measure(a, b[torch.randperm(len(b), generator=generator)]) for _ in range(30)]
    assert measure(a, b) > 2 * max(chance)


def turned(a, seed):
    turn, _ = torch.linalg.qr(rows(a.shape[1], a.shape[1], seed))
    return a @ turn


@given(
    seed=st.integers(0, 10_000),
    count=st.integers(4, 14),
    scale=st.floats(1e-3, 1e3),
    shift=st.floats(-10, 10),
)
@settings(max_examples=30, deadline=None)
def test_shifts_turns_and_the_order_of_rows_change_nothing_and_scales_no_correlation(
    seed, count, scale, shift
):
    a, b = rows(count, 3, seed), rows(count, 2, seed + 1)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    for measure in MEASURES:
        value = measure(a, b)
        assert torch.allclose(measure(b, a), value, atol=1e-10)
        assert torch.allclose(measure(a[order], b[order]), value, atol=1e-10)
        assert torch.allclose(measure(turned(a, seed) + shift, b), value, atol=1e-8)
        factor = scale if measure is distance_covariance else 1.0
        assert torch.allclose(measure(scale * a, b), factor * value, rtol=1e-6, atol=1e-8)
        if measure in CORRELATIONS:
            assert abs(value.item()) <= 1 + 1e-12
            assert measure(a, turned(a, seed)).item() == pytest.approx(1)


@pytest.mark.parametrize("measure", [hsic, *CORRELATIONS])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e6])
def test_a_scale_gains_nothing_and_no_gradient_points_along_it(measure, scale):
    a, b = rows(20, 3), rows(20, 1, seed=1) + rows(20, 3)[:, :1]
    a = (scale * a).float().requires_grad_()
    value = measure(a, b.float())
    assert value.item() == pytest.approx(measure(a.detach().double() / scale, b).item(), rel=1e-4)
    (gradient,) = torch.autograd.grad(value, a)
    assert abs((gradient * a).sum().item()) < 1e-4 * gradient.norm() * a.norm()
    assert gradient.norm() > 0


# --- gradients ------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", MEASURES)
def test_the_gradient_is_that_of_finite_differences(measure):
    a, b = rows(7, 2).requires_grad_(), rows(7, 1, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(measure, (a, b))


@pytest.mark.parametrize("measure", [distance_covariance, distance_correlation])
def test_the_gradient_is_so_too_where_rows_coincide(measure):
    a, b = rows(7, 2), rows(7, 1, seed=1)
    a[1] = a[2] = a[0]
    b[5] = b[4]
    assert torch.autograd.gradcheck(measure, (a.requires_grad_(), b.requires_grad_()))


@pytest.mark.parametrize("measure", MEASURES)
def test_an_encoder_of_equal_rows_has_the_gradient_of_finite_differences(measure):
    x, b = rows(8, 2), rows(8, 1, seed=1)
    x[1] = x[2] = x[0]  # drawn three times: they stay together whatever the encoder does
    weights = rows(2, 3, seed=2).requires_grad_()
    assert torch.autograd.gradcheck(lambda w: measure(torch.tanh(x @ w), b), (weights,))


def constant():
    return torch.full((6, 2), 0.1)


def two_values():
    return torch.tensor([0.0, 0, 0, 0, 0, 7])[:, None]


def all_as_far_apart():
    return 0.1 * torch.eye(6)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("make", [constant, two_values, all_as_far_apart])
def test_degenerate_rows_give_finite_values_and_gradients(measure, make):
    a, b = make().requires_grad_(), rows(6, 1).float().requires_grad_()
    value = measure(a, b)
    gradients = torch.autograd.grad(value, (a, b))
    assert value.isfinite()
    assert all(gradient.isfinite().all() for gradient in gradients)
    if make is constant:
        assert value.item() == 0
        assert not any(gradient.any() for gradient in gradients)
    if make is all_as_far_apart:  # nothing is left but rounding, which must not be blown up
        assert value.item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("measure", MEASURES)
def test_a_number_that_is_none_is_not_hidden(measure):
    a = rows(6, 2)
    a[0, 0] = torch.nan
    assert measure(a, rows(6, 1)).isnan()


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (rows(3, 2), rows(3, 1), "a and b have 3 rows.*needs at least 4"),
        (rows(5, 2), rows(6, 1), "a has 5 rows and b 6; they must have the same number"),
        (rows(5, 2)[:, 0], rows(5, 1), r"a has the shape \(5,\); give it the shape \(rows, col"),
        (rows(5, 2), rows(5, 1)[:, 0], r"b has the shape \(5,\); give it the shape \(rows, col"),
    ],
)
def test_rows_that_cannot_be_compared_are_refused_in_a_sentence(measure, a, b, words):
    with pytest.raises(ValueError, match=words):
        measure(a, b)
