"""Spaces: embedding, distance, means and cells, by closed forms."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from cida.spaces import Line, Periodic, Product, make_line_space, space_from_dict

quick = settings(deadline=None, max_examples=50)

values = st.floats(-1e4, 1e4, allow_nan=False).map(lambda v: round(v, 6))
lines = st.builds(Line, centre=st.floats(-1e3, 1e3), scale=st.floats(1e-2, 1e3))
periodics = st.builds(Periodic, period=st.floats(0.5, 1e3))
flat = st.one_of(lines, periodics)
products = st.lists(flat, min_size=1, max_size=3).map(Product)
nested = st.lists(st.one_of(flat, products), min_size=1, max_size=2).map(Product)
spaces = st.one_of(lines, periodics, products, nested)


@st.composite
def space_and_rows(draw, least=1, most=8):
    space = draw(spaces)
    count = draw(st.integers(least, most))
    row = st.lists(values, min_size=space.width, max_size=space.width)
    rows = draw(st.lists(row, min_size=count, max_size=count))
    return space, torch.tensor(rows, dtype=torch.float64)


def periods_of(space):
    if isinstance(space, Product):
        return [period for part in space.parts for period in periods_of(part)]
    return [space.period if isinstance(space, Periodic) else 0.0]


def rows_of(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)[:, None]


@quick
@given(space_and_rows())
def test_unembed_inverts_embed_up_to_whole_periods(case):
    space, u = case
    embedding = space.embed(u)
    assert embedding.shape == (len(u), space.embedding_width)
    back = space.unembed(embedding)
    assert back.shape == u.shape
    for column, period in enumerate(periods_of(space)):
        gap = back[:, column] - u[:, column]
        if period:
            assert (back[:, column] >= 0).all()
            assert (back[:, column] <= period).all()
            gap = gap - period * torch.round(gap / period)
        assert gap.abs().max() < 1e-8


@quick
@given(space_and_rows())
def test_embed_keeps_the_dtype_of_u(case):
    space, u = case
    assert space.embed(u).dtype == torch.float64
    assert space.embed(u.float()).dtype == torch.float32


@quick
@given(space_and_rows(least=3, most=6))
def test_distance_is_a_metric(case):
    space, u = case
    d = space.distance(u, u)
    slack = 1e-9 * (1 + float(d.max()))
    assert (d >= 0).all()
    assert d.diagonal().abs().max() == 0
    assert torch.allclose(d, d.T, rtol=0, atol=slack)
    detour = (d[:, :, None] + d[None, :, :]).amin(1)
    assert (d <= detour + slack).all()


@quick
@given(space_and_rows(least=2, most=5))
def test_distance_is_zero_only_where_the_embeddings_agree(case):
    space, u = case
    embedding = space.embed(u)
    apart = (embedding[:, None] - embedding[None]).abs().amax(-1)
    d = space.distance(u, u)
    # An arc is at least as long as its chord.
    assert (d >= apart - 1e-9 * (1 + apart)).all()
    assert (apart[d < 1e-12] < 1e-9).all()


def test_distance_wraps_on_a_periodic_index():
    d = Periodic(360.0).distance(rows_of(350.0), rows_of(10.0, 170.0, 350.0 - 360.0))
    assert torch.allclose(d, torch.tensor([[math.pi / 9, math.pi, 0.0]]).double(), atol=1e-12)


def test_distance_does_not_wrap_on_a_line():
    assert Line(5.0, 2.0).distance(rows_of(350.0), rows_of(10.0)).item() == 170.0


def test_distance_on_a_product_is_euclidean_over_its_parts():
    space = Product([Line(0.0, 2.0), Periodic(24.0)])
    a = torch.tensor([[6.0, 23.0]]).double()
    b = torch.tensor([[0.0, 1.0]]).double()
    assert space.distance(a, b).item() == pytest.approx(math.hypot(3.0, math.pi / 6))


@quick
@given(space_and_rows(least=2), st.lists(st.integers(-1000, 1000), min_size=6, max_size=6))
def test_whole_periods_change_no_distance(case, turns):
    space, u = case
    periods = periods_of(space)
    shift = torch.tensor([p * k for p, k in zip(periods, turns, strict=False)], dtype=torch.float64)
    before = space.distance(u, u)
    after = space.distance(u + shift, u)
    assert torch.allclose(after, before, rtol=0, atol=1e-7 * (1 + float(before.max())))


@quick
@given(space_and_rows(least=2, most=8), st.integers(1, 7))
def test_distance_to_set_is_the_least_distance_to_its_rows(case, cut):
    space, u = case
    cut = min(cut, len(u) - 1)
    brute = space.distance(u, u[:cut]).amin(1)
    fast = space.distance_to_set(u, u[:cut])
    assert fast.dtype == torch.float64
    assert torch.allclose(fast, brute, rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("width", [1, 2])
def test_very_many_equal_rows_are_as_near_as_one(width):
    few = torch.tensor([[1.0, 4.0], [2.0, -1.0], [7.0, 0.5]]).double()[:, :width]
    space = make_line_space(width).fit(few)
    u = few.repeat(100_000, 1) + 0.25  # a minute and more, if each row were in the tree
    brute = space.distance(u[:3], few).amin(1)
    assert torch.equal(space.distance_to_set(u, few.repeat(50_000, 1)), brute.repeat(100_000))


@quick
@given(st.lists(values, min_size=2, max_size=30), st.sampled_from([1e-6, 1.0, 1e6, 1e290]))
def test_fit_gives_a_line_mean_zero_and_variance_one(numbers, unit):
    u = rows_of(*numbers)
    assume(float(u.std(correction=0)) > 1e-3)
    original = Line()
    space = original.fit(u * unit)
    coordinates = space.metric_coordinates(u * unit)
    assert coordinates.mean().item() == pytest.approx(0, abs=1e-6)
    assert coordinates.var(correction=0).item() == pytest.approx(1, abs=1e-6)
    assert space.raw_units_per_distance == space.scale
    assert original == Line(0.0, 1.0)


@pytest.mark.parametrize(
    ("start", "step"), [(1.7e9, 3600.0), (1e300, 1e297), (-1e300, 2e298), (1e-300, 1e-302)]
)
def test_fit_copes_with_timestamps_and_extreme_magnitudes(start, step):
    u = start + step * torch.arange(101, dtype=torch.float64)[:, None] ** 1.5
    coordinates = Line().fit(u).metric_coordinates(u)
    assert coordinates.mean().item() == pytest.approx(0, abs=1e-9)
    assert coordinates.var(correction=0).item() == pytest.approx(1, abs=1e-9)


def test_fit_centres_a_constant_index_and_keeps_its_unit():
    assert Line().fit(rows_of(7.0, 7.0, 7.0)) == Line(7.0, 1.0)


def test_fit_scales_each_part_of_a_product_and_leaves_the_original_alone():
    u = torch.tensor([[1.0, 10.0, 5.0], [3.0, 50.0, 9.0]]).double()
    original = Product([Line(), Periodic(24.0), Line()])
    fitted = original.fit(u)
    assert fitted == Product([Line(2.0, 1.0), Periodic(24.0), Line(7.0, 2.0)])
    assert original == Product([Line(), Periodic(24.0), Line()])


@quick
@given(space_and_rows(least=1, most=12), st.integers(1, 6))
def test_bins_cover_every_row_within_their_bounds(case, count):
    space, u = case
    bins = space.make_bins(u, count)
    assert bins.cell_of_row.shape == (len(u),)
    assert bins.lower.shape == bins.upper.shape == (len(bins), space.width)
    assert ((bins.cell_of_row >= 0) & (bins.cell_of_row < len(bins))).all()
    lo, hi = bins.lower[bins.cell_of_row], bins.upper[bins.cell_of_row]
    if isinstance(space, Periodic):  # a cell may wrap: measure from its lower end
        beyond = torch.remainder(u - lo + 1e-9, space.period) - (hi - lo)
        assert (beyond <= 2e-9 * (1 + u.abs())).all()
    else:
        assert ((lo <= u) & (u <= hi)).all()
    if isinstance(space, Product):
        assert 1 <= len(bins) <= count
        assert set(bins.cell_of_row.tolist()) == set(range(len(bins)))
    else:
        assert len(bins) == count


@quick
@given(st.lists(values, min_size=1, max_size=40), st.integers(1, 8))
def test_bins_of_a_line_count_rows_as_numpy_does(numbers, count):
    u = rows_of(*numbers)
    assume(float(u.max() - u.min()) > 1e-3)
    bins = Line().make_bins(u, count)
    expected, edges = np.histogram(u.numpy(), bins=count)
    assert torch.allclose(bins.lower[:, 0], torch.from_numpy(edges[:-1]), rtol=1e-12, atol=1e-9)
    assert torch.allclose(bins.upper[:, 0], torch.from_numpy(edges[1:]), rtol=1e-12, atol=1e-9)
    # A row on an edge may fall on either side of it by rounding.
    assume(np.abs(u.numpy() - edges[1:-1]).min(initial=np.inf) > 1e-6)
    assert torch.bincount(bins.cell_of_row, minlength=count).tolist() == expected.tolist()


def test_bins_of_a_periodic_index_wrap():
    all_round = rows_of(0.0, 44.0, 45.0, 359.0, -1.0, 725.0, 100.0, 150.0, 200.0, 250.0, 300.0)
    bins = Periodic(360.0).make_bins(all_round, 8)
    assert bins.cell_of_row.tolist() == [0, 0, 1, 7, 7, 0, 2, 3, 4, 5, 6]
    assert bins.lower[:, 0].tolist() == [45.0 * i for i in range(8)]
    assert bins.upper[:, 0].tolist() == [45.0 * (i + 1) for i in range(8)]


def test_bins_of_a_product_put_each_clump_in_a_cell_of_its_own():
    random = np.random.default_rng(0)
    corners = np.array([[0, 0], [0, 10], [10, 0], [10, 10]], dtype=float)
    clump = np.repeat(np.arange(4), [5, 10, 20, 40])
    u = torch.from_numpy(corners[clump] + random.uniform(-1, 1, (75, 2)))
    bins = Product([Line(), Line()]).make_bins(u, 4)
    assert sorted(torch.bincount(bins.cell_of_row).tolist()) == [5, 10, 20, 40]
    for cell in range(4):
        members = u[bins.cell_of_row == cell]
        assert torch.equal(bins.lower[cell], members.amin(0))
        assert torch.equal(bins.upper[cell], members.amax(0))


def test_anchors_on_a_line_are_even_and_not_stretched_by_a_stray_value():
    u = torch.cat([torch.linspace(0, 1, 1001).double(), torch.tensor([1e6]).double()])[:, None]
    anchors = Line().make_anchors(u, 11)
    gaps = anchors[1:] - anchors[:-1]
    assert anchors.shape == (11, 1)
    assert torch.allclose(gaps, gaps[0].expand_as(gaps), rtol=1e-9)
    assert float(anchors.min()) == pytest.approx(0.0, abs=0.01)
    assert float(anchors.max()) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("count", [2, 7, 36])
def test_anchors_on_a_periodic_index_are_even_round_the_circle(count):
    space = Periodic(24.0)
    anchors = space.make_anchors(rows_of(*range(24)), count)
    d = space.distance(anchors, anchors)
    d.fill_diagonal_(torch.inf)
    assert anchors.shape == (count, 1)
    assert torch.allclose(d.amin(1), torch.full((count,), 2 * math.pi / count).double())
    following = space.distance(anchors, anchors.roll(-1, 0)).diagonal()
    assert torch.allclose(following, torch.full((count,), 2 * math.pi / count).double())


def test_anchors_and_bins_of_half_a_circle_cover_that_half_across_the_seam():
    space = Periodic(360.0)
    u = torch.remainder(torch.arange(-90.0, 91.0), 360)[:, None]
    anchors = space.make_anchors(u, 7)
    assert anchors[:, 0].tolist() == [270.0, 300.0, 330.0, 0.0, 30.0, 60.0, 90.0]
    bins = space.make_bins(torch.cat([u, u + 720]), 6)
    assert torch.bincount(bins.cell_of_row).tolist() == [60, 60, 60, 60, 60, 62]
    assert bins.lower[:, 0].tolist() == [270.0 + 30 * k for k in range(6)]
    assert bins.upper[-1].item() == 450.0


@pytest.mark.parametrize("seed", range(3))
def test_anchors_of_a_product_of_lines_are_as_good_as_scikit_learns_k_means(seed):
    random = np.random.default_rng(seed)
    u = np.concatenate([random.normal(size=(600, 2)), random.uniform(2, 5, (300, 2))])
    space = Product([Line(), Line()]).fit(torch.from_numpy(u))
    scaled = space.metric_coordinates(torch.from_numpy(u)).numpy()
    anchors = space.make_anchors(torch.from_numpy(u), 12)
    inertia = space.distance(torch.from_numpy(u), anchors).amin(1).square().sum().item()
    best = KMeans(12, n_init=4, random_state=0).fit(scaled).inertia_
    assert anchors.shape == (12, 2)
    assert inertia < 1.05 * best


def test_anchors_of_a_product_wrap_where_a_part_does():
    random = np.random.default_rng(0)
    hour = np.concatenate([random.normal(0, 0.3, 100), random.normal(12, 0.3, 100)]) % 24
    age = np.concatenate([random.normal(30, 0.1, 100), random.normal(60, 0.1, 100)])
    u = torch.from_numpy(np.stack([hour, age], axis=1))
    space = Product([Periodic(24.0), Line()]).fit(u)
    anchors = space.make_anchors(u, 2)
    truth = torch.tensor([[0.0, 30.0], [12.0, 60.0]]).double()
    # A mean that did not wrap would put the midnight clump at noon.
    assert space.distance(truth, anchors).amin(1).max() < 0.05
    assert ((anchors[:, 0] >= 0) & (anchors[:, 0] <= 24)).all()


def test_anchors_of_a_product_are_the_rows_where_these_are_few():
    u = torch.tensor([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]).double()
    anchors = Product([Line(), Line()]).make_anchors(u, 30)
    assert anchors.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_mean_follows_the_circle():
    assert Periodic(360.0).mean(rows_of(350.0, 20.0)).item() == pytest.approx(5.0)


@quick
@given(spaces)
def test_a_space_survives_json(space):
    assert space_from_dict(json.loads(json.dumps(space.to_dict()))) == space


def test_an_unknown_kind_of_space_is_refused_by_name():
    with pytest.raises(ValueError, match="'torus' is unknown; known are line, periodic"):
        space_from_dict({"kind": "torus"})


@pytest.mark.parametrize("period", [0.0, -24.0, math.inf, math.nan])
def test_a_period_must_be_a_positive_number(period):
    with pytest.raises(ValueError, match=r"period must be a positive number.*use 360 for degrees"):
        Periodic(period)


def test_a_product_needs_parts():
    with pytest.raises(ValueError, match="parts is empty; give Product one space for each column"):
        Product([])


def test_line_space_is_a_line_or_a_product_of_lines():
    assert make_line_space(1) == Line()
    assert make_line_space(3) == Product([Line(), Line(), Line()])
