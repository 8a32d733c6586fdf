"""Several index columns at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from cida.scratch import filled, parts
from cida.space.base import ANCHOR_ROWS, Bins, Column, Space, thinned

__all__ = ["Product"]


@dataclass(frozen=True)
class Product(Space):
    """Several index columns at once: latitude and longitude, age and hour of day.

    The distance is Euclidean over the distances of the parts; anchors are k-means centres in
    that metric, since a grid grows with the power of the width.
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
    def turns(self) -> tuple[float, ...]:
        return tuple(turn for part in self.parts for turn in part.turns)

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for part in self.parts for column in part.columns)

    def fit(self, u: Tensor) -> Self:
        columns = self._split(u)
        return type(self)([p.fit(c) for p, c in zip(self.parts, columns, strict=True)])

    def coordinates(self, u: Tensor) -> Tensor:
        columns = zip(self.parts, self._split(u), strict=True)
        return torch.cat([part.coordinates(column) for part, column in columns], dim=1)

    def embed(self, u: Tensor) -> Tensor:
        columns = zip(self.parts, self._split(u), strict=True)
        return torch.cat([part.embed(column) for part, column in columns], dim=1)

    def unembed(self, embedding: Tensor) -> Tensor:
        pieces = torch.split(embedding, [part.embedding_width for part in self.parts], dim=1)
        raw = [part.unembed(piece) for part, piece in zip(self.parts, pieces, strict=True)]
        return torch.cat(raw, dim=1)

    def anchors(self, u: Tensor, count: int) -> Tensor:
        return _k_means(self, u.double()[thinned(len(u), ANCHOR_ROWS)], count)

    def bins(self, u: Tensor, count: int) -> Bins:
        """The cells of the k-means centres; ``lo`` and ``hi`` bound the rows of each in a box."""
        centres = self.anchors(u, count)

        def nearest(part: slice) -> Tensor:
            pieces = torch.split(u[part], 8192)
            return torch.cat([self.distance(piece, centres).argmin(1) for piece in pieces])

        cells = filled(len(u), nearest)
        lo = u.new_full((len(centres), u.shape[1]), torch.inf)
        hi = -lo
        for part in parts(len(u)):
            for cell in range(len(centres)):
                mine = u[part][cells[part] == cell]
                lo[cell] = torch.cat([lo[cell, None], mine]).min(0).values
                hi[cell] = torch.cat([hi[cell, None], mine]).max(0).values
        taken = lo[:, 0] <= hi[:, 0]
        number = taken.cumsum(0) - 1  # of the cells that have a row
        return Bins(filled(len(u), lambda part: number[cells[part]]), lo[taken], hi[taken])

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "product", "parts": [part.to_dict() for part in self.parts]}

    def _split(self, u: Tensor) -> tuple[Tensor, ...]:
        return torch.split(u, [part.width for part in self.parts], dim=1)


def _k_means(space: Space, u: Tensor, count: int, rounds: int = 25) -> Tensor:
    """Lloyd's algorithm in the metric of the space, with k-means++ seeding from a fixed seed."""
    generator = torch.Generator().manual_seed(0)
    points: Tensor = torch.unique(u, dim=0)
    if len(points) <= count:
        return points
    centres = u[torch.randint(len(u), (1,), generator=generator)]
    trials = 2 + int(math.log(count))  # greedy k-means++: the best of a few draws each time
    nearest = space.distance(u, centres).square()
    while len(centres) < count and float(nearest.max()) > 0:
        pick = torch.multinomial(nearest[:, 0], trials, replacement=True, generator=generator)
        after = torch.minimum(nearest, space.distance(u, u[pick]).square())
        best = after.sum(0).argmin()[None]
        centres = torch.cat([centres, u[pick[best]]])
        nearest = after[:, best]
    for _ in range(rounds):
        owner = space.distance(u, centres).argmin(1)
        owned = [u[owner == cell] for cell in range(len(centres))]
        moved = torch.cat([space.mean(mine) for mine in owned if len(mine)])
        if len(moved) == len(centres) and torch.equal(moved, centres):
            break
        centres = moved
    return centres
