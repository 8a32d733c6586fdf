"""An index on a circle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from cida.indexing import subsample
from cida.spaces.base import TWO_PI, Bins, ColumnSpace, equal_width_bins

__all__ = ["Periodic"]


@dataclass(frozen=True)
class Periodic(ColumnSpace):
    """``embedding = (cos, sin)(2 pi u / period)``: an index on a circle, such as angles or hours.

    The coordinate is ``2 pi (u mod period) / period`` and the distance is the shorter arc, in
    radians. The embedding has no jump where one period ends and the next begins.

    Parameters
    ----------
    period : float
        Length of one turn in raw units: 360 for degrees, 24 for hours, 365.25 for days of the year.

    Raises
    ------
    ValueError
        If the period is not a positive finite number.

    Examples
    --------
    >>> import torch
    >>> from cida import Periodic
    >>> hours = Periodic(24)
    >>> near_midnight = hours.distance(torch.tensor([[23.0]]), torch.tensor([[1.0]]))
    >>> round(float(near_midnight) * 24 / (2 * torch.pi), 3)
    2.0
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
    def periods(self) -> tuple[float, ...]:
        return (TWO_PI,)

    @property
    def raw_units_per_distance(self) -> float:
        return self.period / TWO_PI

    def fit(self, u: Tensor) -> Self:
        return self

    def metric_coordinates(self, u: Tensor) -> Tensor:
        # Reduced first: angles of an index many periods away would lose their digits.
        return torch.remainder(u, self.period) * (TWO_PI / self.period)

    def embed(self, u: Tensor) -> Tensor:
        angle = self.metric_coordinates(u)
        return torch.cat([angle.cos(), angle.sin()], dim=1)

    def unembed(self, embedding: Tensor) -> Tensor:
        angle = torch.atan2(embedding[:, 1:2], embedding[:, 0:1])
        return torch.remainder(angle * (self.period / TWO_PI), self.period)

    def make_anchors(self, u: Tensor, count: int) -> Tensor:
        start, length = self._covered_arc(u, count)
        steps = count if length == self.period else count - 1
        positions = start + torch.arange(count, dtype=torch.float64) * (length / steps)
        return torch.remainder(positions, self.period)[:, None]

    def make_bins(self, u: Tensor, count: int) -> Bins:
        """Cells along the arc that the rows cover; ``upper`` exceeds the period where a cell wraps.

        Parameters
        ----------
        u : Tensor of shape (rows, 1)
            Raw index values.
        count : int
            How many cells to make.

        Returns
        -------
        Bins
            The cell of each row, and the bounds of each cell.
        """
        start, length = self._covered_arc(u, count)
        positions = torch.remainder(u.double() - start, self.period)
        if length < self.period:
            # Rounding may put the start of the arc a hair before itself: a whole turn on.
            positions = torch.where(positions > (length + self.period) / 2, 0.0, positions)
        cells = equal_width_bins(positions, 0.0, length, count)
        return Bins(cells.cell_of_row, cells.lower + start, cells.upper + start)

    def _covered_arc(self, u: Tensor, count: int) -> tuple[float, float]:
        """Start and length of the arc that the rows cover: all but a gap of over two cells."""
        positions: Tensor = torch.unique(torch.remainder(subsample(u)[:, 0].double(), self.period))
        gaps = torch.roll(positions, -1) - positions
        gaps[-1] += self.period
        widest = int(gaps.argmax())
        gap = float(gaps[widest])
        if gap <= 2 * self.period / count or len(positions) == 1:
            return 0.0, self.period
        return float(positions[(widest + 1) % len(positions)]), self.period - gap

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "periodic", "period": self.period}
