"""The loss of each head against closed forms, scipy and torch.distributions."""

import math

import pytest
import torch
from torch import nn
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

from cida.discriminators import (
    DISCRIMINATORS,
    L1,
    L2,
    Flow,
    FullGaussian,
    Gaussian,
    Histogram,
    Mixture,
    SkewNormal,
    VonMises,
    VonMisesMixture,
    make_discriminator,
)
from cida.discriminators.base import VARIANCE_FLOOR, raw_from_variance, variance_from_raw
from cida.spaces import Line, Periodic, Product

HALF_LOG_TURN = 0.5 * math.log(2 * math.pi)
SPACES = {
    "line": Line(2.0, 3.0),
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
    "flow": lambda: Flow(bins=4),
}


@pytest.fixture(params=SPACES)
def space(request):
    return SPACES[request.param]


def some_index(space, rows=40, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return 10 * torch.randn(rows, space.width, generator=generator, dtype=torch.float64)


def some_beliefs(head, rows=40, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, head.params_width, generator=generator, dtype=torch.float64)


def built(head, space, u=None):
    return head.build(4, space, some_index(space) if u is None else u)


def test_the_squared_error_is_summed_over_the_columns_of_the_embedding():
    space = Product([Line(0.0, 2.0), Periodic(4.0)])
    head = built(L2(), space)
    u = torch.tensor([[6.0, 1.0]])  # embedded as 3, cos 90 degrees = 0, sin 90 degrees = 1
    assert head.loss(torch.tensor([[1.0, 0.5, -1.0]]), u).item() == pytest.approx(4 + 0.25 + 4)


def test_the_absolute_error_is_summed_over_the_columns_of_the_embedding():
    space = Product([Line(0.0, 2.0), Periodic(4.0)])
    head = built(L1(), space)
    u = torch.tensor([[6.0, 1.0]])
    assert head.loss(torch.tensor([[1.0, 0.5, -1.0]]), u).item() == pytest.approx(2 + 0.5 + 2)


def test_the_gaussian_loss_is_the_negative_log_density_without_its_constant(space):
    head = built(Gaussian(), space)
    u, params = some_index(space), some_beliefs(head)
    mean, variance = head.moments(params)
    density = Independent(Normal(mean, variance.sqrt()), 1).log_prob(space.embed(u))
    expected = -density - HALF_LOG_TURN * space.embedding_width
    assert torch.allclose(head.loss(params, u), expected, rtol=1e-10)


def test_the_gaussian_loss_matches_a_value_computed_by_hand():
    head = built(Gaussian(), Line(), some_index(Line()))
    raw = raw_from_variance(torch.tensor(4.0, dtype=torch.float64)).item()
    params = torch.tensor([[1.0, raw]], dtype=torch.float64)
    value = head.loss(params, torch.tensor([[3.0]], dtype=torch.float64)).item()
    assert value == pytest.approx(2.0**2 / (2 * 4) + 0.5 * math.log(4))


def test_the_mixture_loss_is_the_negative_log_density_without_its_constant(space):
    head = built(Mixture(components=3), space)
    u, params = some_index(space), some_beliefs(head)
    width = space.embedding_width
    logits = params[:, :3]
    mean = params[:, 3 : 3 + 3 * width].reshape(-1, 3, width)
    variance = nn.functional.softplus(params[:, 3 + 3 * width :]).reshape(-1, 3, width)
    parts = Independent(Normal(mean, (variance + VARIANCE_FLOOR).sqrt()), 1)
    density = MixtureSameFamily(Categorical(logits=logits), parts).log_prob(space.embed(u))
    expected = -density - HALF_LOG_TURN * width
    assert torch.allclose(head.loss(params, u), expected, rtol=1e-10)


def test_a_mixture_of_one_component_is_the_gaussian_head(space):
    gaussian, mixture = built(Gaussian(), space), built(Mixture(components=1), space)
    u, params = some_index(space), some_beliefs(gaussian)
    logit = torch.full((len(params), 1), 5.0, dtype=torch.float64)
    expected = gaussian.loss(params, u)
    assert torch.allclose(mixture.loss(torch.cat([logit, params], 1), u), expected, rtol=1e-10)
    assert torch.allclose(mixture.ceiling(u), gaussian.ceiling(u), atol=1e-4)


def test_mixture_weights_sum_to_one_over_the_components_of_each_row():
    # Integrating exp(-loss) over u gives (2 pi)^(-1/2) times the sum of the weights.
    head = built(Mixture(components=4), Line())
    grid = torch.linspace(-40, 40, 80_001, dtype=torch.float64)[:, None]
    for row in some_beliefs(head, rows=3):
        density = (-head.loss(row.expand(len(grid), -1), grid) - HALF_LOG_TURN).exp()
        assert torch.trapezoid(density, grid[:, 0]).item() == pytest.approx(1.0, abs=1e-4)


def test_a_variance_is_never_below_the_floor_however_small_its_raw_number():
    raw = torch.tensor([-1e4, -50.0, 0.0, 50.0], dtype=torch.float64)
    variance = variance_from_raw(raw)
    assert variance[:2].tolist() == pytest.approx([VARIANCE_FLOOR] * 2)
    assert variance[2].item() == pytest.approx(math.log(2) + VARIANCE_FLOOR)
    assert variance[3].item() == pytest.approx(50 + VARIANCE_FLOOR)


def test_raw_variance_inverts_variance_of_and_floors():
    variance = torch.tensor([2e-4, 0.01, 1.0, 30.0, 1e4], dtype=torch.float64)
    assert torch.allclose(variance_from_raw(raw_from_variance(variance)), variance, rtol=1e-9)
    floored = variance_from_raw(raw_from_variance(torch.zeros(1, dtype=torch.float64))).item()
    assert floored == pytest.approx(VARIANCE_FLOOR, rel=0.01)


@pytest.mark.parametrize("make", HEADS.values(), ids=HEADS)
def test_the_loss_is_differentiable_and_its_gradient_right(make, space):
    head = built(make(), space)
    u, params = some_index(space, rows=6), some_beliefs(head, rows=6).requires_grad_()
    assert torch.autograd.gradcheck(lambda p: head.loss(p, u), params)


@pytest.mark.parametrize("make", HEADS.values(), ids=HEADS)
def test_the_loss_is_one_number_a_row_and_rows_do_not_mix(make, space):
    head = built(make(), space)
    u, params = some_index(space), some_beliefs(head)
    together = head.loss(params, u)
    assert together.shape == (len(u),)
    alone = torch.cat([head.loss(params[i : i + 1], u[i : i + 1]) for i in range(len(u))])
    assert torch.allclose(together, alone, rtol=1e-9)


@pytest.mark.parametrize("make", HEADS.values(), ids=HEADS)
def test_a_belief_has_the_width_the_head_promises_and_reaches_z(make, space):
    head = built(make(), space)
    z = torch.randn(5, 4, requires_grad=True)
    params = head(z)
    assert params.shape == (5, head.params_width)
    head.loss(params, some_index(space, rows=5)).sum().backward()
    assert float(z.grad.abs().sum()) > 0


@pytest.mark.parametrize("kernel", [0.0, 0.3, 2.0])
def test_histogram_targets_sum_to_one(space, kernel):
    head = built(Histogram(bins=7, kernel=kernel), space)
    target = head.target(some_index(space))
    assert torch.allclose(target.sum(1), torch.ones(40))
    assert (target >= 0).all()


def test_histogram_targets_follow_the_kernel_in_units_of_the_anchor_spacing():
    u = torch.linspace(0, 10, 1001, dtype=torch.float64)[:, None]
    head = built(Histogram(bins=5, kernel=0.5), Line(), u)
    spacing = float(head.anchors[1, 0] - head.anchors[0, 0])
    at = head.anchors[1:2] + 0.2 * spacing
    raw = [math.exp(-((k - 1.2) ** 2) / (2 * 0.5**2)) for k in range(5)]
    expected = torch.tensor(raw, dtype=torch.float64) / sum(raw)
    assert torch.allclose(head.target(at)[0].double(), expected, rtol=1e-5)


def test_histogram_targets_wrap_on_a_periodic_index():
    all_round = torch.arange(360, dtype=torch.float64)[:, None]
    head = built(Histogram(bins=8, kernel=0.5), Periodic(360.0), all_round)
    before, after = head.target(torch.tensor([[-10.0], [10.0]], dtype=torch.float64))
    assert before.argmax() == after.argmax() == 0
    # Mirrored round the anchor at 0, the bins 1 and 7, 2 and 6, ... change places.
    assert torch.allclose(before, after[[0, 7, 6, 5, 4, 3, 2, 1]], atol=1e-6)
    turned = head.target(torch.tensor([[350.0]], dtype=torch.float64))[0]
    assert torch.allclose(turned, before)


def test_hard_bins_are_cross_entropy_on_the_nearest_anchor(space):
    head = built(Histogram(bins=6, kernel=0.0), space)
    u, params = some_index(space), some_beliefs(head)
    nearest = space.distance(u, head.anchors).argmin(1)
    expected = nn.functional.cross_entropy(params, nearest, reduction="none")
    assert torch.allclose(head.loss(params, u), expected)


@pytest.mark.parametrize("kernel", [0.0, 1.0])
def test_smoothed_targets_sum_to_one_and_keep_their_share_in_every_bin(space, kernel):
    plain = built(Histogram(bins=7, kernel=kernel), space)
    smooth = built(Histogram(bins=7, kernel=kernel, smoothing=0.2), space)
    u, bins = some_index(space), len(smooth.anchors)
    target = smooth.target(u)
    assert torch.allclose(target.sum(1), torch.ones(40))
    assert float(target.min()) >= 0.2 / bins - 1e-6
    assert torch.allclose(target, 0.8 * plain.target(u) + 0.2 / bins)


def test_hard_smoothed_bins_are_cross_entropy_with_label_smoothing(space):
    head = built(Histogram(bins=6, kernel=0.0, smoothing=0.3), space)
    u, params = some_index(space), some_beliefs(head)
    nearest = space.distance(u, head.anchors).argmin(1)
    expected = nn.functional.cross_entropy(params, nearest, reduction="none", label_smoothing=0.3)
    assert torch.allclose(head.loss(params, u), expected)


@pytest.mark.parametrize("kernel", [0.0, 1.0])
def test_the_ceiling_of_a_smoothed_histogram_is_the_entropy_of_the_mean_target(space, kernel):
    head = built(Histogram(bins=6, kernel=kernel, smoothing=0.3), space)
    u = some_index(space)
    mean = head.target(u).double().mean(0)
    entropy = -(mean * mean.log()).sum().item()
    assert head.ceiling(u).mean().item() == pytest.approx(entropy, rel=1e-5)


@pytest.mark.parametrize("others", [0, 3])
def test_a_histogram_over_an_index_that_hardly_varies_stays_finite(others):
    # The anchors of a Line span its inner 99 %: here that range is a single point.
    u = torch.cat([torch.zeros(1000), torch.ones(others)]).double()[:, None]
    head = built(Histogram(bins=5), Line().fit(u), u)
    assert torch.isfinite(head.target(u)).all()
    assert torch.isfinite(head.ceiling(u)).all()


class Doubler(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, z):
        return torch.cat([self.norm(z), z], dim=1)


@pytest.mark.parametrize("kind", DISCRIMINATORS.values(), ids=DISCRIMINATORS)
def test_a_users_own_module_can_be_the_body(kind):
    body = Doubler()
    head = built(kind(body=body), Line())
    assert head.body is body
    assert head.head.in_features == 8
    assert body.training
    assert float(body.norm.running_mean.abs().sum()) == 0  # probing its width left no trace
    assert head(torch.randn(3, 4)).shape == (3, head.params_width)


def test_hidden_widths_shape_the_default_body():
    head = built(L2(hidden=(7, 5)), Line())
    widths = [m.out_features for m in head.modules() if isinstance(m, nn.Linear)]
    assert widths == [7, 5, 1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Mixture(components=0), "components must be at least 1, got 0"),
        (lambda: Histogram(bins=1), "bins must be at least 2, got 1"),
        (lambda: Histogram(kernel=-0.5), "kernel must not be negative, got -0.5; 0 gives hard"),
        (lambda: Histogram(kernel=math.nan), "kernel must not be negative, got nan"),
        (lambda: Histogram(smoothing=-0.1), "smoothing must be at least 0 and below 1, got -0.1"),
        (lambda: Histogram(smoothing=1), "smoothing must be at least 0 and below 1, got 1"),
        (lambda: Histogram(smoothing=math.nan), "smoothing must be .*, got nan"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("name", DISCRIMINATORS)
def test_a_short_name_gives_a_fresh_discriminator(name):
    first, second = make_discriminator(name), make_discriminator(name)
    assert type(first) is DISCRIMINATORS[name]
    assert first is not second


def test_an_instance_gives_a_copy_so_that_fitting_leaves_the_original_unbuilt():
    mine = Histogram(bins=36)
    copy = make_discriminator(mine)
    built(copy, Line())
    assert copy is not mine
    assert copy.bins == 36
    assert mine.body is None
    assert mine.space is None


@pytest.mark.parametrize("bad", ["wasserstein", 3, None, L2])
def test_anything_else_is_refused_with_the_names_that_would_do(bad):
    with pytest.raises(ValueError, match="l2, l1, gaussian, mixture, histogram"):
        make_discriminator(bad)
