"""An index on a circle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from cida.scratch import few, filled
from cida.space.base import TURN, Bins, Column, even_bins

__all__ = ["Periodic"]


@dataclass(frozen=True)
class Periodic(Column):
    """u on a circle: degrees (360), hours (24), days of the year (365.25).

    ``coordinate = 2 pi (u mod period) / period``, ``embedding = (cos, sin)`` of it,
    distance = the shorter arc in radians.
    """

    period: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.period) and self.period > 0):
            raise ValueError(
                f"period must be a positive number, got {self.period}; "
                "use 360 for degrees, 24 for hours, 365.25 for days of the year."
            )

    @property
    def embedding_width(self) -> int:
        return 2

    @property
    def turns(self) -> tuple[float, ...]:
        return (TURN,)

    @property
    def unit(self) -> float:
        return self.period / TURN

    def fit(self, u: Tensor) -> Self:
        return self

    def coordinates(self, u: Tensor) -> Tensor:
        # Reduced first: angles of an index many periods away would lose their digits.
        return torch.remainder(u, self.period) * (TURN / self.period)

    def embed(self, u: Tensor) -> Tensor:
        angle = self.coordinates(u)
        return torch.cat([angle.cos(), angle.sin()], dim=1)

    def unembed(self, embedding: Tensor) -> Tensor:
        angle = torch.atan2(embedding[:, 1:2], embedding[:, 0:1])
        return torch.remainder(angle * (self.period / TURN), self.period)

    def anchors(self, u: Tensor, count: int) -> Tensor:
        start, length = self._arc(u, count)
        steps = count if length == self.period else count - 1
        places = start + torch.arange(count, dtype=torch.float64) * (length / steps)
        return torch.remainder(places, self.period)[:, None]

    def bins(self, u: Tensor, count: int) -> Bins:
        """Cells along the arc that the rows cover; ``hi`` passes the period where a cell wraps."""
        start, length = self._arc(u, count)

        def along(part: slice) -> Tensor:
            found = torch.remainder(u[part].double() - start, self.period)
            if length < self.period:
                # Rounding may put the start of the arc a hair before itself: a whole turn on.
                found = torch.where(found > (length + self.period) / 2, 0.0, found)
            return found

        cells = even_bins(filled(len(u), along), 0.0, length, count)
        return Bins(cells.rows, cells.lo + start, cells.hi + start)

    def _arc(self, u: Tensor, count: int) -> tuple[float, float]:
        """Start and length of the arc that the rows cover: all but a gap of over two cells."""
        places: Tensor = torch.unique(torch.remainder(few(u)[:, 0].double(), self.period))
        gaps = torch.roll(places, -1) - places
        gaps[-1] += self.period
        widest = int(gaps.argmax())
        gap = float(gaps[widest])
        if gap <= 2 * self.period / count or len(places) == 1:
            return 0.0, self.period
        return float(places[(widest + 1) % len(places)]), self.period - gap

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "periodic", "period": self.period}
