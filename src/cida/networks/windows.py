"""Standardisation in windows along the index."""

from __future__ import annotations

from typing import Protocol, Self, runtime_checkable

import torch
from scipy.spatial import cKDTree
from torch import Tensor, nn

from cida.space import thinned

__all__ = ["FollowsIndex", "IndexWindows"]

PLACES = 1024
FEWEST, MOST = 200, 1000  # rows of a window
NEAREST = 8  # places that are mixed for one row
MOST_ROWS = 50_000  # enough to find 512 means and spreads on
FLOOR = 0.05  # of a column's spread over all rows: where it hardly varies, differences are noise
REACH = 8.0


@runtime_checkable
class FollowsIndex(Protocol):
    """An encoder with a layer that is fitted to x along the embedded index, before any game."""

    def fit_index(self, x: Tensor, index: Tensor) -> None:
        """Fits it to these rows; labels are not seen."""


class IndexWindows(nn.Module):
    """``x -> (x - m(u)) / s(u)``: mean and spread of the rows whose index is nearest to u.

    They are found once, from all rows and no label, at places that follow the rows: in each,
    the nearest sixteenth of the rows (200 to 1,000), without the values that are missing. Between
    places they are mixed, ``(1 - (d / d_8)^2)^2`` of each of the eight nearest at distance d, which
    has no jump; beyond the range seen they are those of its edge. What drifts along u in level and
    scale stands still after it, whatever its path.
    """

    places: Tensor
    mean: Tensor
    spread: Tensor

    def __init__(self, features: int, index_width: int) -> None:
        super().__init__()
        self.register_buffer("places", torch.zeros(PLACES, index_width))
        self.register_buffer("mean", torch.zeros(PLACES, features))
        self.register_buffer("spread", torch.ones(PLACES, features))

    @torch.no_grad()
    def fit(self, x: Tensor, index: Tensor, present: Tensor | None = None) -> Self:
        """Finds the windows in the rows of x, where ``present`` says which values are real."""
        along = index[:, 0].argsort(stable=True)  # so that thinning takes from everywhere
        kept = along[thinned(len(along), MOST_ROWS)]
        rows, places = x[kept].double(), index[kept].double()
        there = torch.ones_like(rows) if present is None else present[kept].to(rows)
        here = torch.linspace(0, len(kept) - 1, PLACES, dtype=torch.float64).round().long()
        tree = cKDTree(places.numpy())
        _, near = tree.query(places[here].numpy(), _window(len(kept)))
        mean, spread = _moments(rows[None], there[None], rows.new_zeros(2, 1, rows.shape[1]))
        floor = torch.where(spread > 0, FLOOR * spread, torch.ones_like(spread))
        overall = torch.stack([mean, spread])
        parts = torch.split(torch.from_numpy(near), 8)  # a part of the gathered rows at a time
        found = torch.cat(
            [torch.stack(_moments(rows[part], there[part], overall)) for part in parts], dim=1
        )
        self.places = places[here].float()
        self.mean, self.spread = found[0].float(), torch.maximum(found[1], floor).float()
        return self

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        distance, near = torch.cdist(index, self.places).topk(NEAREST, largest=False)
        share = (1 - (distance / distance[:, -1:].clamp(min=1e-12)).square()).square() + 1e-6
        share = (share / share.sum(1, keepdim=True))[:, None]
        mean, spread = share @ self.mean[near], share @ self.spread[near]
        return ((x - mean[:, 0]) / spread[:, 0]).clamp(-REACH, REACH)


def _window(rows: int) -> int:
    """A sixteenth of the rows within bounds: wide enough for steady means, small beside u."""
    return max(2, min(rows // 4, MOST, max(FEWEST, rows // 16)))


def _moments(rows: Tensor, there: Tensor, otherwise: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and spread of each window's values that are there, shape ``(windows, features)``."""
    count = there.sum(1)
    mean = (rows * there).sum(1) / count.clamp(min=1)
    variance = ((rows - mean[:, None]).square() * there).sum(1) / count.clamp(min=1)
    enough = count >= 2
    return torch.where(enough, mean, otherwise[0]), torch.where(
        enough, variance.sqrt(), otherwise[1]
    )
