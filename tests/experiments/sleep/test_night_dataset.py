"""Segments of memory-mapped stores, dealt as batches."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cida.data import IndexedDataset
from cida.experiments.sleep.sleep_data import NightDataset

WIDTH = 300
SIZES = (7, 5)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Two files of float16, mapped; the numbers of a segment tell which one it is."""
    maps = []
    for number, size in enumerate(SIZES):
        path = tmp_path_factory.mktemp("store") / "segments.npy"
        segments = np.random.default_rng(number).normal(size=(size, WIDTH)).astype("<f2")
        segments[:, 0] = 100 * number + np.arange(size)
        np.save(path, segments)
        maps.append(np.load(path, mmap_mode="r"))
    return maps


# Rows of both stores, mixed, one segment twice, some left out.
COHORT = torch.tensor([0, 1, 0, 1, 1, 0, 0, 1])
PLACE = torch.tensor([6, 0, 2, 4, 1, 2, 0, 3])
Y = torch.tensor([1, 2, 3, 3, 2, 1, 3, 2])
AGE = torch.tensor([50.0, 81.0, 51.0, 82.0, 83.0, 52.0, 53.0, 84.0], dtype=torch.float64)


def some_rows(stores, labelled=COHORT == 0):
    return NightDataset(stores, COHORT, PLACE, Y, AGE, labelled)


def test_rows_deal_the_segments_they_name(stores):
    rows = some_rows(stores)
    assert isinstance(rows, IndexedDataset)
    assert len(rows) == len(PLACE)
    batch = rows[torch.arange(len(rows))]
    assert (batch.x.shape, batch.x.dtype) == ((len(rows), 1, WIDTH), torch.float32)
    for row in range(len(rows)):
        segment = np.array(stores[COHORT[row]][PLACE[row]], np.float32)
        assert torch.equal(batch.x[row, 0], torch.from_numpy(segment))
    assert torch.equal(batch.u, AGE[:, None])


@given(st.lists(st.integers(0, len(PLACE) - 1), max_size=30))
@settings(deadline=None, max_examples=60)
def test_the_order_asked_for_is_the_order_dealt(stores, asked):
    rows, indices = some_rows(stores), torch.tensor(asked, dtype=torch.long)
    batch = rows[indices]
    assert len(batch) == len(asked)
    assert torch.equal(batch.row_ids, indices)
    marks = 100 * COHORT[indices] + PLACE[indices]
    assert batch.x[:, 0, 0].tolist() == marks.tolist()
    assert torch.equal(batch.u[:, 0], AGE[indices])
    assert torch.equal(batch.labelled, COHORT[indices] == 0)


def test_labels_are_wiped_where_there_are_none(stores):
    rows = some_rows(stores)
    labelled = COHORT == 0
    batch = rows[torch.arange(len(rows))]
    for found in (rows.y, batch.y):
        assert torch.equal(found[labelled], Y[labelled])
        assert (found[~labelled] == 0).all()
    assert torch.equal(batch.labelled, labelled)
    assert torch.equal(rows.source_rows, labelled.nonzero()[:, 0])
    assert (Y[~labelled] != 0).all()  # those given are as they were
    oracle = some_rows(stores, torch.ones(len(PLACE), dtype=torch.bool))
    assert torch.equal(oracle.y.long(), Y)


def test_only_what_is_dealt_is_read(stores):
    class Shelf:
        """Notes what is taken from it."""

        shape = stores[0].shape

        def __init__(self):
            self.taken = []

        def __getitem__(self, places):
            self.taken += places.tolist()
            return stores[0][places]

    shelf = Shelf()
    rows = NightDataset([shelf], torch.zeros(8, dtype=torch.long), PLACE % 7, Y, AGE, COHORT == 0)
    assert shelf.taken == []
    batch = rows[torch.tensor([3, 0])]
    assert sorted(shelf.taken) == [4, 6]
    assert batch.x[:, 0, 0].tolist() == [4, 6]


def test_a_batch_is_a_copy_and_the_files_stay(stores):
    rows = some_rows(stores)
    batch = rows[torch.tensor([0, 1])]
    batch.x.zero_()
    assert rows[torch.tensor([0, 1])].x[:, 0, 0].tolist() == [6, 100]
    assert all(isinstance(segments, np.memmap) for segments in rows.segments)
    assert all(segments.dtype == np.float16 for segments in rows.segments)


def test_rows_of_unequal_number_are_refused(stores):
    with pytest.raises(ValueError, match="x, y, u and labelled have 8, 7, 8 and 8 rows"):
        NightDataset(stores, COHORT, PLACE, Y[:7], AGE, COHORT == 0)
