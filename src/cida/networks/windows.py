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
MOST_ROWS = 50_000  # enough for the means and spreads of all places
FLOOR = 0.05  # of a column's spread over all rows: where it hardly varies, differences are noise
REACH = 8.0
NOWHERE = 1e6  # far from every index


@runtime_checkable
class FollowsIndex(Protocol):
    """An encoder with a layer that is fitted to x along the embedded index, before any game."""

    def fit_index(self, x: Tensor, index: Tensor) -> None:
        """Fits it to these rows; labels are not seen."""


class IndexWindows(nn.Module):
    """``x -> (x - m(u)) / s(u)``: mean and spread of the rows whose index is nearest to u.

    They are found once, from all rows and no label, at places that follow the rows: in each,
    the nearest sixteenth of the rows (200 to 1,000), without the values that are missing. Between
    places they are mixed, ``(1 / d - 1 / d_8)^2`` of each of the eight nearest at distance d
    (Shepard's weights, which have no jump); beyond the range seen they are those of its edge. What
    drifts along u in level and scale stands still after it, whatever its path.
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
        rows, e = x[kept].double(), index[kept].double()
        there = torch.ones_like(rows, dtype=torch.bool) if present is None else present[kept]
        rows = rows.masked_fill(~there, 0.0)
        places: Tensor = torch.unique(e[thinned(len(e), PLACES)], dim=0)
        _, near = cKDTree(e.numpy()).query(places.numpy(), range(1, _window(len(kept)) + 1))
        mean, spread = _moments(rows[None], there[None], rows.new_zeros(2, 1, rows.shape[1]))
        floor = torch.where(spread > 0, FLOOR * spread, torch.ones_like(spread))
        overall = torch.stack([mean, spread])
        parts = torch.split(torch.from_numpy(near), 8)  # a part of the gathered rows at a time
        found = torch.cat(
            [torch.stack(_moments(rows[part], there[part], overall)) for part in parts], dim=1
        )
        empty = PLACES - len(places)  # u may have few values: the others are out of reach
        self.places = _filled(places, empty, NOWHERE)
        self.mean = _filled(found[0], empty, 0.0)
        self.spread = _filled(torch.maximum(found[1], floor), empty, 1.0)
        return self

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        distance, near = self.distances(index).topk(NEAREST, largest=False)
        reach = distance[:, -1:].clamp(min=1e-6)
        share = ((reach - distance) / (reach * distance.clamp(min=1e-6))).square() + 1e-12
        share = (share / share.sum(1, keepdim=True))[:, None]
        mean, spread = share @ self.mean[near], share @ self.spread[near]
        return ((x - mean[:, 0]) / spread[:, 0]).clamp(-REACH, REACH)

    def distances(self, index: Tensor) -> Tensor:
        """How far each row's index is from every place."""
        return torch.cdist(index, self.places)


def _filled(values: Tensor, empty: int, value: float) -> Tensor:
    return nn.functional.pad(values, (0, 0, 0, empty), value=value).float()


def _window(rows: int) -> int:
    """A sixteenth of the rows within bounds: wide enough for steady means, small beside u."""
    return min(rows, max(2, min(rows // 4, MOST, max(FEWEST, rows // 16))))


def _moments(rows: Tensor, there: Tensor, otherwise: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and spread of each window's values that are there, shape ``(windows, features)``.

    Values that are not there must be 0.
    """
    count = there.sum(1)
    mean = rows.sum(1) / count.clamp(min=1)
    variance = ((rows - mean[:, None]).square() * there).sum(1) / count.clamp(min=1)
    enough = count >= 2
    return torch.where(enough, mean, otherwise[0]), torch.where(
        enough, variance.sqrt(), otherwise[1]
    )
