"""The geometry of the domain index u: all that depends on what u is.

A space turns raw index values, shape ``(rows, width)``, into

* *coordinates*: one scaled number a column, in which the metric is measured,
* the *embedding*: what networks see and what regression heads regress; the scaled number on a
  `Line`, ``(cos, sin)`` on a `Periodic` index, so that there is no seam,
* *anchors* and *bins*: points and cells that cover the index range.

Spaces are immutable. ``fit`` returns a new, scaled space and leaves the one it was called on alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

__all__ = [
    "Bins",
    "Line",
    "Periodic",
    "Product",
    "Space",
    "line_space",
    "space_from_dict",
    "thinned",
]

TURN = 2 * math.pi
ANCHOR_ROWS = 20_000  # enough to place anchors on


@dataclass(frozen=True)
class Bins:
    """Cells along u: the cell of each row, and each cell's bounds, shape ``(cells, width)``."""

    rows: Tensor
    lo: Tensor
    hi: Tensor

    def __len__(self) -> int:
        return len(self.lo)


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
    def turns(self) -> tuple[float, ...]:
        """The period of each coordinate, 0 where it does not wrap."""

    @property
    @abstractmethod
    def unit(self) -> float:
        """Raw units in one unit of distance; 1 where the columns have different units."""

    @abstractmethod
    def fit(self, u: Tensor) -> Self:
        """A copy of this space, scaled to the rows of u."""

    @abstractmethod
    def coordinates(self, u: Tensor) -> Tensor:
        """Scaled numbers in which the metric is measured, shape ``(rows, width)``."""

    @abstractmethod
    def embed(self, u: Tensor) -> Tensor:
        """What the networks see, shape ``(rows, embedding_width)``, in the dtype of u."""

    @abstractmethod
    def unembed(self, embedding: Tensor) -> Tensor:
        """The raw index of an embedding; inverts `embed` (up to whole periods)."""

    @abstractmethod
    def anchors(self, u: Tensor, count: int) -> Tensor:
        """About ``count`` raw index values that cover the rows of u."""

    @abstractmethod
    def bins(self, u: Tensor, count: int) -> Bins:
        """About ``count`` cells that cover the rows of u."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `space_from_dict` reads them back."""

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        """The metric: ``sqrt(sum_j wrap(a_j - b_j)^2)``, every row of a against every row of b."""
        difference = self.coordinates(a)[:, None, :] - self.coordinates(b)[None, :, :]
        for column, turn in enumerate(self.turns):
            if turn:
                gap = difference[..., column]
                difference[..., column] = gap - turn * torch.round(gap / turn)
        if self.width == 1:  # the common case, and sqrt(d^2) would lose digits
            return difference[..., 0].abs()
        return difference.square().sum(-1).sqrt()

    def distance_to_set(self, u: Tensor, reference: Tensor) -> Tensor:
        """The distance from each row of u to the nearest row of ``reference``."""
        tree = cKDTree(self._wrapped(reference), boxsize=np.array(self.turns))
        nearest, _ = tree.query(self._wrapped(u))
        return torch.from_numpy(np.asarray(nearest, dtype=np.float64))

    def mean(self, u: Tensor, weights: Tensor | None = None) -> Tensor:
        """The weighted mean through the embedding, shape ``(1, width)``: circular where u is."""
        embedding = self.embed(u)
        if weights is None:
            return self.unembed(embedding.mean(0, keepdim=True))
        share = (weights / weights.sum()).to(embedding.dtype)
        return self.unembed(share[None] @ embedding)

    def _wrapped(self, u: Tensor) -> np.ndarray[Any, Any]:
        """Coordinates inside one period, as the k-d tree wants them."""
        coordinates = self.coordinates(u).double().cpu().numpy().copy()
        for column, turn in enumerate(self.turns):
            if turn:
                inside = np.mod(coordinates[:, column], turn)
                coordinates[:, column] = np.where(inside >= turn, 0.0, inside)
        return coordinates


