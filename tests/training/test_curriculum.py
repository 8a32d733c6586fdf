"""The curriculum: rows join by their distance from the source."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from cida.data import IndexedDataset
from cida.spaces import Line, Periodic, Product
from cida.training import Curriculum, Sampler


def column(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)[:, None]


def curriculum_over(space, u, source, steps=100, share=0.5, stages=4):
    return Curriculum(space.distance_to_set(u, source), steps, share, stages)


def test_on_a_line_rows_join_in_the_order_of_their_distance_from_the_source():
    u = column(0, 1, 2, 3, 4, 5, 6, 7, 8)
    curriculum = curriculum_over(Line(), u, column(0, -1))
    active = [curriculum.active_rows(stage).tolist() for stage in range(4)]
    assert active == [[0, 1, 2], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5, 6], list(range(9))]


def test_on_a_line_rows_join_from_both_sides_of_a_source_in_the_middle():
    u = column(-4, -2, 0, 1, 4)
    curriculum = curriculum_over(Line(), u, column(0), stages=2)
    assert curriculum.active_rows(0).tolist() == [1, 2, 3]
    assert curriculum.active_rows(1).tolist() == [0, 1, 2, 3, 4]


def test_on_a_circle_rows_join_from_both_sides():
    u = column(*range(0, 360, 10))
    source = column(0, 10, 20, 30, 40)
    curriculum = curriculum_over(Periodic(360.0), u, source, stages=4)
    # The farthest target is 160 degrees from the source, so each stage reaches 40 further.
    degrees = [sorted(10 * i for i in curriculum.active_rows(s).tolist()) for s in range(4)]
    assert degrees[0] == [*range(0, 90, 10), *range(320, 360, 10)]
    assert degrees[1] == [*range(0, 130, 10), *range(280, 360, 10)]
    assert degrees[3] == list(range(0, 360, 10))


def test_in_a_product_rows_join_by_the_distance_over_all_columns():
    u = torch.tensor([[0, 0], [0, 23], [3, 4], [6, 12], [8, 0]], dtype=torch.float64)
    space = Product([Line(0.0, 2.0), Periodic(24.0)])
    distance = space.distance_to_set(u, u[:1])
    expected = [0, np.pi / 12, np.hypot(1.5, np.pi / 3), np.hypot(3, np.pi), 4]
    assert distance.tolist() == pytest.approx(expected)
    curriculum = Curriculum(distance, 100, 0.5, n_stages=2)
    assert curriculum.active_rows(0).tolist() == [0, 1, 2]


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=20),
    st.integers(1, 300),
    st.floats(0, 1),
    st.integers(1, 30),
)
@example([1.0], 10, 1.0, 20)  # fewer steps than stages, and no step left after the last stage
@example([1.0], 1, 1.0, 20)
def test_rows_only_ever_join_and_all_of_them_are_active_at_the_end(distances, steps, share, stages):
    distance = torch.tensor([0.0, *distances], dtype=torch.float64)
    curriculum = Curriculum(distance, steps, share, stages)
    reached = [curriculum.stage_at(step) for step in range(steps)]
    assert reached == sorted(reached)
    assert 0 in curriculum.active_rows(reached[0])
    last = -1
    for stage in sorted(set(reached)):
        active = curriculum.active_rows(stage)
        outside = torch.ones(len(distance), dtype=torch.bool)
        outside[active] = False
        if outside.any():
            assert distance[outside].min() > distance[active].max()
        assert len(active) >= last
        last = len(active)
    assert last == len(distance)


def test_stages_are_equally_long_and_end_after_the_share_of_the_steps():
    curriculum = Curriculum(column(0, 1)[:, 0], steps=1000, share=0.6, n_stages=20)
    stages = [curriculum.stage_at(step) for step in range(1000)]
    counts = np.bincount(stages)
    assert counts[:19].tolist() == [30] * 19
    assert stages.index(19) == 570
    assert counts[19] == 430


def test_a_share_of_zero_makes_all_rows_active_at_once():
    curriculum = Curriculum(column(0, 5, 9)[:, 0], steps=50, share=0.0, n_stages=20)
    assert {curriculum.stage_at(step) for step in range(50)} == {0}
    assert curriculum.active_rows(0).tolist() == [0, 1, 2]


def crowded_rows():
    """Nine tenths of the rows in the first fifth of the index."""
    u = torch.cat([torch.linspace(0, 0.19, 900), torch.linspace(0.21, 1, 100)]).double()
    labelled = torch.arange(1000) < 50
    return IndexedDataset(torch.zeros(1000, 1), torch.zeros(1000), u, labelled)


def sampler_over(rows, bins, seed=0):
    return Sampler(rows, Line(), bins, torch.Generator().manual_seed(seed))


def test_balanced_draws_visit_every_cell_along_u_equally_often():
    rows = crowded_rows()
    drawn = sampler_over(rows, 5).draw_pooled(20_000)
    cells = Line().make_bins(rows.u, 5).cell_of_row[drawn]
    assert chisquare(torch.bincount(cells, minlength=5).numpy()).pvalue > 1e-3


def test_without_balance_every_row_is_drawn_equally_often():
    drawn = sampler_over(crowded_rows(), 1).draw_pooled(50_000)
    assert chisquare(torch.bincount(drawn, minlength=1000).numpy()).pvalue > 1e-3


@pytest.mark.parametrize("bins", [1, 5, 30])
def test_weights_are_the_probabilities_that_rows_are_drawn_with(bins):
    rows = crowded_rows()
    sampler = sampler_over(rows, bins)
    sampler.set_active_rows(torch.arange(100, 960, 2))
    assert sampler.row_weights.sum().item() == pytest.approx(1.0)
    count = 200_000
    seen = torch.bincount(sampler.draw_pooled(count), minlength=1000)
    expected = torch.zeros(1000, dtype=torch.float64)
    expected[sampler.active_rows] = count * sampler.row_weights
    assert seen[expected == 0].sum() == 0
    reached = expected > 0
    assert chisquare(seen[reached].numpy(), expected[reached].numpy()).pvalue > 1e-3


def test_only_active_rows_are_drawn_and_empty_cells_do_not_count():
    rows = crowded_rows()
    sampler = sampler_over(rows, 5)
    sampler.set_active_rows(torch.tensor([3, 950, 7]))
    assert sorted(sampler.active_rows.tolist()) == [3, 7, 950]
    assert dict(zip(sampler.active_rows.tolist(), sampler.row_weights.tolist(), strict=True)) == {
        3: 0.25,
        7: 0.25,
        950: 0.5,
    }
    assert set(sampler.draw_pooled(200).tolist()) == {3, 7, 950}


def test_source_rows_are_drawn_uniformly_from_the_labelled_ones():
    drawn = sampler_over(crowded_rows(), 5)
    seen = torch.cat([drawn.draw_source(40) for _ in range(500)])
    assert int(seen.max()) < 50
    assert chisquare(torch.bincount(seen, minlength=50).numpy()).pvalue > 1e-3


@pytest.mark.parametrize("count", [50, 64])
def test_a_batch_that_holds_all_source_rows_is_dealt_whole(count):
    assert sampler_over(crowded_rows(), 5).draw_source(count).tolist() == list(range(50))


def test_the_same_seed_draws_the_same_rows():
    rows = crowded_rows()
    first, again, other = (sampler_over(rows, 5, seed) for seed in (1, 1, 2))
    drawn = first.draw_pooled(100)
    assert torch.equal(drawn, again.draw_pooled(100))
    assert not torch.equal(drawn, other.draw_pooled(100))


def test_a_stray_index_value_does_not_take_over_the_batches():
    u = torch.cat([20 + 60 * torch.rand(9999), torch.tensor([999.0])]).double()[:, None]
    rows = IndexedDataset(torch.zeros(10_000, 1), torch.zeros(10_000), u, u[:, 0] < 50)
    sampler = Sampler(rows, Line().fit(u), 30, torch.Generator().manual_seed(0))
    stray = sampler.row_weights[sampler.active_rows == 9999]
    assert float(stray) <= 25 / 10_000
    assert float(sampler.row_weights.sum()) == pytest.approx(1)
    drawn = torch.cat([sampler.draw_pooled(1000) for _ in range(100)])
    assert float((drawn == 9999).double().mean()) == pytest.approx(float(stray), abs=1e-3)


def widened(seed=0):
    """A sampler whose rows 100 to 119 joined last."""
    sampler = sampler_over(crowded_rows(), 5, seed)
    sampler.set_active_rows(torch.arange(100))
    sampler.set_active_rows(torch.arange(120))
    return sampler


@pytest.mark.parametrize(("share", "fresh"), [(0.25, 250), (0.5, 500), (1.0, 1000)])
def test_a_share_of_the_draws_comes_from_the_newest_rows_alone(share, fresh):
    drawn = widened().draw_pooled(1000, share)
    assert len(drawn) == 1000
    first, rest = drawn[:fresh], drawn[fresh:]
    assert set(first.tolist()) == set(range(100, 120))
    assert set(rest.tolist()) <= set(range(120))
    if len(rest):
        assert int(rest.min()) < 100


def test_the_newest_rows_are_drawn_equally_often():
    drawn = widened().draw_pooled(20_000, 1.0) - 100
    assert chisquare(torch.bincount(drawn, minlength=20).numpy()).pvalue > 1e-3


def test_a_share_of_zero_draws_the_same_numbers_as_none():
    assert torch.equal(widened(3).draw_pooled(500, 0.0), widened(3).draw_pooled(500))


def test_where_the_last_stage_added_nothing_the_share_is_drawn_from_all():
    sampler, again = widened(3), widened(3)
    for each in (sampler, again):
        each.set_active_rows(torch.arange(120))
    assert torch.equal(sampler.draw_pooled(500, 0.5), again.draw_pooled(500))
