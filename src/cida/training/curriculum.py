"""Near to far: which rows are dealt when, and how often."""

from __future__ import annotations

import torch
from torch import Tensor

from cida.batch import Rows
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
        self.stages = max(1, min(stages, int(share * steps)))
        self.steps_a_stage = share * steps / self.stages

    def stage(self, step: int) -> int:
        """The stage that this step belongs to, counted from 0."""
        if self.stages == 1:
            return 0
        return min(self.stages - 1, int(step / self.steps_a_stage))

    def active(self, stage: int) -> Tensor:
        """The rows within reach in this stage."""
        reach = float(self.distance.max()) * (stage + 1) / self.stages
        # A hair more, so that rounding never leaves the farthest rows out.
        return (self.distance <= reach * (1 + 1e-9)).nonzero()[:, 0]


class Sampler:
    """Draws the row numbers of each round's two batches, with replacement.

    ``balance_bins`` cells along u are drawn equally often, whatever their share of the rows, so
    that a crowded index range does not decide what "aligned" means; 1 draws rows uniformly. But no
    row is drawn much over ten times as often as in a uniform draw: stray values stay few. Source
    rows are always drawn uniformly, or dealt whole where a batch holds them all.
    """

    def __init__(self, rows: Rows, space: Space, balance_bins: int, generator: torch.Generator):
        self.rows = rows
        self.generator = generator
        # 32 bits: there may be very many rows, and this much is kept of each.
        if balance_bins > 1:
            self.cell = space.bins(rows.u, balance_bins).rows.to(torch.int32)
        else:
            self.cell = torch.zeros(len(rows), dtype=torch.int32)
        self.order = self.cell.argsort(stable=True).to(torch.int32)
        self.inside = torch.zeros(len(rows), dtype=torch.bool)
        self.activate(torch.arange(len(rows)))

    def activate(self, active: Tensor) -> None:
        """From now on, draw from these rows."""
        inside = torch.zeros_like(self.inside)
        inside[active] = True
        self.newest = (inside & ~self.inside).nonzero()[:, 0].to(torch.int32)
        self.inside = inside
        all_of_them = len(active) == len(inside)
        self.active = self.order if all_of_them else self.order[inside[self.order]]  # by cell
        counts = (self.cell if all_of_them else self.cell[self.active]).bincount()
        self.counts = counts[counts > 0]
        self.starts = self.counts.cumsum(0) - self.counts
        chance = (self.counts * MOST_OFTEN / len(active)).double().clamp(max=1 / len(self.counts))
        self.chance = chance / chance.sum()
        self.cell_ends = self.chance.cumsum(0)[:-1]

    @property
    def weights(self) -> Tensor:
        """How often each active row is drawn; they add up to 1."""
        return (self.chance / self.counts).repeat_interleave(self.counts)

    def everyone(self, count: int, newest_share: float = 0.0) -> Tensor:
        """Active rows, each cell along u equally often; a share of the newest on its own."""
        fresh = int(newest_share * count) if len(self.newest) else 0
        if fresh:
            picked = torch.randint(len(self.newest), (fresh,), generator=self.generator)
            return torch.cat([self.newest[picked].long(), self.everyone(count - fresh)])
        place = torch.rand(2, count, generator=self.generator, dtype=torch.float64)
        cell = torch.searchsorted(self.cell_ends, place[0], right=True)
        offset = (place[1] * self.counts[cell]).long()
        return self.active[self.starts[cell] + offset].long()

    def source(self, count: int) -> Tensor:
        """Labelled rows."""
        sources = self.rows.sources
        if count >= len(sources):
            return sources
        return sources[torch.randint(len(sources), (count,), generator=self.generator)]
