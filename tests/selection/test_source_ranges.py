"""Which range of the source is left out."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cida.selection.source_ranges import nearest_source_third, split_source_thirds
from cida.spaces import Line, Periodic


def test_the_third_next_to_the_target_is_left_out():
    u = torch.arange(12.0, dtype=torch.float64)[:, None]
    hidden = nearest_source_third(Line().fit(u), u, u[:, 0] < 6)
    assert hidden.nonzero()[:, 0].tolist() == [4, 5]


def test_on_a_circle_both_ends_are_next_to_the_target():
    u = torch.arange(0.0, 360.0, 5.0, dtype=torch.float64)[:, None]
    hidden = nearest_source_third(Periodic(360).fit(u), u, u[:, 0] <= 40)
    assert set(u[hidden][:, 0].tolist()) == {0.0, 40.0, 5.0}


def test_rows_that_lack_a_label_inside_the_source_change_nothing():
    u = torch.arange(100.0, dtype=torch.float64)[:, None]
    labelled = u[:, 0] < 50
    holes = labelled.clone()
    holes[[3, 10, 20]] = False
    space = Line().fit(u)
    kept = [row for row in torch.cat(split_source_thirds(space, u, labelled)) if holes[row]]
    assert torch.cat(split_source_thirds(space, u, holes)).tolist() == kept


@settings(deadline=None, max_examples=25)
@given(st.integers(6, 60), st.integers(1, 60), st.integers(0, 2**20))
def test_a_third_of_the_source_and_no_other_row_is_left_out(sources, targets, seed):
    generator = torch.Generator().manual_seed(seed)
    u = torch.rand(sources + targets, 1, generator=generator, dtype=torch.float64)
    labelled = torch.arange(len(u)) < sources
    hidden = nearest_source_third(Line().fit(u), u, labelled)
    assert int(hidden.sum()) == sources // 3
    assert not bool((hidden & ~labelled).any())
