"""Standardisation in windows along the index."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cida.coordinates import SupportsFitIndex, WindowsLayer, windows
from cida.networks import TabularEncoder
from cida.spaces import Line, Periodic, Product

quick = settings(deadline=None, max_examples=15)


def drawn(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def fitted(x, index, present=None):
    layer = WindowsLayer(x.shape[1], index.shape[1])
    assert layer.fit(x.float(), index, present) is layer
    return layer


def window_rows(count):
    """A sixteenth of the rows, at least 200 and at most 1,000 and a quarter of them."""
    return max(2, min(count // 4, 1000, max(200, count // 16)))


def moments_by_hand(x, index, place, present):
    """Mean and spread of the nearest rows to one place, a column at a time."""
    near = np.argsort(np.linalg.norm(index - place, axis=1), kind="stable")[: window_rows(len(x))]
    mean, spread = np.empty(x.shape[1]), np.empty(x.shape[1])
    for column in range(x.shape[1]):
        every = x[present[:, column], column]
        mine = x[near, column][present[near, column]]
        chosen = mine if len(mine) >= 2 else every
        floor = 0.05 * every.std() if every.std() > 0 else 1.0
        mean[column], spread[column] = chosen.mean(), max(chosen.std(), floor)
    return mean, spread


def mixed_by_hand(layer, x, index):
    """The formula of the class, a row at a time."""
    places, mean, spread = (t.double().numpy() for t in (layer.places, layer.mean, layer.spread))
    found = np.empty(x.shape)
    for row in range(len(x)):
        distance = np.linalg.norm(places - index[row], axis=1)
        near = np.argsort(distance, kind="stable")[:8]
        reach, d = max(distance[near[-1]], 1e-6), np.maximum(distance[near], 1e-6)
        share = (1 / d - 1 / reach).clip(min=0) ** 2 + 1e-12
        share /= share.sum()
        found[row] = (x[row] - share @ mean[near]) / (share @ spread[near])
    return found.clip(-8, 8)


@quick
@given(
    st.integers(40, 3000), st.integers(1, 3), st.integers(1, 3), st.floats(0, 1), st.integers(0, 99)
)
def test_the_windows_are_those_of_a_plain_loop(rows, features, width, missing, seed):
    index = drawn(rows, width, seed=seed)
    x = drawn(rows, features, seed=seed + 1) * (1 + index[:, :1] ** 2) + 3 * index[:, :1]
    x = x.float().double()  # what the layer is given
    present = torch.rand(rows, features, generator=torch.Generator().manual_seed(seed)) >= missing
    present[:2] = True
    layer = fitted(x, index, present)
    along = index[index[:, 0].argsort(stable=True)].numpy()
    rank = np.linspace(0, rows - 1, min(rows, 1024)).round().astype(int)
    places = np.unique(along[rank], axis=0)
    np.testing.assert_allclose(layer.places.numpy()[: len(places)], places, atol=1e-6)
    assert (layer.places.numpy()[len(places) :] == windows.UNUSED_WINDOW_INDEX).all()
    for k in range(0, len(places), 101):
        mean, spread = moments_by_hand(x.numpy(), index.numpy(), places[k], present.numpy())
        np.testing.assert_allclose(layer.mean[k].numpy(), mean, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(layer.spread[k].numpy(), spread, rtol=1e-4, atol=1e-5)


def test_a_window_has_a_thousand_rows_at_most():
    u = torch.linspace(0, 1, 30_000, dtype=torch.float64)[:, None]
    layer = fitted((u * 30) % 1, u)  # a saw, one tooth in a thousand rows
    assert (layer.mean - 0.5).abs().max() < 2e-3


@pytest.mark.parametrize("width", [1, 2, 3])
def test_between_places_the_eight_nearest_are_mixed(width):
    index, x = drawn(2000, width), drawn(2000, 2, seed=1)
    layer = fitted(x + index[:, :1], index)
    new, there = drawn(60, 2, seed=2).float(), drawn(60, width, seed=3).float()
    expected = mixed_by_hand(layer, new.double().numpy(), there.double().numpy())
    np.testing.assert_allclose(layer(new, there).numpy(), expected, atol=1e-3)


@pytest.mark.parametrize(
    "path",
    [lambda u: 3 * u, lambda u: 2 * torch.sin(1.5 * u) + u**2 / 2],
    ids=["straight", "curved"],
)
@pytest.mark.parametrize(
    "scale",
    [lambda u: 2.2 + u, lambda u: 1.5 + 0.8 * torch.cos(2 * u)],
    ids=["straight spread", "curved spread"],
)
def test_a_drift_of_mean_and_spread_is_taken_out(path, scale):
    u = torch.linspace(-1.7, 1.7, 16_000, dtype=torch.float64)[:, None]
    x = path(u) + scale(u) * drawn(16_000, 1)
    found = fitted(x, u)(x.float(), u.float())
    first, *inner, last = found.split(1000)
    for part in inner:
        assert part.mean().item() == pytest.approx(0, abs=0.1)
        assert part.std().item() == pytest.approx(1, abs=0.1)
    for part in (first, last):  # here the rows of a window are on one side alone
        assert part.mean().item() == pytest.approx(0, abs=0.3)
        assert part.std().item() == pytest.approx(1, abs=0.2)


def test_the_drift_of_rows_that_were_not_fitted_is_taken_out_too():
    u = torch.linspace(-1.7, 1.7, 8000, dtype=torch.float64)[:, None]
    x = 5 * torch.sin(u) + torch.exp(u / 2) * drawn(8000, 1)
    found = fitted(x[::2], u[::2])(x[1::2].float(), u[1::2].float())
    for part in found.split(1000):
        assert part.mean().item() == pytest.approx(0, abs=0.12)
        assert part.std().item() == pytest.approx(1, abs=0.12)


def test_missing_values_do_not_count_whatever_stands_there():
    index, x = drawn(1500, 1), drawn(1500, 2, seed=1)
    present = torch.rand(1500, 2, generator=torch.Generator().manual_seed(2)) > 0.4
    one, other = (fitted(x.masked_fill(~present, value), index, present) for value in (0.0, 1e6))
    for name, value in one.state_dict().items():
        assert torch.equal(value, other.state_dict()[name])


def test_where_a_window_has_no_value_those_of_all_rows_are_taken():
    u = torch.linspace(-1, 1, 4000, dtype=torch.float64)[:, None]
    x = 10 + 2 * drawn(4000, 1)
    layer = fitted(x, u, u > 0)  # nothing was measured below 0
    known = x[u > 0].float().double()
    assert layer.mean[0].item() == pytest.approx(known.mean().item(), rel=1e-4)
    assert layer.spread[0].item() == pytest.approx(known.std(correction=0).item(), rel=1e-4)


def test_a_column_that_never_changes_becomes_zero_and_one_that_is_never_there_stays():
    index = drawn(500, 1)
    x = torch.cat([torch.full((500, 1), 7.0), drawn(500, 1, seed=1).float()], dim=1)
    present = torch.tensor([[True, False]]).expand(500, 2)
    found = fitted(x, index, present)(x, index.float())
    assert found[:, 0].abs().max() < 1e-5
    assert torch.allclose(found[:, 1], x[:, 1])


def test_where_a_column_hardly_varies_a_difference_is_not_blown_up():
    u = torch.linspace(-1, 1, 4000, dtype=torch.float64)[:, None]
    x = drawn(4000, 1) * torch.where(u > 0, 1.0, 1e-9)
    layer = fitted(x, u)
    assert layer.spread.min().item() == pytest.approx(0.05 * x.std(correction=0).item(), rel=1e-3)


def test_no_value_is_larger_than_eight():
    index = drawn(300, 1)
    layer = fitted(drawn(300, 1, seed=1), index)
    far = torch.tensor([[1e30], [-1e30], [0.0]])
    assert layer(far, index[:3].float())[:2].flatten().tolist() == [8, -8]


@pytest.mark.parametrize("rows", [2, 3, 7, 30, 200])
def test_fewer_rows_than_places_are_enough(rows):
    index, x = drawn(rows, 1), drawn(rows, 2, seed=1)
    layer = fitted(x, index)
    known = set(layer.places.flatten().tolist()) - {windows.UNUSED_WINDOW_INDEX}
    assert known == set(index.float().flatten().tolist())
    found = layer(x.float(), index.float())
    assert torch.isfinite(found).all()
    expected = mixed_by_hand(layer, x.float().double().numpy(), index.float().double().numpy())
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-3)


def test_at_an_index_that_many_rows_share_it_is_their_own_mean_and_spread():
    u = torch.arange(5, dtype=torch.float64).repeat_interleave(400)[:, None]
    x = 10 * u + (1 + u) * drawn(2000, 1)
    found = fitted(x, u)(x.float(), u.float()).double()
    for age in range(5):  # 200 of 400 rows with the same index make the window
        mine = found[u[:, 0] == age]
        assert mine.mean().item() == pytest.approx(0, abs=0.25)
        assert mine.std().item() == pytest.approx(1, abs=0.2)


def test_one_index_for_all_rows_is_a_plain_standardisation_by_some_of_them():
    x = 5 + 2 * drawn(800, 1)
    found = fitted(x, torch.zeros(800, 1, dtype=torch.float64))(x.float(), torch.zeros(800, 1))
    assert found.mean().item() == pytest.approx(0, abs=0.2)
    assert found.std().item() == pytest.approx(1, abs=0.2)


def test_an_index_of_two_numbers_is_followed_in_both():
    generator = torch.Generator().manual_seed(0)
    u = torch.rand(16_000, 2, generator=generator, dtype=torch.float64) * 3 - 1.5
    x = 4 * torch.sin(u[:, :1]) - 3 * u[:, 1:] + drawn(16_000, 1)
    found = fitted(x, u)(x.float(), u.float())[:, 0]
    for corner in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
        near = (u - torch.tensor(corner)).norm(dim=1) < 0.4
        assert found[near].mean().item() == pytest.approx(0, abs=0.25)
        assert found[near].std().item() == pytest.approx(1, abs=0.25)


def test_on_a_circle_midnight_is_no_edge():
    space = Periodic(24)
    u = torch.rand(4000, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 24
    x = 3 * torch.cos(u / 24 * 2 * torch.pi + 1) + drawn(4000, 1)
    layer = fitted(x, space.embed(u))
    sides = space.embed(torch.tensor([[24 - 1e-4], [24.0], [0.0], [1e-4]]).double()).float()
    there = layer(torch.zeros(4, 1), sides).flatten()
    assert (there - there[0]).abs().max() < 5e-3
    found = layer(x.float(), space.embed(u).float())[:, 0]
    for near in (u[:, 0] < 1, u[:, 0] > 23, (u[:, 0] - 12).abs() < 1):
        assert found[near].mean().item() == pytest.approx(0, abs=0.25)


@pytest.mark.parametrize(
    "space", [Line(), Periodic(3), Product([Line(), Periodic(3)])], ids=lambda s: type(s).__name__
)
def test_there_is_no_jump_along_the_index(space):
    generator = torch.Generator().manual_seed(0)
    u = torch.rand(5000, space.width, generator=generator, dtype=torch.float64) * 3 - 1.5
    space = space.fit(u)
    index = space.embed(u)
    layer = fitted(4 * torch.sin(2 * index[:, :1]) + drawn(5000, 1), index)
    steps = []
    for fineness in (2001, 20_001):  # halfway through the rows, where all is dense
        along = torch.linspace(-1, 1, fineness, dtype=torch.float64)[:, None]
        path = space.embed(along.expand(-1, space.width)).float()
        steps.append(layer(torch.zeros(fineness, 1), path).diff(dim=0).abs().max().item())
    assert steps[0] < 0.2
    assert steps[1] < 0.3 * steps[0]  # a jump would stay as large as it was


@pytest.mark.parametrize("rows", [100, 5000])
def test_there_is_no_jump_between_indices_that_many_rows_share(rows):
    ages = torch.arange(8, 81, dtype=torch.float64)
    u = ages[torch.randint(len(ages), (rows,), generator=torch.Generator().manual_seed(0))]
    index = Line().fit(u[:, None]).embed(u[:, None])
    layer = fitted(5 * index + 0.1 * drawn(rows, 1), index)
    steps = []
    for fineness in (2001, 20_001):
        path = torch.linspace(-1, 1, fineness)[:, None]
        steps.append(layer(torch.zeros(fineness, 1), path).diff(dim=0).abs().max().item())
    assert steps[1] < 0.3 * steps[0]


def test_values_that_are_not_there_may_be_nan():
    x, index = drawn(300, 1), drawn(300, 1, seed=1)
    present = torch.rand(300, 1, generator=torch.Generator().manual_seed(2)) > 0.3
    layer = fitted(x.masked_fill(~present, float("nan")), index, present)
    assert torch.equal(layer.mean, fitted(x, index, present).mean)


@pytest.mark.parametrize("away", [0.01, 1.0, 50.0, 1e4])
def test_beyond_the_range_it_is_that_of_the_edge(away):
    u = torch.linspace(-1, 1, 5000, dtype=torch.float64)[:, None]
    layer = fitted(4 * u + (2 + u) * drawn(5000, 1), u)
    ends = torch.tensor([[-1.0], [1.0]])
    edge = layer(torch.zeros(2, 1), ends)
    assert torch.allclose(layer(torch.zeros(2, 1), ends * (1 + away)), edge, atol=0.02)


def test_a_row_has_its_own_index_alone():
    index, x = drawn(500, 2), drawn(500, 3, seed=1)
    layer = fitted(x, index)
    together = layer(x.float(), index.float())
    for row in range(0, 500, 50):
        alone = layer(x[row : row + 1].float(), index[row : row + 1].float())
        assert torch.allclose(alone[0], together[row], atol=1e-3)


def test_the_order_of_the_rows_does_not_matter():
    index, x = drawn(700, 2), drawn(700, 1, seed=1)
    order = torch.randperm(700, generator=torch.Generator().manual_seed(2))
    one, other = fitted(x, index), fitted(x[order], index[order])
    for name, value in one.state_dict().items():
        assert torch.allclose(value, other.state_dict()[name], atol=1e-6)


def test_very_many_rows_are_thinned_from_everywhere(monkeypatch):
    u = torch.linspace(-1, 1, 40_000, dtype=torch.float64)[:, None]
    x = 5 * u + drawn(40_000, 1)
    monkeypatch.setattr(windows, "MAX_WINDOW_FIT_ROWS", 5000)
    layer = fitted(x, u)
    assert (layer.places[0].item(), layer.places[-1].item()) == (-1, 1)
    found = layer(x[::8].float(), u[::8].float())
    for part in found.split(1000):
        assert part.mean().item() == pytest.approx(0, abs=0.12)


def test_before_any_fit_it_is_the_identity():
    x = drawn(20, 3).float()
    assert torch.allclose(WindowsLayer(3, 2)(x, drawn(20, 2, seed=1).float()), x)


def test_a_saved_layer_comes_back_bit_for_bit():
    index, x = drawn(400, 2), drawn(400, 3, seed=1)
    layer, again = fitted(x, index), WindowsLayer(3, 2)
    again.load_state_dict(layer.state_dict())
    assert torch.equal(again(x.float(), index.float()), layer(x.float(), index.float()))
    assert set(layer.state_dict()) == {"places", "mean", "spread"}
    assert not list(layer.parameters())


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_the_index_may_be_in_double_precision(kind):
    index, x = drawn(300, 1).float(), drawn(300, 1, seed=1).float()
    layer = WindowsLayer(1, 1).fit(x, index.to(kind))
    assert {tensor.dtype for tensor in layer.state_dict().values()} == {torch.float32}
    assert layer(x, index).dtype == torch.float32


def test_an_encoder_with_windows_follows_the_index():
    assert isinstance(TabularEncoder(2), SupportsFitIndex)
    assert not isinstance(WindowsLayer(2, 1), SupportsFitIndex)
