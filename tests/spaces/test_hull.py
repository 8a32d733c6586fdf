"""Interpolation or extrapolation: `outside_hull` against intervals and triangulations."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import Delaunay

from cida.spaces import Line, Periodic, Product, is_outside_hull, make_line_space

quick = settings(deadline=None, max_examples=20)
seeds = st.integers(0, 10**6)
values = st.integers(-1000, 1000).map(lambda v: v / 8)


def column(numbers):
    return torch.tensor(numbers, dtype=torch.float64)[:, None]


def drawn(rows, width, seed):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(rows, width)))


@quick
@given(
    st.lists(values, min_size=1, max_size=12),
    st.lists(values, min_size=1, max_size=12),
    st.sampled_from([Line(), Line(3.0, 7.0), Line(-100.0, 0.01)]),
)
def test_on_a_line_the_hull_is_an_interval_with_its_ends(asked, reference, space):
    asked += [min(reference), max(reference)]
    found = is_outside_hull(space, column(asked), column(reference))
    assert found.dtype == torch.bool
    low, high = min(reference), max(reference)
    assert found.tolist() == [not low <= value <= high for value in asked]


def test_ages_between_two_ranges_are_interpolation():
    source = column([*range(44, 53), *range(76, 91)])
    target = column([43.0, 53.0, 60.0, 75.0, 91.0])
    space = Line().fit(torch.cat([source, target]))
    assert is_outside_hull(space, target, source).tolist() == [True, False, False, False, True]


@pytest.mark.parametrize("width", [2, 3])
@settings(deadline=None, max_examples=10)
@given(seed=seeds)
def test_in_two_and_three_dimensions_it_agrees_with_a_triangulation(width, seed):
    reference, asked = drawn(14, width, seed), 1.2 * drawn(30, width, seed + 1)
    simplices = Delaunay(reference.numpy())
    centre = reference.numpy().mean(0)

    def beyond(stretch):
        return simplices.find_simplex(centre + stretch * (asked.numpy() - centre)) < 0

    clear = beyond(1 - 1e-6) == beyond(1 + 1e-6)  # not on the boundary
    found = is_outside_hull(make_line_space(width), asked, reference).numpy()
    assert clear.sum() > 25
    assert np.array_equal(found[clear], beyond(1)[clear])


def test_inside_the_box_is_not_inside_the_hull():
    triangle = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    asked = torch.tensor([[0.9, 0.9], [0.4, 0.4], [0.6, 0.6], [0.0, 0.5], [1.0, 1.0]])
    found = is_outside_hull(make_line_space(2), asked, triangle)
    assert found.tolist() == [True, False, True, False, True]


@quick
@given(seeds, st.integers(1, 11), st.integers(2, 12))
def test_mixtures_are_inside(seed, width, more):
    random = np.random.default_rng(seed)
    reference = drawn(width + more, width, seed).numpy() * random.uniform(0.1, 100, width)
    weights = random.dirichlet(np.ones(len(reference)), size=4)
    # A little towards the mean, so that no mixture is on the boundary.
    mixtures = 0.99 * weights @ reference + 0.01 * reference.mean(0)
    space = make_line_space(width).fit(torch.from_numpy(reference))
    asked = torch.from_numpy(mixtures)
    assert not is_outside_hull(space, asked, torch.from_numpy(reference)).any()


@quick
@given(seeds, st.integers(1, 11), st.integers(1, 12))
def test_reference_rows_are_inside(seed, width, rows):
    reference = drawn(rows, width, seed)
    space = make_line_space(width).fit(reference)
    assert not is_outside_hull(space, reference, reference).any()


@quick
@given(seeds, st.integers(1, 11), st.integers(1, 20), st.booleans())
def test_beyond_the_box_is_outside(seed, width, rows, above):
    random = np.random.default_rng(seed)
    reference = drawn(rows, width, seed)
    asked = reference[random.integers(rows, size=width)].clone()
    edge = reference.max(0).values if above else reference.min(0).values
    step = 1e-3 if above else -1e-3
    asked += torch.diag(edge + step - asked.diagonal())  # row j is beyond in column j alone
    assert is_outside_hull(make_line_space(width), asked, reference).all()


@quick
@given(seeds, st.integers(2, 4))
def test_units_do_not_matter(seed, width):
    random = np.random.default_rng(seed)
    reference, asked = drawn(12, width, seed), drawn(10, width, seed + 1)
    units = torch.from_numpy(10 ** random.uniform(-3, 3, width))
    plain = is_outside_hull(make_line_space(width), asked, reference)
    other = make_line_space(width).fit(reference * units)
    assert torch.equal(plain, is_outside_hull(other, asked * units, reference * units))


@quick
@given(seeds)
def test_order_and_duplicates_do_not_matter(seed):
    random = np.random.default_rng(seed)
    reference, asked = drawn(8, 2, seed), drawn(6, 2, seed + 1)
    once = is_outside_hull(make_line_space(2), asked, reference)
    rows = torch.from_numpy(random.integers(6, size=15))
    again = torch.cat([reference.flip(0), reference[:3], reference[:3]])
    assert torch.equal(is_outside_hull(make_line_space(2), asked[rows], again), once[rows])


@quick
@given(seeds)
def test_more_source_leaves_no_more_outside(seed):
    reference, asked = drawn(12, 3, seed), drawn(10, 3, seed + 1)
    few, many = (is_outside_hull(make_line_space(3), asked, reference[:rows]) for rows in (6, 12))
    assert (many <= few).all()


def test_the_hull_of_one_row_is_that_row():
    reference = torch.tensor([[60.0, 2.0]])
    asked = torch.tensor([[60.0, 2.0], [60.0, 1.0], [61.0, 2.0]])
    space = make_line_space(2).fit(torch.cat([asked, reference]))
    assert is_outside_hull(space, asked, reference).tolist() == [False, True, True]
    assert is_outside_hull(space, asked, reference.expand(5, 2)).tolist() == [False, True, True]


def test_a_column_that_never_changes_in_the_source_leaves_others_outside():
    women = torch.tensor([[60.0, 2.0], [80.0, 2.0]])
    asked = torch.tensor([[70.0, 2.0], [70.0, 1.0], [90.0, 2.0]])
    space = make_line_space(2).fit(torch.cat([women, asked]))
    assert is_outside_hull(space, asked, women).tolist() == [False, True, True]


def test_a_circle_has_no_hull():
    u = torch.tensor([[0.0], [90.0]])
    with pytest.raises(ValueError, match=r"column that wraps \(Periodic.* leave the column out"):
        is_outside_hull(Periodic(360.0), u, u)
    both = torch.cat([u, u], dim=1)
    with pytest.raises(ValueError, match="a circle has no convex hull"):
        is_outside_hull(Product([Line(), Periodic(24.0)]), both, both)
