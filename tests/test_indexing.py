"""Some rows of many."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cida import indexing
from cida.indexing import evenly_spaced, subsample


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 500), st.integers(1, 100))
def test_evenly_spaced_keeps_both_ends_and_no_more_than_asked(rows, most):
    kept = evenly_spaced(rows, most)
    assert len(kept) == min(rows, most) == len(set(kept.tolist()))
    assert kept[0] == 0
    if most > 1:
        assert kept[-1] == rows - 1


def test_subsample_gives_few_rows_whole_and_some_of_very_many(monkeypatch):
    values = torch.arange(1000)
    assert subsample(values) is values
    monkeypatch.setattr(indexing, "MAX_EXACT_ROWS", 500)
    monkeypatch.setattr(indexing, "MAX_SUBSAMPLE_ROWS", 100)
    assert torch.equal(subsample(values), values[evenly_spaced(1000, 100)])
