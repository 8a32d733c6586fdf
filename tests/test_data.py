"""Data sets: target labels are wiped, batches are looked up."""

import numpy as np
import pytest
import torch

from cida.data import IndexedDataset


def some_rows(count=6, **changes):
    parts = {
        "x": torch.arange(2.0 * count).reshape(count, 2),
        "y": torch.arange(count) + 1,
        "u": torch.linspace(0, 1, count),
        "labelled": torch.arange(count) < count // 2,
    }
    return IndexedDataset(**(parts | changes))


def test_rows_wipe_the_labels_of_the_target():
    assert some_rows().y.tolist() == [1, 2, 3, 0, 0, 0]


def test_rows_wipe_missing_labels_with_several_outputs():
    y = torch.tensor([[1.0, 2.0], [3.0, 4.0], [torch.nan, torch.nan]])
    rows = some_rows(3, y=y, labelled=torch.tensor([True, True, False]))
    assert rows.y.tolist() == [[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]]


def test_rows_leave_the_callers_labels_alone():
    y = torch.arange(6) + 1
    some_rows(y=y)
    assert y.tolist() == [1, 2, 3, 4, 5, 6]


def test_rows_look_up_a_batch_in_the_order_asked_for():
    weight = torch.arange(6.0) / 10
    batch = some_rows(weight=weight)[torch.tensor([4, 0, 0, 2])]
    assert len(batch) == 4
    assert batch.x.tolist() == [[8, 9], [0, 1], [0, 1], [4, 5]]
    assert batch.y.tolist() == [0, 1, 1, 3]
    assert batch.row_ids.tolist() == [4, 0, 0, 2]
    assert batch.labelled.tolist() == [False, True, True, True]
    assert torch.allclose(batch.u[:, 0], torch.tensor([0.8, 0.0, 0.0, 0.4]))
    assert torch.allclose(batch.weight, torch.tensor([0.4, 0.0, 0.0, 0.2]))


def test_rows_weigh_one_each_and_know_their_sources():
    rows = some_rows()
    assert rows.weight.tolist() == [1.0] * 6
    assert rows.source_rows.tolist() == [0, 1, 2]
    assert len(rows) == 6


def test_rows_give_a_flat_index_a_column():
    assert some_rows().u.shape == (6, 1)
    assert some_rows(u=torch.zeros(6, 3)).u.shape == (6, 3)


def test_rows_read_x_from_a_memory_map(tmp_path):
    values = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    values.tofile(tmp_path / "x.bin")
    mapped = np.memmap(tmp_path / "x.bin", dtype=np.float32, mode="c", shape=(50, 3))
    x = torch.from_numpy(mapped)
    rows = IndexedDataset(x, torch.zeros(50), torch.zeros(50), torch.ones(50, dtype=torch.bool))
    assert rows.x.data_ptr() == x.data_ptr() == mapped.ctypes.data  # mapped, not copied
    chosen = torch.tensor([49, 0, 7])
    assert np.array_equal(rows[chosen].x.numpy(), values[[49, 0, 7]])


@pytest.mark.parametrize("name", ["x", "y", "u", "labelled"])
def test_rows_of_different_lengths_are_refused(name):
    short = torch.zeros(5, dtype=torch.bool) if name == "labelled" else torch.zeros(5)
    with pytest.raises(ValueError, match=r"x, y, u and labelled have .*5.* same number"):
        some_rows(**{name: short})


@pytest.mark.parametrize("count", [5, 7])
def test_weights_of_another_length_are_refused(count):
    with pytest.raises(ValueError, match=f"weight.*{count}"):
        some_rows(weight=torch.ones(count))
