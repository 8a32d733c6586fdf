"""An encoder for tables."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from cida import CIDAClassifier, load
from cida.networks import IndexAffine, TabularEncoder
from cida.training import seeded

quick = settings(deadline=None, max_examples=15)
INDICATORS, SIZES = (2, 0), (3, 40)  # of three numbers the third and the first may be missing


def some_encoder(seed=0, **more):
    with seeded(seed):
        return TabularEncoder(3, INDICATORS, SIZES, encoding_width=5, **more).eval()


def table(rows=200, seed=0):
    """Rows as a schema encodes them, 0 where a number is missing, and their index."""
    rng = np.random.default_rng(seed)
    index = rng.normal(size=(rows, 1))
    numbers = rng.normal(size=(rows, 3)) * 2 + 3 * index
    holes = rng.random((rows, 2)) < 0.3
    numbers[:, INDICATORS] = np.where(holes, 0, numbers[:, INDICATORS])
    codes = np.stack([rng.integers(0, size, rows) for size in SIZES], 1)
    x = np.concatenate([numbers, holes, codes], axis=1)
    return torch.from_numpy(x).float(), torch.from_numpy(index)


def fitted(seed=0, **more):
    encoder = some_encoder(seed, **more)
    x, index = table()
    encoder.fit_index(x, index)
    return encoder, x, index.float()


def by_hand(encoder, x, index):
    """The layers on columns that are put together one by one."""
    numbers = encoder.affine(encoder.windows(x[:, :3], index), index)
    missing = {0: x[:, 4], 2: x[:, 3]}
    parts = []
    for column in range(3):
        there = 1 - missing.get(column, torch.zeros(len(x)))
        parts.append((numbers[:, column] * there)[:, None])
    parts += [x[:, 3:5]]
    parts += [encoder.embeddings[k].weight[x[:, 5 + k].long()] for k in range(2)]
    h = torch.cat(parts, dim=1)
    return encoder.line(h) + encoder.body(h)


def test_the_columns_are_numbers_indicators_and_codes():
    encoder, x, index = fitted()
    nn.init.normal_(encoder.affine.linear.weight)
    assert torch.allclose(encoder(x, index), by_hand(encoder, x, index), atol=1e-6)
    assert [(e.num_embeddings, e.embedding_dim) for e in encoder.embeddings] == [(3, 2), (40, 16)]


def test_the_windows_are_fitted_to_the_numbers_that_are_there():
    encoder, x, _ = fitted()
    overall = []
    for column, missing in ((0, x[:, 4]), (1, None), (2, x[:, 3])):
        values = x[:, column] if missing is None else x[missing == 0, column]
        overall.append(values.mean().item())
    middle = encoder.windows.mean.mean(0).tolist()  # windows cover all rows, the edges twice
    assert middle == pytest.approx(overall, abs=0.6)
    assert isinstance(encoder.affine, IndexAffine)


@quick
@given(st.floats(-1e6, 1e6), st.integers(0, 99))
def test_a_missing_number_has_no_influence_whatever_stands_there(value, seed):
    encoder = some_encoder(seed)
    x, index = table(seed=seed)
    other = x.clone()
    for place, column in enumerate(INDICATORS):
        other[x[:, 3 + place] == 1, column] = value
    encoder.fit_index(x, index)
    before = encoder(x, index.float())
    encoder.fit_index(other, index)
    assert torch.equal(encoder(other, index.float()), before)


def test_that_a_number_is_missing_is_seen():
    encoder, x, index = fitted()
    other = x.clone()
    other[:, 3] = 1 - x[:, 3]
    assert (encoder(other, index) - encoder(x, index)).abs().max(1).values.min() > 1e-4


@pytest.mark.parametrize("column", [5, 6])
def test_every_code_of_a_category_has_an_encoding_of_its_own(column):
    encoder, x, index = fitted()
    codes = SIZES[column - 5]
    rows = x[:1].repeat(codes, 1)
    rows[:, column] = torch.arange(codes)
    z = encoder(rows, index[:1].expand(codes, 1))
    apart = torch.cdist(z, z) + torch.eye(codes)
    assert apart.min() > 1e-3


def test_it_begins_at_the_windows():
    encoder, x, index = fitted()
    scaled = encoder.windows(x[:, :3], index)
    assert torch.equal(encoder.affine(scaled, index), scaled)


def test_numbers_that_drift_along_the_index_are_encoded_alike():
    rng = np.random.default_rng(0)
    u = np.linspace(-1.7, 1.7, 4000)[:, None]
    x = 5 * np.sin(u) + (2 + u) * rng.normal(size=(4000, 2))
    with seeded(0):
        encoder = TabularEncoder(2).eval()
    x, index = torch.from_numpy(x).float(), torch.from_numpy(u)
    encoder.fit_index(x, index)
    z = encoder(x, index.float()).detach()
    spread = z.std(0)
    for part in z.split(500):
        assert ((part.mean(0) - z.mean(0)).abs() < 0.2 * spread).all()


def test_without_a_window_the_index_is_not_seen_and_numbers_stay_as_they_come():
    encoder = some_encoder(window=False)
    x, index = table()
    encoder.fit_index(x, index)
    z = encoder(x, index.float())
    assert torch.equal(encoder(x, torch.full_like(index.float(), 1e9)), z)
    assert encoder.windows is None
    assert encoder.affine is None
    names = {name.partition(".")[0] for name, _ in encoder.named_parameters()}
    assert names == {"embeddings", "line", "body"}
    linear = x[:, :3].clone()
    linear[:, INDICATORS] *= 1 - x[:, 3:5]
    looked_up = [encoder.embeddings[k](x[:, 5 + k].long()) for k in range(2)]
    h = torch.cat([linear, x[:, 3:5], *looked_up], dim=1)
    assert torch.allclose(z, encoder.line(h) + encoder.body(h), atol=1e-6)


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize(
    ("numbers", "indicators", "sizes"), [(2, (), ()), (0, (), (4,)), (1, (0,), ()), (0, (), (2, 1))]
)
def test_any_part_of_the_layout_may_be_empty(numbers, indicators, sizes):
    encoder = TabularEncoder(numbers, indicators, sizes, encoding_width=4).eval()
    x = torch.cat([torch.randn(50, numbers), torch.zeros(50, len(indicators) + len(sizes))], dim=1)
    index = torch.randn(50, 1)
    encoder.fit_index(x, index)
    z = encoder(x, index)
    assert z.shape == (50, 4)
    assert torch.isfinite(z).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_reaches_every_weight(seed):
    encoder, x, index = fitted(seed, dropout=0.0)
    encoder.train()
    encoder(x, index).square().sum().backward()
    for name, weight in encoder.named_parameters():
        assert weight.grad is not None, name
        assert torch.isfinite(weight.grad).all(), name
        assert weight.grad.abs().sum() > 0, name
    assert {name.partition(".")[0] for name, _ in encoder.named_parameters()} == {
        "affine", "embeddings", "line", "body",
    }  # fmt: skip


def test_the_gradient_of_the_affine_is_the_numeric_one():
    encoder, x, index = fitted(hidden=(8,))
    encoder = encoder.double()
    x, index = x[:5].double(), index[:5].double()
    weight = (0.1 * torch.randn(6, 1, dtype=torch.float64)).requires_grad_()

    def found(weight):
        return torch.func.functional_call(encoder, {"affine.linear.weight": weight}, (x, index))

    assert torch.autograd.gradcheck(found, (weight,))


def test_dropout_is_for_training_alone():
    encoder, x, index = fitted(dropout=0.5)
    assert torch.equal(encoder(x, index), encoder(x, index))
    encoder.train()
    assert not torch.equal(encoder(x, index), encoder(x, index))


def test_it_is_saved_within_a_model_and_passed_again(tmp_path):
    x, index = table()
    x, u = x.numpy(), index.numpy()
    y = np.where(u[:, 0] > 0.5, np.nan, x[:, 0] > 0)
    model = CIDAClassifier(
        encoder=some_encoder(), coordinates="learned", standardize=False, steps=3, random_state=0
    )
    model.fit(x, y, domain_index=u)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model", encoder=some_encoder(seed=9))
    for method in ("transform", "predict_proba"):
        expected = getattr(model, method)(x, domain_index=u)
        assert np.array_equal(getattr(again, method)(x, domain_index=u), expected)
    assert not torch.equal(again.game_.encoder.windows.places, again.encoder.windows.places)