@dataclass(frozen=True)
class Line(Space):
    """u on the real line: age, depth, time. ``coordinate = (u - centre) / scale``.

    ``fit`` sets centre and scale to the mean and standard deviation, so that V[u] = 1 and one
    value of lambda_d means the same for years and for seconds.
    """

    centre: float = 0.0
    scale: float = 1.0

    @property
    def width(self) -> int:
        return 1

    @property
    def embedding_width(self) -> int:
        return 1

    @property
    def turns(self) -> tuple[float, ...]:
        return (0.0,)

    @property
    def unit(self) -> float:
        return self.scale

    def fit(self, u: Tensor) -> Self:
        u = u.double()
        low, high = float(u.min()), float(u.max())
        # Halves first: the mean and the spread of values near the largest float must not overflow.
        centre = low / 2 + high / 2
        reach = high / 2 - low / 2
        if not reach > 0:
            return replace(self, centre=centre, scale=1.0)
        inside = (u - centre) / reach
        spread = float(inside.std(correction=0))
        return replace(self, centre=centre + reach * float(inside.mean()), scale=reach * spread)

    def coordinates(self, u: Tensor) -> Tensor:
        return (u - self.centre) / self.scale

    def embed(self, u: Tensor) -> Tensor:
        return self.coordinates(u)

    def unembed(self, embedding: Tensor) -> Tensor:
        return embedding * self.scale + self.centre

    def anchors(self, u: Tensor, count: int) -> Tensor:
        # A single stray value must not stretch all bins over empty ground.
        low, high = torch.quantile(
            u.double()[thinned(len(u), ANCHOR_ROWS)], torch.tensor([0.005, 0.995]).double()
        )
        if not high > low:
            low, high = u.min(), u.max()
        return torch.linspace(float(low), float(high), count, dtype=torch.float64)[:, None]

    def bins(self, u: Tensor, count: int) -> Bins:
        return _even_bins(u, float(u.min()), float(u.max()), count)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "line", "centre": self.centre, "scale": self.scale}


@dataclass(frozen=True)
class Periodic(Space):
    """u on a circle: degrees (360), hours (24), days of the year (365.25).

    ``coordinate = 2 pi u / period``, ``embedding = (cos, sin)`` of it, distance = the shorter arc
    in radians.
    """

    period: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.period) and self.period > 0):
            raise ValueError(
                f"period must be a positive number, got {self.period}; "
                "use 360 for degrees, 24 for hours, 365.25 for days of the year."
            )

    @property
    def width(self) -> int:
        return 1

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
        return u * (TURN / self.period)

    def embed(self, u: Tensor) -> Tensor:
        # Reduced first: cos(2 pi u / period) loses all digits when u is many periods away.
        angle = self.coordinates(torch.remainder(u, self.period))
        return torch.cat([angle.cos(), angle.sin()], dim=1)

    def unembed(self, embedding: Tensor) -> Tensor:
        angle = torch.atan2(embedding[:, 1:2], embedding[:, 0:1])
        return torch.remainder(angle * (self.period / TURN), self.period)

    def anchors(self, u: Tensor, count: int) -> Tensor:
        return torch.arange(count, dtype=torch.float64)[:, None] * (self.period / count)

    def bins(self, u: Tensor, count: int) -> Bins:
        return _even_bins(torch.remainder(u, self.period), 0.0, self.period, count)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "periodic", "period": self.period}


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
    def unit(self) -> float:
        return 1.0

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
        centres = self.anchors(u, count)
        rows = torch.cat(
            [self.distance(piece, centres).argmin(1) for piece in torch.split(u, 8192)]
        )
        filled, rows = torch.unique(rows, return_inverse=True)
        members = [u[rows == cell] for cell in range(len(filled))]
        lo = torch.stack([member.min(0).values for member in members])
        hi = torch.stack([member.max(0).values for member in members])
        return Bins(rows, lo, hi)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "product", "parts": [part.to_dict() for part in self.parts]}

    def _split(self, u: Tensor) -> tuple[Tensor, ...]:
        return torch.split(u, [part.width for part in self.parts], dim=1)


def line_space(width: int) -> Space:
    """The space of u when nothing is known about it: a `Line`, or a `Product` of lines."""
    return Line() if width == 1 else Product([Line() for _ in range(width)])


def space_from_dict(values: Mapping[str, Any]) -> Space:
    """Reads what `Space.to_dict` wrote."""
    kind = values.get("kind")
    if kind == "line":
        return Line(float(values["centre"]), float(values["scale"]))
    if kind == "periodic":
        return Periodic(float(values["period"]))
    if kind == "product":
        return Product([space_from_dict(part) for part in values["parts"]])
    raise ValueError(f"the space kind {kind!r} is unknown; known are line, periodic and product.")


def thinned(rows: int, most: int) -> Tensor:
    """At most ``most`` of the numbers 0 .. rows - 1, evenly spaced, both ends included."""
    places: Tensor = torch.linspace(0, rows - 1, min(rows, most), dtype=torch.float64)
    return places.round().long()


def _even_bins(u: Tensor, low: float, high: float, count: int) -> Bins:
    edges = torch.linspace(low, high, count + 1, dtype=torch.float64)
    rows = torch.bucketize(u[:, 0].double().contiguous(), edges[1:-1], right=True)
    return Bins(rows, edges[:-1, None], edges[1:, None])


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
