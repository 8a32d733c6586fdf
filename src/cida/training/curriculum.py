"""Near to far: which rows are dealt when, and how often."""

from __future__ import annotations

import torch
from torch import Tensor

from cida.batch import Rows
from cida.scratch import MANY, filled, parts, places, room
from cida.space import Space

__all__ = ["Curriculum", "Sampler"]


MOST_OFTEN = 10.0  # times as often as in a uniform draw


class Curriculum:
    """Widens the index range from the source to the farthest target, in equal stages.

    Over the first ``share`` of the steps the reach, a distance in the metric of the space, grows
    from the first stage's to the largest; the rows within reach are active. With ``share = 0``
    every row is active from the start.
    """

    def __init__(self, distance: Tensor, steps: int, share: float, stages: int) -> None:
        self.distance = distance
        # Part by part: torch would copy a column of one value to find the largest.
        self.farthest = max(float(distance[part].max()) for part in parts(len(distance)))
        self.stages = max(1, min(stages, int(share * steps)))
        self.steps_a_stage = share * steps / self.stages

    def stage(self, step: int) -> int:
        """The stage that this step belongs to, counted from 0."""
        if self.stages == 1:
            return 0
        return min(self.stages - 1, int(step / self.steps_a_stage))

    def active(self, stage: int) -> Tensor:
        """The rows within reach in this stage."""
        reach = self.farthest * (stage + 1) / self.stages
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

    def __init__(self, rows: Rows, space: Space, balance_bins: int, generator: torch.Generator):
        self.rows = rows
        self.generator = generator
        # 32 bits: there may be very many rows, and this much is kept of each.
        if balance_bins > 1:
            cell = space.bins(rows.u, balance_bins).rows
            self.cell = filled(len(rows), lambda part: cell[part].to(torch.int32))
        else:
            self.cell = room((len(rows),), torch.int32)
        self.order = _by_cell(self.cell)
        self.inside = room((len(rows),), torch.bool)
        self._draw_from(self.order, room((len(rows),), torch.bool).fill_(True))

    def activate(self, active: Tensor) -> None:
        """From now on, draw from these rows."""
        inside = room(tuple(self.inside.shape), torch.bool)
        for part in parts(len(active)):
            inside[active[part]] = True
        if len(active) == len(inside):
            self._draw_from(self.order, inside)
        else:
            held = places(lambda part: inside[self.order[part]], len(inside))
            by_cell = filled(len(held), lambda part: self.order[held[part]])
            self._draw_from(by_cell, inside)

    def _draw_from(self, active: Tensor, inside: Tensor) -> None:
        """From now on, draw from these rows, which come cell after cell."""
        new = places(lambda part: inside[part] & ~self.inside[part], len(inside))
        self.newest = filled(len(new), lambda part: new[part].to(torch.int32))
        self.active, self.inside = active, inside
        counts = _counts(self.cell, active)
        self.counts = counts[counts > 0]
        self.starts_counts = torch.stack([self.counts.cumsum(0) - self.counts, self.counts])
        chance = (self.counts * MOST_OFTEN / len(active)).double().clamp(max=1 / len(self.counts))
        self.chance = chance / chance.sum()
        self.cell_ends = self.chance.cumsum(0)[:-1]

    @property
    def weights(self) -> Tensor:
        """How often each active row is drawn; they add up to 1."""
        of_cell, ends = self.chance / self.counts, self.counts.cumsum(0)

        def weights(part: slice) -> Tensor:
            rows = torch.arange(part.start, part.stop)
            return of_cell[torch.searchsorted(ends, rows, right=True)]

        return filled(len(self.active), weights)

    def everyone(self, count: int, newest_share: float = 0.0) -> Tensor:
        """Active rows, each cell along u equally often; a share of the newest on its own."""
        fresh = int(newest_share * count) if len(self.newest) else 0
        if fresh:
            picked = torch.randint(len(self.newest), (fresh,), generator=self.generator)
            return torch.cat([self.newest[picked].long(), self.everyone(count - fresh)])
        cells, within = torch.rand(2, count, generator=self.generator, dtype=torch.float64)
        cell = torch.searchsorted(self.cell_ends, cells, right=True)
        starts, counts = self.starts_counts.index_select(1, cell)
        return self.active.index_select(0, starts + (within * counts).long()).long()

    def source(self, count: int) -> Tensor:
        """Labelled rows."""
        sources = self.rows.sources
        if count >= len(sources):
            return sources
        picked = torch.randint(len(sources), (count,), generator=self.generator)
        return sources.index_select(0, picked)  # faster than [...]


def _counts(cell: Tensor, rows: Tensor) -> Tensor:
    """How many of these rows are in each cell."""
    most = int(cell.max()) + 1
    counted = [cell[rows[part]].bincount(minlength=most) for part in parts(len(rows))]
    return torch.stack(counted).sum(0)


def _by_cell(cell: Tensor) -> Tensor:
    """The numbers of all rows, cell after cell and in their order within one."""
    if len(cell) <= MANY:
        return cell.argsort(stable=True).to(torch.int32)
    kind = torch.int32 if len(cell) <= torch.iinfo(torch.int32).max else torch.int64
    order = room((len(cell),), kind)
    counts = torch.stack(
        [cell[part].bincount(minlength=int(cell.max()) + 1) for part in parts(len(cell))]
    )
    first = counts.sum(0).cumsum(0) - counts.sum(0)  # where the next row of each cell goes
    for part, mine in zip(parts(len(cell)), counts, strict=True):
        sorted_cell, by = cell[part].long().sort(stable=True)
        within = torch.arange(len(by)) - (mine.cumsum(0) - mine)[sorted_cell]
        order[first[sorted_cell] + within] = (by + part.start).to(kind)
        first += mine
    return order
