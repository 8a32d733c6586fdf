"""Several index columns at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from cida.indexing import evenly_spaced
from cida.spaces.base import MAX_ANCHOR_ROWS, Bins, ColumnSpace, Space

__all__ = ["Product"]

DISTANCE_CHUNK_ROWS = 8192


@dataclass(frozen=True)
class Product(Space):
    """Several index columns at once, such as latitude and longitude, or age and hour of day.

    The distance is Euclidean over the distances of the parts. Anchors are k-means centres in that
    metric, since the size of a grid grows exponentially with the number of columns.

    Parameters
    ----------
    parts : sequence of Space
        One space for each column of the index (or group of columns), in order.

    Raises
    ------
    ValueError
        If there are no parts.

    Examples
    --------
    >>> from cida import Line, Periodic, Product
    >>> space = Product([Line(), Periodic(24)])
    >>> space.width, space.embedding_width
    (2, 3)
    """

    parts: tuple[Space, ...]

    def __init__(self, parts: Sequence[Space]) -> None:
        if not parts:
            raise ValueError("parts is empty; give Product one space for each column of u.")
        object.__setattr__(self, "parts", tuple(parts))

    @property
    def width(self) -> int:
        return sum(part.width for part in self.parts)

    @property
    def embedding_width(self) -> int:
        return sum(part.embedding_width for part in self.parts)

    @property
    def periods(self) -> tuple[float, ...]:
        return tuple(turn for part in self.parts for turn in part.periods)

    @property
    def column_spaces(self) -> tuple[ColumnSpace, ...]:
        return tuple(column for part in self.parts for column in part.column_spaces)

    def fit(self, u: Tensor) -> Self:
        columns = self._split(u)
        return type(self)([p.fit(c) for p, c in zip(self.parts, columns, strict=True)])

    def metric_coordinates(self, u: Tensor) -> Tensor:
        columns = zip(self.parts, self._split(u), strict=True)
        return torch.cat([part.metric_coordinates(column) for part, column in columns], dim=1)

    def embed(self, u: Tensor) -> Tensor:
        columns = zip(self.parts, self._split(u), strict=True)
        return torch.cat([part.embed(column) for part, column in columns], dim=1)

    def unembed(self, embedding: Tensor) -> Tensor:
        columns = torch.split(embedding, [part.embedding_width for part in self.parts], dim=1)
        raw = [part.unembed(piece) for part, piece in zip(self.parts, columns, strict=True)]
        return torch.cat(raw, dim=1)

    def make_anchors(self, u: Tensor, count: int) -> Tensor:
        return _k_means(self, u.double()[evenly_spaced(len(u), MAX_ANCHOR_ROWS)], count)

    def make_bins(self, u: Tensor, count: int) -> Bins:
        """Divide rows by their nearest k-means centre; bounds are the box around a cell's rows.

        Parameters
        ----------
        u : Tensor of shape (rows, width)
            Raw index values.
        count : int
            How many cells to make.

        Returns
        -------
        Bins
            The cell of each row, and the bounds of each cell. Empty cells are left out.
        """
        centres = self.make_anchors(u, count)
        chunks = torch.split(u, DISTANCE_CHUNK_ROWS)
        nearest = torch.cat([self.distance(chunk, centres).argmin(1) for chunk in chunks])
        occupied: Tensor
        occupied, cell_of_row = torch.unique(nearest, return_inverse=True)
        positions = cell_of_row[:, None].expand_as(u)
        empty = u.new_zeros((len(occupied), u.shape[1]))
        lower, upper = (
            empty.scatter_reduce(0, positions, u, bound, include_self=False)
            for bound in ("amin", "amax")
        )
        return Bins(cell_of_row, lower, upper)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "product", "parts": [part.to_dict() for part in self.parts]}

    def _split(self, u: Tensor) -> tuple[Tensor, ...]:
        return torch.split(u, [part.width for part in self.parts], dim=1)


def _k_means(space: Space, u: Tensor, count: int, max_iter: int = 25) -> Tensor:
    """Lloyd's algorithm in the metric of the space, with k-means++ seeding from a fixed seed."""
    generator = torch.Generator().manual_seed(0)
    points: Tensor = torch.unique(u, dim=0)
    if len(points) <= count:
        return points
    centres = u[torch.randint(len(u), (1,), generator=generator)]
    trials = 2 + int(math.log(count))  # greedy k-means++: the best of a few draws each time
    squared_distance = space.distance(u, centres).square()
    while len(centres) < count and float(squared_distance.max()) > 0:
        weights = squared_distance[:, 0]
        candidates = torch.multinomial(weights, trials, replacement=True, generator=generator)
        after = torch.minimum(squared_distance, space.distance(u, u[candidates]).square())
        best = after.sum(0).argmin()[None]
        centres = torch.cat([centres, u[candidates[best]]])
        squared_distance = after[:, best]
    for _ in range(max_iter):
        cell_of_row = space.distance(u, centres).argmin(1)
        rows_by_cell = [u[cell_of_row == cell] for cell in range(len(centres))]
        new_centres = torch.cat([space.mean(mine) for mine in rows_by_cell if len(mine)])
        if len(new_centres) == len(centres) and torch.equal(new_centres, centres):
            break
        centres = new_centres
    return centres
