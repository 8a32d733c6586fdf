"""What every space is, and the cells that cover one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from cida.scratch import evenly_spaced, filled, subsample

__all__ = [
    "MAX_ANCHOR_ROWS",
    "TWO_PI",
    "Bins",
    "ColumnSpace",
    "Space",
    "equal_width_bins",
    "evenly_spaced",
]

TWO_PI = 2 * math.pi
MAX_ANCHOR_ROWS = 20_000  # enough to place anchors on


@dataclass(frozen=True)
class Bins:
    """Cells along u: the cell of each row, and each cell's bounds, shape ``(cells, width)``."""

    cell_of_row: Tensor
    lower: Tensor
    upper: Tensor

    def __len__(self) -> int:
        return len(self.lower)


class Space(ABC):
    """Where u lives: its scaling, its embedding and its metric."""

    @property
    @abstractmethod
    def width(self) -> int:
        """How many raw columns u has."""

    @property
    @abstractmethod
    def embedding_width(self) -> int:
        """How many numbers the networks see."""

    @property
    @abstractmethod
    def periods(self) -> tuple[float, ...]:
        """The period of each coordinate, 0 where it does not wrap."""

    @property
    @abstractmethod
    def column_spaces(self) -> tuple[ColumnSpace, ...]:
        """The space of each raw column."""

    @abstractmethod
    def fit(self, u: Tensor) -> Self:
        """A copy of this space, scaled to the rows of u."""

    @abstractmethod
    def metric_coordinates(self, u: Tensor) -> Tensor:
        """Scaled numbers in which the metric is measured, shape ``(rows, width)``."""

    @abstractmethod
    def embed(self, u: Tensor) -> Tensor:
        """What the networks see, shape ``(rows, embedding_width)``, in the dtype of u."""

    @abstractmethod
    def unembed(self, embedding: Tensor) -> Tensor:
        """The raw index of an embedding; inverts `embed` (up to whole periods)."""

    @abstractmethod
    def make_anchors(self, u: Tensor, count: int) -> Tensor:
        """About ``count`` raw index values that cover the rows of u."""

    @abstractmethod
    def make_bins(self, u: Tensor, count: int) -> Bins:
        """About ``count`` cells that cover the rows of u."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `space_from_dict` reads them back."""

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        """The metric: ``sqrt(sum_j wrap(a_j - b_j)^2)``, every row of a against every row of b."""
        difference = self.metric_coordinates(a)[:, None, :] - self.metric_coordinates(b)[None, :, :]
        for column, period in enumerate(self.periods):
            if period:
                gap = difference[..., column]
                difference[..., column] = gap - period * torch.round(gap / period)
        if self.width == 1:  # the common case, and sqrt(d^2) would lose digits
            return difference[..., 0].abs()
        return difference.square().sum(-1).sqrt()

    def distance_to_set(self, u: Tensor, reference: Tensor) -> Tensor:
        """The distance from each row of u to the nearest row of ``reference``."""
        # Each value once: a tree of very many equal points is a list, and slow.
        points = self._wrap_coordinates(subsample(reference))
        points = np.unique(points)[:, None] if self.width == 1 else np.unique(points, axis=0)
        tree = cKDTree(points, boxsize=np.array(self.periods))

        def nearest_distance(part: slice) -> Tensor:
            distances, _ = tree.query(self._wrap_coordinates(u[part]))
            return torch.from_numpy(np.asarray(distances, dtype=np.float64))

        return filled(len(u), nearest_distance)

    def mean(self, u: Tensor) -> Tensor:
        """The mean through the embedding, shape ``(1, width)``: circular where u is."""
        return self.unembed(self.embed(u).mean(0, keepdim=True))

    def _wrap_coordinates(self, u: Tensor) -> np.ndarray[Any, Any]:
        """Coordinates inside one period, as the k-d tree wants them."""
        coordinates = self.metric_coordinates(u).double().cpu().numpy().copy()
        for column, period in enumerate(self.periods):
            if period:
                inside = np.mod(coordinates[:, column], period)
                coordinates[:, column] = np.where(inside >= period, 0.0, inside)
        return coordinates


class ColumnSpace(Space):
    """A space of one raw column."""

    @property
    @abstractmethod
    def raw_units_per_distance(self) -> float:
        """How many raw units one unit of distance is."""

    @property
    def width(self) -> int:
        return 1

    @property
    def column_spaces(self) -> tuple[ColumnSpace, ...]:
        return (self,)


def equal_width_bins(u: Tensor, low: float, high: float, count: int) -> Bins:
    """``count`` cells of one width from low to high; rows beyond fall into the outer ones."""
    edges = torch.linspace(low, high, count + 1, dtype=torch.float64)

    def cells(part: slice) -> Tensor:
        return torch.bucketize(u[part, 0].double().contiguous(), edges[1:-1], right=True)

    return Bins(filled(len(u), cells), edges[:-1, None], edges[1:, None])
