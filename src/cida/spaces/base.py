"""The contract of a space, and the cells that cover one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from cida.indexing import subsample

__all__ = ["MAX_ANCHOR_ROWS", "TWO_PI", "Bins", "ColumnSpace", "Space", "equal_width_bins"]

TWO_PI = 2 * math.pi
MAX_ANCHOR_ROWS = 20_000  # enough to place anchors on


@dataclass(frozen=True)
class Bins:
    """Cells along the domain index, and the cell of each row.

    Parameters
    ----------
    cell_of_row : Tensor of shape (rows,)
        The number of the cell that each row falls into.
    lower : Tensor of shape (cells, width)
        The lower bound of each cell in raw index units.
    upper : Tensor of shape (cells, width)
        The upper bound of each cell in raw index units. On a periodic index it exceeds the period
        where a cell wraps.
    """

    cell_of_row: Tensor
    lower: Tensor
    upper: Tensor

    def __len__(self) -> int:
        return len(self.lower)


class Space(ABC):
    """The geometry of the domain index: its scaling, its embedding and its metric.

    Spaces are immutable: `fit` returns a scaled copy. All tensors of index values have the shape
    ``(rows, width)`` and hold raw values, as the user gave them, unless stated otherwise.

    See Also
    --------
    Line : A number on the real line.
    Periodic : A number on a circle.
    Product : Several columns at once.
    """

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of raw columns of the index."""

    @property
    @abstractmethod
    def embedding_width(self) -> int:
        """Number of columns that the networks see."""

    @property
    @abstractmethod
    def periods(self) -> tuple[float, ...]:
        """The period of each metric coordinate; 0 where it does not wrap."""

    @property
    @abstractmethod
    def column_spaces(self) -> tuple[ColumnSpace, ...]:
        """The space of each raw column."""

    @abstractmethod
    def fit(self, u: Tensor) -> Self:
        """Return a copy of this space, scaled to the rows of u.

        Parameters
        ----------
        u : Tensor of shape (rows, width)
            Raw index values.

        Returns
        -------
        Space
            A fitted space of the same class.
        """

    @abstractmethod
    def metric_coordinates(self, u: Tensor) -> Tensor:
        """Return the scaled numbers in which distances are measured.

        Parameters
        ----------
        u : Tensor of shape (rows, width)
            Raw index values.

        Returns
        -------
        Tensor of shape (rows, width)
            One scaled number for each raw column.
        """

    @abstractmethod
    def embed(self, u: Tensor) -> Tensor:
        """Return what the networks see of the index.

        Parameters
        ----------
        u : Tensor of shape (rows, width)
            Raw index values.

        Returns
        -------
        Tensor of shape (rows, embedding_width)
            The embedding, in the dtype of u.
        """

    @abstractmethod
    def unembed(self, embedding: Tensor) -> Tensor:
        """Return the raw index of an embedding; the inverse of `embed`, up to whole periods.

        Parameters
        ----------
        embedding : Tensor of shape (rows, embedding_width)
            What `embed` returned, or a mean of such rows.

        Returns
        -------
        Tensor of shape (rows, width)
            Raw index values.
        """

    @abstractmethod
    def make_anchors(self, u: Tensor, count: int) -> Tensor:
        """Return about ``count`` points that cover the rows of u.

        Parameters
        ----------
        u : Tensor of shape (rows, width)
            Raw index values.
        count : int
            How many points to return. There are fewer if u has fewer distinct values.

        Returns
        -------
        Tensor of shape (anchors, width)
            Raw index values.
        """

    @abstractmethod
    def make_bins(self, u: Tensor, count: int) -> Bins:
        """Divide the rows of u into about ``count`` cells.

        Parameters
        ----------
        u : Tensor of shape (rows, width)
            Raw index values.
        count : int
            How many cells to make.

        Returns
        -------
        Bins
            The cell of each row, and the bounds of each cell.
        """

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return values for JSON, from which `space_from_dict` makes the space again.

        Returns
        -------
        dict
            The kind of the space and its parameters.
        """

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        """``sqrt(sum_j wrap(a_j - b_j)^2)``: the distance of every row of a to every row of b.

        Parameters
        ----------
        a : Tensor of shape (n, width)
            Raw index values.
        b : Tensor of shape (m, width)
            Raw index values.

        Returns
        -------
        Tensor of shape (n, m)
            Distances in metric coordinates; the shorter way round where a column wraps.
        """
        difference = self.metric_coordinates(a)[:, None, :] - self.metric_coordinates(b)[None, :, :]
        for column, period in enumerate(self.periods):
            if period:
                gap = difference[..., column]
                difference[..., column] = gap - period * torch.round(gap / period)
        if self.width == 1:  # the common case, and sqrt(d^2) would lose digits
            return difference[..., 0].abs()
        return difference.square().sum(-1).sqrt()

    def distance_to_set(self, u: Tensor, reference: Tensor) -> Tensor:
        """Return the distance from each row of u to the nearest row of a reference.

        Parameters
        ----------
        u : Tensor of shape (rows, width)
            Raw index values.
        reference : Tensor of shape (references, width)
            Raw index values, such as those of the source rows.

        Returns
        -------
        Tensor of shape (rows,)
            Distances in metric coordinates, as float64.
        """
        # Each value once: a tree of very many equal points is a list, and slow.
        points = self._wrap_coordinates(subsample(reference))
        points = np.unique(points)[:, None] if self.width == 1 else np.unique(points, axis=0)
        tree = cKDTree(points, boxsize=np.array(self.periods))
        distances, _ = tree.query(self._wrap_coordinates(u))
        return torch.from_numpy(np.asarray(distances, dtype=np.float64))

    def mean(self, u: Tensor) -> Tensor:
        """Return the mean of u through the embedding: circular where the index is.

        Parameters
        ----------
        u : Tensor of shape (rows, width)
            Raw index values.

        Returns
        -------
        Tensor of shape (1, width)
            One raw index value.
        """
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
    """A space of one raw column: what `Line` and `Periodic` share."""

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
    """Return ``count`` cells of equal width; rows outside low to high fall into the outer ones."""
    edges = torch.linspace(low, high, count + 1, dtype=torch.float64)
    cell_of_row = torch.bucketize(u[:, 0].double().contiguous(), edges[1:-1], right=True)
    return Bins(cell_of_row, edges[:-1, None], edges[1:, None])
