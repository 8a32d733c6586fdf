"""Standardization in windows along the index."""

from __future__ import annotations

from typing import Protocol, Self, runtime_checkable

import torch
from scipy.spatial import cKDTree
from torch import Tensor, nn

from cida.indexing import evenly_spaced

__all__ = ["SupportsFitIndex", "WindowsLayer"]

N_WINDOWS = 1024
MIN_WINDOW_ROWS, MAX_WINDOW_ROWS = 200, 1000  # rows of a window
N_MIXED_WINDOWS = 8  # places that are mixed for one row
MAX_WINDOW_FIT_ROWS = 50_000  # enough for the means and spreads of all places
MIN_SPREAD_RATIO = (
    0.05  # of a column's spread over all rows: where it hardly varies, differences are noise
)
MAX_ABS_OUTPUT = 8.0
UNUSED_WINDOW_INDEX = 1e6  # far from every index


@runtime_checkable
class SupportsFitIndex(Protocol):
    """An encoder with a layer that is fitted to x along the embedded index, before training."""

    def fit_index(self, x: Tensor, index: Tensor) -> None:
        """Fit the layer to these rows; labels are not used."""


class WindowsLayer(nn.Module):
    """``x -> (x - m(u)) / s(u)``: mean and deviation of the rows whose index is nearest to u.

    They are computed once, from all rows and without labels, at points that follow the rows' index:
    at each, over the nearest sixteenth of the rows (200 to 1,000), leaving out missing values.
    Between points they are interpolated by Shepard's weights ``(1 / d - 1 / d_8)^2`` of the eight
    nearest, which have no jump; outside the range of the data they are those of its edge. What
    drifts along u in level and scale is constant afterwards, whatever its path.

    Parameters
    ----------
    features : int
        Number of columns of x.
    index_width : int
        Number of columns of the embedded index.
    """

    places: Tensor
    mean: Tensor
    spread: Tensor
    product: Tensor | None

    def __init__(self, features: int, index_width: int) -> None:
        super().__init__()
        self.register_buffer("places", torch.zeros(N_WINDOWS, index_width))
        self.register_buffer("mean", torch.zeros(N_WINDOWS, features))
        self.register_buffer("spread", torch.ones(N_WINDOWS, features))
        self.register_buffer("product", None, persistent=False)

    def make_traceable(self) -> None:
        """Write out the product by which `torch.cdist` finds its distances, for any number of rows.

        Its digits decide between places that are nearly as near, so they are to be the same.
        """
        lengths = self.places.square().sum(1, keepdim=True)
        product = torch.cat([self.places, torch.ones_like(lengths), lengths], dim=1).T
        self.product = product.contiguous()

    @torch.no_grad()
    def fit(self, x: Tensor, index: Tensor, present: Tensor | None = None) -> Self:
        """Find the windows in the rows of x; ``present`` tells which values are not missing."""
        order = index[:, 0].argsort(stable=True)  # so that thinning takes from everywhere
        subset = order[evenly_spaced(len(order), MAX_WINDOW_FIT_ROWS)]
        rows, e = x[subset].double(), index[subset].double()
        is_present = torch.ones_like(rows, dtype=torch.bool) if present is None else present[subset]
        rows = rows.masked_fill(~is_present, 0.0)
        places: Tensor = torch.unique(e[evenly_spaced(len(e), N_WINDOWS)], dim=0)
        _, nearest_rows = cKDTree(e.numpy()).query(
            places.numpy(), range(1, _window_size(len(subset)) + 1)
        )
        mean, spread = _moments(rows[None], is_present[None], rows.new_zeros(2, 1, rows.shape[1]))
        floor = torch.where(spread > 0, MIN_SPREAD_RATIO * spread, torch.ones_like(spread))
        overall = torch.stack([mean, spread])
        parts = torch.split(
            torch.from_numpy(nearest_rows), 8
        )  # a part of the gathered rows at a time
        moments = torch.cat(
            [torch.stack(_moments(rows[part], is_present[part], overall)) for part in parts], dim=1
        )
        empty = N_WINDOWS - len(places)  # u may have few values: the others are out of reach
        self.places = _pad_windows(places, empty, UNUSED_WINDOW_INDEX)
        self.mean = _pad_windows(moments[0], empty, 0.0)
        self.spread = _pad_windows(torch.maximum(moments[1], floor), empty, 1.0)
        return self

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        mean, spread = self._moments_at(index)
        return ((x - mean) / spread).clamp(-MAX_ABS_OUTPUT, MAX_ABS_OUTPUT)

    def means_at(self, index: Tensor) -> Tensor:
        """The mean of each column at these places along the index."""
        return self._moments_at(index)[0]

    def window_rows(self, n_rows: int) -> int:
        """How many rows a window has where so many are fitted."""
        return _window_size(min(n_rows, MAX_WINDOW_FIT_ROWS))

    def _moments_at(self, index: Tensor) -> tuple[Tensor, Tensor]:
        distances = self._distances_to_windows(index)
        distance, nearest_windows = distances.topk(N_MIXED_WINDOWS, largest=False)
        reach = distance[:, -1:].clamp(min=1e-6)
        share = ((reach - distance) / (reach * distance.clamp(min=1e-6))).square() + 1e-12
        share = (share / share.sum(1, keepdim=True))[:, None]
        mean, spread = share @ self.mean[nearest_windows], share @ self.spread[nearest_windows]
        return mean[:, 0], spread[:, 0]

    def _distances_to_windows(self, index: Tensor) -> Tensor:
        if self.product is None:
            return torch.cdist(index, self.places)
        squares = (index * index).unbind(1)  # not square: onnxruntime rounds its powers otherwise
        lengths = sum(squares[1:], start=squares[0])[:, None]
        padded = torch.cat([-2 * index, lengths, torch.ones_like(lengths)], dim=1)
        return (padded @ self.product).clamp(min=0).sqrt()


class CenteringLayer(WindowsLayer):
    """``x -> x - m(u)``: the mean of the rows whose index is nearest to u, and no scaling.

    Parameters
    ----------
    features : int
        Number of columns of x.
    index_width : int
        Number of columns of the embedded index.
    """

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        return x - self.means_at(index)


def _pad_windows(values: Tensor, n_empty: int, fill_value: float) -> Tensor:
    return nn.functional.pad(values, (0, 0, 0, n_empty), value=fill_value).float()


def _window_size(n_rows: int) -> int:
    """A sixteenth of the rows within bounds: wide enough for steady means, small beside u."""
    return min(
        n_rows, max(2, min(n_rows // 4, MAX_WINDOW_ROWS, max(MIN_WINDOW_ROWS, n_rows // 16)))
    )


def _moments(rows: Tensor, is_present: Tensor, fallback: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and spread of each window's values that are there, shape ``(windows, features)``.

    Values that are not there must be 0.
    """
    count = is_present.sum(1)
    mean = rows.sum(1) / count.clamp(min=1)
    variance = ((rows - mean[:, None]).square() * is_present).sum(1) / count.clamp(min=1)
    has_enough = count >= 2
    return torch.where(has_enough, mean, fallback[0]), torch.where(
        has_enough, variance.sqrt(), fallback[1]
    )
