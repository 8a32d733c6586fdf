"""Which rows are drawn when, and how often: from near the source to far from it."""

from __future__ import annotations

import torch
from torch import Tensor

from cida.data import IndexedDataset
from cida.spaces import Space

__all__ = ["Curriculum", "Sampler"]

MAX_OVERSAMPLING = 10.0  # times as often as in a uniform draw


class Curriculum:
    """Widens the index range from the source to the farthest target, in equal stages.

    Over the first ``share`` of the steps the reach, a distance in the metric of the space, grows
    from the first stage's to the largest; the rows within reach are active. With ``share = 0``
    every row is active from the start.

    Parameters
    ----------
    distance : Tensor of shape (rows,)
        Distance of each row to the source.
    steps : int
        Number of rounds of training.
    share : float
        Share of the rounds over which the range widens.
    n_stages : int
        Number of stages.
    """

    def __init__(self, distance: Tensor, steps: int, share: float, n_stages: int) -> None:
        self.distance = distance
        self.max_distance = float(distance.max())
        self.n_stages = max(1, min(n_stages, int(share * steps)))
        self.steps_per_stage = share * steps / self.n_stages

    def stage_at(self, step: int) -> int:
        """The stage that a step belongs to, counted from 0."""
        last = self.n_stages - 1
        return min(last, int(step / self.steps_per_stage)) if last else 0

    def active_rows(self, stage: int) -> Tensor:
        """The rows within reach in a stage."""
        reach = self.max_distance * (stage + 1) / self.n_stages
        # Slightly more, so that rounding never excludes the farthest rows.
        return (self.distance <= reach * (1 + 1e-9)).nonzero()[:, 0]


class Sampler:
    """Draws the row numbers of each round's two batches, with replacement.

    Cells along the index are drawn equally often, whatever their share of the rows, so that a
    crowded index range does not decide what "aligned" means. But no row is drawn much more than ten
    times as often as in a uniform draw, so that stray values stay rare. Source rows are always
    drawn uniformly, or all of them if they fit into a batch. The cost of a draw does not depend on
    the number of rows.

    Parameters
    ----------
    dataset : IndexedDataset
        All rows.
    space : Space
        The fitted space of the index.
    n_balance_bins : int
        About how many cells; 1 draws rows uniformly.
    generator : torch.Generator
        Source of random numbers.
    """

    def __init__(
        self, dataset: IndexedDataset, space: Space, n_balance_bins: int, generator: torch.Generator
    ):
        self.dataset = dataset
        self.generator = generator
        n_rows = len(dataset)
        # 32 bits if they are enough, to save memory.
        self.row_dtype = torch.int32 if n_rows <= torch.iinfo(torch.int32).max else torch.int64
        self.cell_of_row = torch.zeros(n_rows, dtype=torch.int32)
        if n_balance_bins > 1:
            self.cell_of_row = space.make_bins(dataset.u, n_balance_bins).cell_of_row.int()
        self.rows_by_cell = self.cell_of_row.argsort(stable=True).to(self.row_dtype)
        self.is_active = torch.zeros(n_rows, dtype=torch.bool)
        self._draw_from(self.rows_by_cell, torch.ones(n_rows, dtype=torch.bool))

    def set_active_rows(self, active: Tensor) -> None:
        """Draw only from these rows from now on."""
        is_active = torch.zeros_like(self.is_active)
        is_active[active] = True
        self._draw_from(self.rows_by_cell[is_active[self.rows_by_cell]], is_active)

    def _draw_from(self, active: Tensor, is_active: Tensor) -> None:
        """Draw from these rows, sorted by cell, from now on."""
        self.newest_rows = (is_active & ~self.is_active).nonzero()[:, 0].to(self.row_dtype)
        self.active_rows, self.is_active = active, is_active
        counts = self.cell_of_row[active].bincount()
        self.cell_counts = counts[counts > 0]
        starts = self.cell_counts.cumsum(0) - self.cell_counts
        self.starts_counts = torch.stack([starts, self.cell_counts])
        shares = (self.cell_counts * MAX_OVERSAMPLING / len(active)).double()
        shares = shares.clamp(max=1 / len(self.cell_counts))
        self.cell_probabilities = shares / shares.sum()
        self.cell_cdf = self.cell_probabilities.cumsum(0)[:-1]

    @property
    def row_weights(self) -> Tensor:
        """The probability of each active row in one draw."""
        return (self.cell_probabilities / self.cell_counts).repeat_interleave(self.cell_counts)

    def draw_pooled(self, count: int, newest_share: float = 0.0) -> Tensor:
        """Draw active rows, each cell equally often; a share of them from the newest rows only."""
        n_newest = int(newest_share * count) if len(self.newest_rows) else 0
        if n_newest:
            picks = torch.randint(len(self.newest_rows), (n_newest,), generator=self.generator)
            return torch.cat([self.newest_rows[picks].long(), self.draw_pooled(count - n_newest)])
        cell_draws, row_draws = torch.rand(2, count, generator=self.generator, dtype=torch.float64)
        cell = torch.searchsorted(self.cell_cdf, cell_draws, right=True)
        starts, counts = self.starts_counts.index_select(1, cell)
        return self.active_rows.index_select(0, starts + (row_draws * counts).long()).long()

    def draw_source(self, count: int) -> Tensor:
        """Draw labelled rows."""
        source_rows = self.dataset.source_rows
        if count >= len(source_rows):
            return source_rows
        picks = torch.randint(len(source_rows), (count,), generator=self.generator)
        return source_rows.index_select(0, picks)  # faster than [...]
