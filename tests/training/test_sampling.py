"""The sampler beside a slow one that says the same row by row."""

import bisect
import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cida.data import IndexedDataset
from cida.spaces import Line, Periodic
from cida.training import Sampler
from cida.training.sampling import MAX_OVERSAMPLING


class SlowSampler:
    """What `Sampler` promises, in lists."""

    def __init__(self, cells):
        self.cells = cells
        self.inside = set()
        self.activate(range(len(cells)))

    def activate(self, active):
        self.newest = sorted(set(active) - self.inside)
        self.inside = set(active)
        groups = {}
        for row in sorted(active):
            groups.setdefault(self.cells[row], []).append(row)
        self.groups = [groups[cell] for cell in sorted(groups)]
        most = [min(len(g) * MAX_OVERSAMPLING / len(active), 1 / len(groups)) for g in self.groups]
        self.chance = [chance / sum(most) for chance in most]

    @property
    def weight(self):
        pairs = zip(self.groups, self.chance, strict=True)
        return {row: chance / len(group) for group, chance in pairs for row in group}

    def draw(self, first, second):
        """The row that two numbers between 0 and 1 stand for: first the cell, then its row."""
        ends = list(itertools.accumulate(self.chance))[:-1]
        group = self.groups[bisect.bisect_right(ends, first)]
        return group[int(second * len(group))]


def pair_of(u, bins, seed=0, space=None):
    column = torch.tensor(u, dtype=torch.float64)[:, None]
    space = (space or Line()).fit(column)
    rows = IndexedDataset(
        torch.zeros(len(u), 1), torch.zeros(len(u)).long(), column, torch.ones(len(u)) > 0
    )
    cells = space.make_bins(column, bins).cell_of_row.tolist() if bins > 1 else [0] * len(u)
    generator = torch.Generator().manual_seed(seed)
    return Sampler(rows, space, bins, generator), SlowSampler(cells)


@st.composite
def stages(draw):
    """Values of u, and the rows that are active in one stage after another, in any order."""
    number = st.floats(0, 10, allow_subnormal=False) | st.sampled_from([0.0, 1.0, 9.0, 100.0])
    u = draw(st.lists(number, min_size=2, max_size=40).filter(lambda u: max(u) - min(u) > 1e-3))
    some_rows = st.lists(st.integers(0, len(u) - 1), min_size=1, unique=True)
    return u, draw(st.lists(some_rows, max_size=4))


@settings(deadline=None, max_examples=150)
@given(stages(), st.integers(1, 12), st.integers(0, 1000), st.sampled_from([Line(), Periodic(7)]))
def test_newest_rows_weights_and_draws_are_the_slow_ones(history, bins, seed, space):
    u, steps = history
    quick, slow = pair_of(u, bins, seed, space)
    for active in [None, *steps]:
        if active is not None:
            quick.set_active_rows(torch.tensor(active))
            slow.activate(active)
        assert quick.newest_rows.tolist() == slow.newest
        assert sorted(quick.active_rows.tolist()) == sorted(slow.inside)
        found = dict(zip(quick.active_rows.tolist(), quick.row_weights.tolist(), strict=True))
        assert found == pytest.approx(slow.weight)
        assert quick.row_weights.sum() == pytest.approx(1)
        generator = torch.Generator()
        generator.set_state(quick.generator.get_state())
        numbers = torch.rand(2, 25, generator=generator, dtype=torch.float64)
        expected = [slow.draw(*pair) for pair in numbers.T.tolist()]
        assert quick.draw_pooled(25).tolist() == expected


@settings(deadline=None, max_examples=60)
@given(stages(), st.integers(1, 6), st.floats(0, 1))
def test_a_share_of_a_draw_is_of_the_newest_rows_where_there_are_any(history, bins, share):
    u, steps = history
    quick, slow = pair_of(u, bins)
    for active in steps:
        quick.set_active_rows(torch.tensor(active))
        slow.activate(active)
        drawn = quick.draw_pooled(20, share).tolist()
        assert len(drawn) == 20
        assert set(drawn) <= slow.inside
        if slow.newest:
            assert set(drawn[: int(20 * share)]) <= set(slow.newest)


def test_rows_come_cell_after_cell_and_in_their_order_within_one():
    quick, _ = pair_of([9.0, 0.0, 8.0, 1.0, 10.0, 0.5], 2)
    assert quick.active_rows.tolist() == [1, 3, 5, 0, 2, 4]
    quick.set_active_rows(torch.tensor([4, 5, 0, 1]))
    assert quick.active_rows.tolist() == [1, 5, 0, 4]


def test_rows_that_leave_and_come_back_are_new_again():
    quick, _ = pair_of([0.0, 1.0, 2.0], 3)
    quick.set_active_rows(torch.tensor([0]))
    assert quick.newest_rows.tolist() == []
    quick.set_active_rows(torch.tensor([2, 0]))
    assert quick.newest_rows.tolist() == [2]


def test_many_rows_take_no_time():
    """Stages of hundreds of thousands of rows are cheap: no row-by-row Python, no search."""
    count = 200_000
    u = torch.rand(count, generator=torch.Generator().manual_seed(0)).double()
    quick, _ = pair_of(u.tolist(), 30)
    near = (u < 0.4).nonzero()[:, 0]
    quick.set_active_rows(near)
    quick.set_active_rows(torch.arange(count))
    assert torch.equal(quick.newest_rows, (u >= 0.4).nonzero()[:, 0])


def test_draws_favour_no_row_and_no_cell():
    """Chi-squared over rows within cells, and over cells: the draw is what the weights say."""
    n_rows, draws = 1000, 400_000
    u = (torch.rand(n_rows, generator=torch.Generator().manual_seed(1)) ** 2 * 7).tolist()
    sampler, _ = pair_of(u, 5, seed=4)
    counted = sampler.draw_pooled(draws).bincount(minlength=n_rows).double()
    expected = torch.zeros(n_rows, dtype=torch.float64)
    expected[sampler.active_rows.long()] = draws * sampler.row_weights
    assert expected.sum() == pytest.approx(draws)
    chi_squared = float(((counted - expected).square() / expected).sum())
    assert abs(chi_squared - (n_rows - 1)) < 4 * (2 * (n_rows - 1)) ** 0.5
    cells = sampler.cell_of_row.long()
    by_cell = torch.zeros(5, dtype=torch.float64).index_add_(0, cells, counted)
    wanted = torch.zeros(5, dtype=torch.float64).index_add_(0, cells, expected)
    assert float(((by_cell - wanted).square() / wanted).sum()) < 4 + 4 * 8**0.5


def test_neighbours_in_the_data_are_no_neighbours_in_a_draw():
    """Rows next to each other are not drawn together: no block is shuffled on its own."""
    sampler, _ = pair_of([row / 1000 for row in range(1000)], 1, seed=5)
    drawn = sampler.draw_pooled(100_000).double()
    correlation = torch.corrcoef(torch.stack([drawn[:-1], drawn[1:]]))[0, 1]
    assert abs(float(correlation)) < 4 / 100_000**0.5
