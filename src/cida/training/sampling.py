"""Near to far: which rows are dealt when, and how often."""

from __future__ import annotations

import torch
from torch import Tensor

from cida.data import IndexedDataset
from cida.scratch import MANY, filled, parts, places, room
from cida.spaces import Space

__all__ = ["Curriculum", "Sampler"]


MAX_OVERSAMPLING = 10.0  # times as often as in a uniform draw


class Curriculum:
    """Widens the index range from the source to the farthest target, in equal stages.

    Over the first ``share`` of the steps the reach, a distance in the metric of the space, grows
    from the first stage's to the largest; the rows within reach are active. With ``share = 0``
    every row is active from the start.
    """

    def __init__(self, distance: Tensor, steps: int, share: float, n_stages: int) -> None:
        self.distance = distance
        # Part by part: torch would copy a column of one value to find the largest.
        self.max_distance = max(float(distance[part].max()) for part in parts(len(distance)))
        self.n_stages = max(1, min(n_stages, int(share * steps)))
        self.steps_per_stage = share * steps / self.n_stages

    def stage_at(self, step: int) -> int:
        """The stage that this step belongs to, counted from 0."""
        if self.n_stages == 1:
            return 0
        return min(self.n_stages - 1, int(step / self.steps_per_stage))

    def active_rows(self, stage: int) -> Tensor:
        """The rows within reach in this stage."""
        reach = self.max_distance * (stage + 1) / self.n_stages
        # A hair more, so that rounding never leaves the farthest rows out.
        return places(lambda part: self.distance[part] <= reach * (1 + 1e-9), len(self.distance))


class Sampler:
    """Draws the row numbers of each round's two batches, with replacement.

    ``balance_bins`` cells along u are drawn equally often, whatever their share of the rows, so
    that a crowded index range does not decide what "aligned" means; 1 draws rows uniformly. But no
    row is drawn much over ten times as often as in a uniform draw: stray values stay few. Source
    rows are always drawn uniformly, or dealt whole where a batch holds them all.

    No order of the rows is shuffled and none is kept but that by cells, in a file where rows are
    very many: a draw costs the same for a thousand rows and for a hundred million.
    """

    def __init__(
        self, dataset: IndexedDataset, space: Space, n_balance_bins: int, generator: torch.Generator
    ):
        self.dataset = dataset
        self.generator = generator
        # 32 bits: there may be very many rows, and this much is kept of each.
        if n_balance_bins > 1:
            cell = space.make_bins(dataset.u, n_balance_bins).cell_of_row
            self.cell_of_row = filled(len(dataset), lambda part: cell[part].to(torch.int32))
        else:
            self.cell_of_row = room((len(dataset),), torch.int32)
        self.rows_by_cell = _sort_by_cell(self.cell_of_row)
        self.is_active = room((len(dataset),), torch.bool)
        self._draw_from(self.rows_by_cell, room((len(dataset),), torch.bool).fill_(True))

    def set_active_rows(self, active: Tensor) -> None:
        """From now on, draw from these rows."""
        is_active = room(tuple(self.is_active.shape), torch.bool)
        for part in parts(len(active)):
            is_active[active[part]] = True
        if len(active) == len(is_active):
            self._draw_from(self.rows_by_cell, is_active)
        else:
            positions = places(lambda part: is_active[self.rows_by_cell[part]], len(is_active))
            by_cell = filled(len(positions), lambda part: self.rows_by_cell[positions[part]])
            self._draw_from(by_cell, is_active)

    def _draw_from(self, active: Tensor, is_active: Tensor) -> None:
        """From now on, draw from these rows, which come cell after cell."""
        new_rows = places(lambda part: is_active[part] & ~self.is_active[part], len(is_active))
        self.newest_rows = filled(len(new_rows), lambda part: new_rows[part].to(torch.int32))
        self.active_rows, self.is_active = active, is_active
        counts = _count_rows_per_cell(self.cell_of_row, active)
        self.cell_counts = counts[counts > 0]
        self.starts_counts = torch.stack(
            [self.cell_counts.cumsum(0) - self.cell_counts, self.cell_counts]
        )
        cell_probabilities = (
            (self.cell_counts * MAX_OVERSAMPLING / len(active))
            .double()
            .clamp(max=1 / len(self.cell_counts))
        )
        self.cell_probabilities = cell_probabilities / cell_probabilities.sum()
        self.cell_cdf = self.cell_probabilities.cumsum(0)[:-1]

    @property
    def row_weights(self) -> Tensor:
        """How often each active row is drawn; they add up to 1."""
        row_weight_by_cell, ends = (
            self.cell_probabilities / self.cell_counts,
            self.cell_counts.cumsum(0),
        )

        def weights(part: slice) -> Tensor:
            rows = torch.arange(part.start, part.stop)
            return row_weight_by_cell[torch.searchsorted(ends, rows, right=True)]

        return filled(len(self.active_rows), weights)

    def draw_pooled(self, count: int, newest_share: float = 0.0) -> Tensor:
        """Active rows, each cell along u equally often; a share of the newest on its own."""
        n_newest = int(newest_share * count) if len(self.newest_rows) else 0
        if n_newest:
            picks = torch.randint(len(self.newest_rows), (n_newest,), generator=self.generator)
            return torch.cat([self.newest_rows[picks].long(), self.draw_pooled(count - n_newest)])
        cell_draws, row_draws = torch.rand(2, count, generator=self.generator, dtype=torch.float64)
        cell = torch.searchsorted(self.cell_cdf, cell_draws, right=True)
        starts, counts = self.starts_counts.index_select(1, cell)
        return self.active_rows.index_select(0, starts + (row_draws * counts).long()).long()

    def draw_source(self, count: int) -> Tensor:
        """Labelled rows."""
        source_rows = self.dataset.source_rows
        if count >= len(source_rows):
            return source_rows
        picks = torch.randint(len(source_rows), (count,), generator=self.generator)
        return source_rows.index_select(0, picks)  # faster than [...]


def _count_rows_per_cell(cell: Tensor, rows: Tensor) -> Tensor:
    """How many of these rows are in each cell."""
    n_cells = int(cell.max()) + 1
    part_counts = [cell[rows[part]].bincount(minlength=n_cells) for part in parts(len(rows))]
    return torch.stack(part_counts).sum(0)


def _sort_by_cell(cell: Tensor) -> Tensor:
    """The numbers of all rows, cell after cell and in their order within one."""
    if len(cell) <= MANY:
        return cell.argsort(stable=True).to(torch.int32)
    dtype = torch.int32 if len(cell) <= torch.iinfo(torch.int32).max else torch.int64
    order = room((len(cell),), dtype)
    counts = torch.stack(
        [cell[part].bincount(minlength=int(cell.max()) + 1) for part in parts(len(cell))]
    )
    next_position = counts.sum(0).cumsum(0) - counts.sum(0)  # where the next row of each cell goes
    for part, part_counts in zip(parts(len(cell)), counts, strict=True):
        sorted_cell, part_order = cell[part].long().sort(stable=True)
        within = torch.arange(len(part_order)) - (part_counts.cumsum(0) - part_counts)[sorted_cell]
        order[next_position[sorted_cell] + within] = (part_order + part.start).to(dtype)
        next_position += part_counts
    return order
