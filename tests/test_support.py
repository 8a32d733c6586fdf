"""How much is left of the index, and where the target lies."""

import numpy as np
import pytest
import torch

from cida.metrics import index_r2
from cida.spaces import Line, Periodic, Product
from cida.support import measure_target_support


def column(values):
    return torch.as_tensor(values, dtype=torch.float64)[:, None]


def test_the_share_is_that_of_a_known_linear_world():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(20_000, 1))
    x = u + rng.normal(size=u.shape)  # the best line explains half of the variance
    assert index_r2(x, u) == pytest.approx(0.5, abs=0.02)
    assert index_r2(7 + 1000 * u, u) == pytest.approx(1, abs=1e-3)
    assert index_r2(rng.normal(size=u.shape), u) == pytest.approx(0, abs=1e-3)


def test_noise_that_is_fitted_is_not_counted():
    rng = np.random.default_rng(0)
    u, noise = rng.normal(size=(200, 1)), rng.normal(size=(200, 90))
    assert index_r2(noise, u) < 0.1  # on the rows fitted on it is nearly 1


def test_columns_that_never_change_explain_nothing():
    u = np.random.default_rng(0).normal(size=(100, 2))
    assert index_r2(np.ones((100, 3)), u) == 0


def test_on_a_line_the_support_is_an_interval():
    source, target = column([18, 30, 52]), column([20, 50, 53, 94])
    space = Line().fit(torch.cat([source, target]))
    support = measure_target_support(space, target, source)
    assert support.share_outside == 0.5
    assert support.max_distance == pytest.approx(42)


def test_on_a_circle_the_support_is_an_arc_through_midnight():
    source = column([22.0, 23.0, 0.0, 1.0, 2.0])
    target = column([23.5, 1.5, 3.0, 12.0, 21.0])
    support = measure_target_support(Periodic(24), target, source)
    assert support.share_outside == pytest.approx(3 / 5)
    assert support.max_distance == pytest.approx(10)


def test_of_several_lines_the_support_is_the_hull():
    corners = torch.tensor([[0.0, 0], [1, 0], [0, 1]], dtype=torch.float64)
    inside = torch.rand(5000, 3, dtype=torch.float64)
    source = torch.cat([corners, (inside / inside.sum(1, keepdim=True)) @ corners])
    target = torch.tensor([[0.2, 0.2], [0.6, 0.6], [0.9, 0.9], [0.3, 0.6]], dtype=torch.float64)
    space = Product([Line(), Line()])
    support = measure_target_support(space, target, source)
    assert support.share_outside == 0.5
    nearest = np.sqrt(((target.numpy()[:, None] - source.numpy()) ** 2).sum(-1)).min(1)
    assert support.max_distance == pytest.approx(nearest.max())


def test_sources_on_one_line_and_a_circle_beside_it():
    source = torch.tensor([[0.0, 0, 1], [1, 1, 2], [2, 2, 3]], dtype=torch.float64)
    target = torch.tensor([[1.5, 1.5, 2], [1.5, 1.0, 2], [1.5, 1.5, 12]], dtype=torch.float64)
    space = Product([Line(), Line(), Periodic(24)])
    assert measure_target_support(space, target, source).share_outside == pytest.approx(2 / 3)
