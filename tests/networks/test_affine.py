"""A scale and a shift that follow the index."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cida.networks import IndexAffine
from cida.training import seeded

quick = settings(deadline=None, max_examples=30)


def some_affine(features=4, index_width=2, seed=0):
    """With weights that are not those of its start, in double precision."""
    with seeded(seed):
        affine = IndexAffine(features, index_width).double()
        torch.nn.init.normal_(affine.linear.weight)
    return affine


def drawn(*shape, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_the_formula_by_hand():
    affine = IndexAffine(2, 1)
    with torch.no_grad():  # A = (2, -1), B = (10, 20)
        affine.linear.weight.copy_(torch.tensor([[2.0], [-1.0], [10.0], [20.0]]))
    features = torch.tensor([[1.0, 3.0], [1.0, 3.0]])
    found = affine(features, torch.tensor([[0.5], [-1.0]]))
    # u = 0.5: (1 + 1) * 1 + 5 and (1 - 0.5) * 3 + 10; u = -1: (1 - 2) * 1 - 10 and 2 * 3 - 20.
    assert torch.equal(found, torch.tensor([[7.0, 11.5], [-11.0, -14.0]]))


@quick
@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 5), st.integers(0, 1000))
def test_the_formula(features, index_width, rows, seed):
    affine = some_affine(features, index_width, seed)
    h, e = drawn(rows, features, seed=seed), drawn(rows, index_width, seed=seed + 1)
    scale, shift = affine.linear.weight[:features], affine.linear.weight[features:]
    assert torch.allclose(affine(h, e), (1 + e @ scale.T) * h + e @ shift.T)


@quick
@given(st.integers(1, 6), st.integers(1, 4))
def test_it_begins_as_the_identity(features, index_width):
    affine = IndexAffine(features, index_width)
    h = torch.randn(5, features)
    assert torch.equal(affine(h, 100 * torch.randn(5, index_width)), h)


def test_at_index_zero_it_stays_the_identity():
    h = drawn(5, 4)
    assert torch.equal(some_affine()(h, torch.zeros(5, 2, dtype=torch.float64)), h)


@quick
@given(st.floats(-10, 10), st.floats(-10, 10))
def test_its_change_is_linear_in_u(one, other):
    affine, h = some_affine(), drawn(5, 4)
    u, v = drawn(5, 2, seed=2), drawn(5, 2, seed=3)

    def change(index):
        return affine(h, index) - h

    mixed = one * change(u) + other * change(v)
    assert torch.allclose(change(one * u + other * v), mixed, atol=1e-9)


def test_a_row_has_its_own_index_alone():
    affine, h, e = some_affine(), drawn(5, 4), drawn(5, 2, seed=2)
    together = affine(h, e)
    for row in range(5):
        assert torch.allclose(together[row], affine(h[row : row + 1], e[row : row + 1])[0])


def test_its_first_gradient_tells_scale_and_shift_apart():
    affine, h, e = IndexAffine(4, 2).double(), drawn(5, 4), drawn(5, 2, seed=2)
    affine(h, e).sum().backward()
    gradient = affine.linear.weight.grad
    assert torch.allclose(gradient[:4], h.T @ e)
    assert torch.allclose(gradient[4:], e.sum(0).expand(4, 2))
