"""An index on the real line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from cida.indexing import evenly_spaced
from cida.spaces.base import MAX_ANCHOR_ROWS, Bins, ColumnSpace, equal_width_bins

__all__ = ["Line"]


@dataclass(frozen=True)
class Line(ColumnSpace):
    """``coordinate = (u - centre) / scale``: an index on the real line, such as age, depth or time.

    `fit` sets centre and scale to the mean and standard deviation of u, so that V[u] = 1 and a
    value of ``lambda_d`` means the same for years and for seconds. The embedding is the coordinate
    itself.

    Parameters
    ----------
    centre : float, default 0.0
        The raw value at coordinate 0.
    scale : float, default 1.0
        Raw units per unit of the coordinate.

    Examples
    --------
    >>> import torch
    >>> from cida import Line
    >>> space = Line().fit(torch.tensor([[20.0], [40.0], [60.0]]))
    >>> space.centre
    40.0
    >>> space.embed(torch.tensor([[40.0]]))
    tensor([[0.]])
    """

    centre: float = 0.0
    scale: float = 1.0

    @property
    def embedding_width(self) -> int:
        return 1

    @property
    def periods(self) -> tuple[float, ...]:
        return (0.0,)

    @property
    def raw_units_per_distance(self) -> float:
        return self.scale

    def fit(self, u: Tensor) -> Self:
        u = u.double()
        low, high = float(u.min()), float(u.max())
        # Halves first: the mean and the spread of values near the largest float must not overflow.
        centre = low / 2 + high / 2
        half_range = high / 2 - low / 2
        if not half_range > 0:
            return replace(self, centre=centre, scale=1.0)
        scaled = (u - centre) / half_range
        centre += half_range * float(scaled.mean())
        return replace(self, centre=centre, scale=half_range * float(scaled.std(correction=0)))

    def metric_coordinates(self, u: Tensor) -> Tensor:
        return (u - self.centre) / self.scale

    def embed(self, u: Tensor) -> Tensor:
        return self.metric_coordinates(u)

    def unembed(self, embedding: Tensor) -> Tensor:
        return embedding * self.scale + self.centre

    def make_anchors(self, u: Tensor, count: int) -> Tensor:
        # A single stray value must not stretch all bins over empty ground.
        sample = u.double()[evenly_spaced(len(u), MAX_ANCHOR_ROWS)]
        low, high = torch.quantile(sample, torch.tensor([0.005, 0.995]).double())
        if not high > low:
            low, high = u.min(), u.max()
        return torch.linspace(float(low), float(high), count, dtype=torch.float64)[:, None]

    def make_bins(self, u: Tensor, count: int) -> Bins:
        return equal_width_bins(u, float(u.min()), float(u.max()), count)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "line", "centre": self.centre, "scale": self.scale}
