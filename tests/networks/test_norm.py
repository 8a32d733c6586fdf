"""Batch norm whose mean and variance follow the index."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from cida.networks import norm
from cida.networks.norm import IndexNorm, IndexTrend
from cida.training import seeded

quick = settings(deadline=None, max_examples=25)


def drawn(*shape, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def some_layers(channels=3, index_width=2, seed=0):
    """With weights that are not those of the start, in double precision."""
    with seeded(seed):
        layer = IndexNorm(channels, index_width).double()
        torch.nn.init.normal_(layer.weight)
        torch.nn.init.normal_(layer.bias)
    return layer, IndexTrend(index_width).double()


def settled(layer, trend, h, index):
    """What it makes of a batch that it has seen many times, so that it remembers nothing else."""
    for _ in range(150):
        found = layer(h, trend(index))
    return found


def fitted(index, values):
    """The ridge line by scikit-learn, which leaves the constant free too."""
    model = Ridge(alpha=norm.RIDGE_PENALTY * len(index)).fit(index.numpy(), values.detach().numpy())
    return torch.from_numpy(model.predict(index.numpy())).reshape(values.shape)


def by_hand(layer, h, index):
    """The formula, with scikit-learn's lines."""
    c = h - fitted(index, h.mean((2, 3)))[:, :, None, None]
    square = c.square().mean((2, 3))
    spread = torch.maximum(fitted(index, square), norm.MIN_VARIANCE_RATIO * square.mean(0))
    scale = layer.weight / torch.sqrt(spread + norm.VARIANCE_EPSILON)
    return c * scale[:, :, None, None] + layer.bias[:, None, None]


@quick
@given(st.integers(1, 4), st.integers(1, 3), st.integers(4, 12), st.integers(0, 1000))
def test_the_formula_with_the_lines_of_scikit_learn(channels, index_width, rows, seed):
    layer, trend = some_layers(channels, index_width, seed)
    h, index = drawn(rows, channels, 1, 5, seed=seed), drawn(rows, index_width, seed=seed + 1)
    assert torch.allclose(settled(layer, trend, h, index), by_hand(layer, h, index))


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_at_first_or_where_all_have_one_index_it_is_batch_norm(spread):
    layer, trend = some_layers(index_width=1)
    plain = torch.nn.BatchNorm2d(3).double()
    plain.load_state_dict({**plain.state_dict(), "weight": layer.weight, "bias": layer.bias})
    h = 5 + 2 * drawn(8, 3, 1, 7)
    index = 0.7 + spread * torch.tensor([-1.0, 1.0] * 4).double()[:, None]
    h[1::2] = h[::2]  # nothing to tell by the index
    assert torch.allclose(layer(h, trend(index)), plain(h))


def test_a_straight_drift_of_mean_and_spread_is_taken_out(monkeypatch):
    monkeypatch.setattr(norm, "RIDGE_PENALTY", 0.0)
    layer, trend = some_layers(channels=1, index_width=1)
    index = torch.linspace(-1, 1, 2000).double()[:, None]
    h = 3 * index[:, :, None, None] + torch.sqrt(2 + index)[:, :, None, None] * drawn(2000, 1, 1, 9)
    found = settled(layer, trend, h, index).detach()
    for part in (found[:500], found[750:1250], found[1500:]):
        assert part.mean().item() == pytest.approx(layer.bias.item(), abs=0.05)
        assert part.std().item() == pytest.approx(abs(layer.weight.item()), rel=0.05)


def test_a_trend_too_small_for_one_batch_is_told_over_several():
    layer, trend = some_layers(channels=1, index_width=1)
    generator = torch.Generator().manual_seed(0)
    slopes = []
    for _ in range(60):
        index = torch.randn(40, 1, generator=generator).double()
        h = (0.5 * index + torch.randn(40, 1, generator=generator).double())[:, :, None, None]
        rows = trend(index)
        layer(h, rows)
        moments = (layer.mean_moments, rows.covariance_with(h[:, :, 0, 0]))
        slopes.append(torch.stack([(rows.inverse @ part)[0, 0] for part in moments]))
    remembered, own = torch.stack(slopes[20:]).std(0)
    assert remembered < own / 2


def test_the_written_gradient_is_the_numeric_one():
    layer, trend = some_layers()
    index = drawn(7, 2, seed=2)
    settled(layer, trend, drawn(7, 3, 1, 4, seed=5), index)
    before, rows = copy.deepcopy(layer.state_dict()), trend(index)

    def found(h, weight, bias):
        layer.load_state_dict(before)  # each look is the first
        return norm._IndexNormFunction.apply(h, weight, bias, rows, layer)

    h = drawn(7, 3, 1, 4).requires_grad_()
    weight, bias = (part.detach().clone().requires_grad_() for part in (layer.weight, layer.bias))
    assert torch.autograd.gradcheck(found, (h, weight, bias))


def test_the_spread_never_falls_below_its_floor():
    layer, trend = some_layers(channels=1, index_width=1)
    index = torch.linspace(-2, 2, 9).double()[:, None]
    loud = (index > 1).double()[:, :, None, None]  # the line of the spread runs below zero
    h = loud * drawn(9, 1, 1, 50) + 0.01 * drawn(9, 1, 1, 50, seed=3)
    assert torch.allclose(settled(layer, trend, h, index), by_hand(layer, h, index))
    square = (h - fitted(index, h.mean((2, 3)))[:, :, None, None]).square().mean((2, 3))
    assert fitted(index, square).min() < 0


def test_prediction_uses_what_training_saw():
    layer, trend = some_layers()
    h, index = drawn(20, 3, 1, 6), drawn(20, 2, seed=2)
    trained = settled(layer, trend, h, index)
    layer.eval(), trend.eval()
    assert torch.allclose(layer(h, trend(index)), trained)


def test_in_prediction_a_row_is_on_its_own():
    layer, trend = some_layers()
    h, index = drawn(20, 3, 1, 6), drawn(20, 2, seed=2)
    layer(h, trend(index))
    layer.eval(), trend.eval()
    together = layer(h, trend(index))
    for row in range(20):
        one = slice(row, row + 1)
        assert torch.allclose(layer(h[one], trend(index[one])), together[one])


def test_before_any_training_it_predicts_as_an_identity():
    layer, trend = IndexNorm(3, 2).double().eval(), IndexTrend(2).double().eval()
    h = drawn(5, 3, 1, 6)
    assert torch.allclose(layer(h, trend(drawn(5, 2, seed=2))), h, atol=1e-4)
