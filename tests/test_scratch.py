"""Very many rows part by part, beside all of them at once."""

import gc
import os

import numpy as np
import pytest
import torch

from cida import scratch
from cida.data import IndexedDataset
from cida.scratch import filled, parts, places, room, subsample, to_be_dealt
from cida.spaces import Line, Periodic, Product
from cida.training import Sampler, proximity_weights

COUNT = 1000


@pytest.fixture
def many(monkeypatch):
    """A hundred rows are very many, and come 64 at a time; a place that says when."""

    def switch(on):
        monkeypatch.setattr(scratch, "MANY", 100 if on else 10**6)
        monkeypatch.setattr(scratch, "ENOUGH", 100)
        monkeypatch.setattr(scratch, "PART", 64)
        monkeypatch.setattr("cida.training.sampling.MANY", 100 if on else 10**6)

    switch(True)
    return switch


def is_mapped(values):
    """Whether it lies in a mapping that Linux has a deleted file for."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            low, high = (int(end, 16) for end in line.split()[0].split("-"))
            if low <= values.data_ptr() < high:
                return "(deleted)" in line
    return False


def test_few_rows_are_whole_and_in_memory():
    assert list(parts(COUNT)) == [slice(0, COUNT)]
    assert not is_mapped(room((COUNT,), torch.int64))
    values = torch.arange(COUNT)
    assert subsample(values) is values


def test_very_many_rows_come_in_parts_that_cover_them_in_their_order(many):
    covered = [row for part in parts(COUNT) for row in range(part.start, part.stop)]
    assert covered == list(range(COUNT))
    assert len(subsample(torch.arange(COUNT))) == 100


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="asks Linux what is mapped")
def test_room_for_very_many_rows_is_a_file_that_goes_with_the_tensor(many):
    before = len(os.listdir("/proc/self/fd"))
    values = room((COUNT, 3), torch.float32)
    assert is_mapped(values)
    assert values.shape == (COUNT, 3)
    assert not values.any()
    values[5, 1] = 2.0
    assert values.sum() == 2
    del values
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_is_filled_and_found_part_by_part_is_what_is_made_at_once(many):
    values = torch.randn(COUNT, generator=torch.Generator().manual_seed(0))
    assert torch.equal(filled(COUNT, lambda part: values[part] * 2), values * 2)
    assert torch.equal(places(lambda part: values[part] > 0, COUNT), (values > 0).nonzero()[:, 0])
    assert len(places(lambda part: values[part] > 9, COUNT)) == 0


def rows_of(width=1):
    generator = torch.Generator().manual_seed(1)
    u = torch.rand(COUNT, width, generator=generator, dtype=torch.float64) ** 2 * 7
    x = torch.arange(COUNT, dtype=torch.float32)[:, None]
    y = torch.randint(0, 3, (COUNT,), generator=generator)
    return IndexedDataset(x, y, u, u[:, 0] < 3)


SPACES = {"line": Line(), "circle": Periodic(7), "plane": Product([Line(), Periodic(9)])}


@pytest.mark.parametrize("name", SPACES)
def test_rows_cells_draws_and_weights_of_very_many_rows_are_those_of_few(name, many):
    found = []
    for on in (False, True):
        many(on)
        rows = rows_of(SPACES[name].width)
        space = SPACES[name].fit(rows.u)
        sampler = Sampler(rows, space, 12, torch.Generator().manual_seed(2))
        near = (rows.u[:, 0] < 5).nonzero()[:, 0]
        drawn = [sampler.draw_source(20), sampler.draw_pooled(50)]
        sampler.set_active_rows(near)
        drawn.append(sampler.draw_pooled(50))
        sampler.set_active_rows(torch.arange(COUNT))
        drawn += [
            sampler.draw_pooled(50, 0.3),
            sampler.newest_rows,
            sampler.active_rows,
            sampler.row_weights,
        ]
        hidden = rows.with_hidden_labels(rows.u[:, 0] < 1)
        drawn += [rows.y, rows.source_rows, hidden.y, hidden.source_rows, hidden.labelled]
        bins = space.bins(rows.u, 12)
        drawn += [bins.rows, bins.lo, bins.hi, space.distance_to_set(rows.u, rows.u[:90])]
        found.append(drawn)
    for few_rows, many_rows in zip(*found, strict=True):
        assert torch.equal(few_rows, many_rows)


def test_weights_by_nearness_of_very_many_rows_are_nearly_those_of_few(many):
    distance = torch.rand(COUNT, generator=torch.Generator().manual_seed(3)).double()
    part_by_part = proximity_weights(distance, 0.5)
    many(False)
    torch.testing.assert_close(part_by_part, proximity_weights(distance, 0.5), rtol=0.25, atol=0.2)


def test_draws_from_very_many_rows_favour_no_row_and_no_cell(many):
    """Chi-squared over rows within cells, and over cells: the draw is what the weights say."""
    rows = rows_of()
    sampler = Sampler(rows, Line().fit(rows.u), 5, torch.Generator().manual_seed(4))
    draws = 400_000
    drawn = sampler.draw_pooled(draws)
    counted = drawn.bincount(minlength=COUNT).double()
    expected = torch.zeros(COUNT, dtype=torch.float64)
    expected[sampler.active_rows.long()] = draws * sampler.row_weights
    assert expected.sum() == pytest.approx(draws)
    surprise = float(((counted - expected).square() / expected).sum())
    assert abs(surprise - (COUNT - 1)) < 4 * np.sqrt(2 * (COUNT - 1))
    cells = sampler.cell_of_row.long()
    by_cell = torch.zeros(5, dtype=torch.float64).index_add_(0, cells, counted)
    wanted = torch.zeros(5, dtype=torch.float64).index_add_(0, cells, expected)
    assert float(((by_cell - wanted).square() / wanted).sum()) < 4 + 4 * np.sqrt(8)
    of_source = sampler.draw_source(len(rows.source_rows) - 1)
    counted = of_source.bincount(minlength=COUNT)
    assert set(counted.nonzero()[:, 0].tolist()) <= set(rows.source_rows.tolist())


def test_neighbours_in_the_file_are_no_neighbours_in_a_draw(many):
    """Rows of one block of the file do not come together: no block is shuffled on its own."""
    rows = rows_of()
    sampler = Sampler(rows, Line().fit(rows.u), 1, torch.Generator().manual_seed(5))
    drawn = sampler.draw_pooled(100_000).double()
    together = torch.corrcoef(torch.stack([drawn[:-1], drawn[1:]]))[0, 1]
    assert abs(float(together)) < 4 / np.sqrt(100_000)


def test_a_mapped_array_is_the_same_after_it_was_told_how_it_will_be_read(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(5000.0))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert np.array_equal(to_be_dealt(mapped), np.arange(5000.0))
    plain = np.arange(3)
    assert to_be_dealt(plain) is plain
