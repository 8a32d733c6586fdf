"""The directions of an encoding that a test of independence looks along, and what it looks within.

Tests along few directions see less, tests along many drown it in noise. So there are several
families: all principal components at once, the leading ones, and single directions with bends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

__all__ = ["BENDS", "Directions", "Strata", "directions", "some_rows", "uncorrelated"]

Array = np.ndarray[Any, Any]

# Functions along one direction: the square of its normal scores and cosines of its ranks, those
# that are even about the middle and those that are odd in turn, coarse ones first.
WAVES = (0, 3, 2, 5, 4, 7, 6, 9)  # half turns; 0 stands for the square
BENDS = len(WAVES)
MOST_AXES = 64
MAIN = 0.99  # of the variance of z
LEADING = 16  # principal components that are looked along singly
MIXED = 4  # leading axes of which mixtures are looked along
MIXTURES = 32
MOST_CURVED = 32  # axes whose products are looked at: 528 of them
ROUNDING = 1e-6  # of the largest variance: below, float32 encodings hold rounding alone
FEWEST_OF_NUMBERS = 20  # distinct predicted numbers; fewer are classes
ROWS_A_BIN = 40
MOST_BINS = 50


def some_rows(rows: int, most: int) -> Array:
    """At most ``most`` row numbers in order, drawn: even steps may meet a cycle in the table."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).permutation(rows)[:most])


@dataclass(frozen=True)
class Strata:
    """Rows among which u may be shuffled: those of one predicted class, or of one bin of numbers.

    ``along`` is the predicted number: within a bin it still moves a little, and so its line is
    taken off there as well as the mean.
    """

    codes: Array
    along: Array | None = None

    @classmethod
    def whole(cls, rows: int) -> Strata:
        """All rows as one."""
        return cls(np.zeros(rows, dtype=np.int64))

    @classmethod
    def of(cls, predicted: Array) -> Strata:
        """One for each predicted class; of many different numbers, bins with as many rows each."""
        values, codes = np.unique(predicted, return_inverse=True)
        if predicted.dtype.kind != "f" or len(values) < FEWEST_OF_NUMBERS:
            return cls(codes.reshape(-1))
        bins = int(np.clip(len(predicted) // ROWS_A_BIN, 1, MOST_BINS))
        place = (rankdata(predicted) - 0.5) / len(predicted)
        return cls((place * bins).astype(np.int64), predicted.astype(np.float64))

    def __len__(self) -> int:
        return len(np.unique(self.codes))

    @property
    def taken(self) -> int:
        """How many means and slopes are taken off."""
        return len(self) * (1 if self.along is None else 2)

    def __getitem__(self, rows: Array) -> Strata:
        return Strata(self.codes[rows], None if self.along is None else self.along[rows])

    def groups(self) -> list[Array]:
        """The rows of each."""
        order = np.argsort(self.codes, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(self.codes[order])) + 1)

    def without(self, values: Array) -> Array:
        """``values``, shape (rows, columns), with each stratum's mean (and line) taken off."""
        left: Array = np.array(values)
        for rows in self.groups():
            left[rows] -= left[rows].mean(0)
            if self.along is not None:
                slope = (self.along[rows] - self.along[rows].mean()).astype(left.dtype)
                square = slope @ slope
                if square > 0:
                    left[rows] -= np.outer(slope, slope @ left[rows]) / square
        return left

    def shuffles(self, count: int, apart: Array, generator: np.random.Generator) -> Array:
        """``count`` orders of the rows that keep strata, and rows within and without ``apart``."""
        orders = np.tile(np.arange(len(self.codes)), (count, 1))
        for rows in Strata(2 * self.codes + apart).groups():
            orders[:, rows] = generator.permuted(np.tile(rows, (count, 1)), axis=1)
        return orders


@dataclass(frozen=True)
class Directions:
    """Uncorrelated ``axes``, largest variance first, ``single`` directions, their ``bends``, and
    ``products`` of axes.

    All are orthogonal to the strata and of mean square 1; bends also to all axes. Bends have the
    shape ``(single directions * BENDS, rows)``, the rest ``(columns, rows)``. ``curved`` axes have
    products, ``main`` ones hold 99 % of the variance.
    """

    axes: Array
    single: Array
    bends: Array
    products: Array
    curved: int
    main: int


def uncorrelated(values: Array, most: int | None = None, tolerance: float = ROUNDING) -> Array:
    """Principal components of centred columns at mean square 1, those that have a variance."""
    return _principal(values, most, tolerance)[0]


def _principal(values: Array, most: int | None, tolerance: float) -> tuple[Array, Array]:
    left, sizes, _ = np.linalg.svd(values, full_matrices=False)
    there = sizes**2 > tolerance * max(float(sizes[:1].sum()) ** 2, 1e-300)
    kept = left[:, there][:, :most] * np.sqrt(len(values))
    # Which way a component points is chance; the heavier tail is the same after a change of units.
    return kept * np.where((kept**3).sum(0) < 0, -1, 1), sizes**2


def directions(z: Array, strata: Strata, generator: np.random.Generator) -> Directions:
    """The directions of z, shape (rows, columns), whose columns have mean square 1."""
    inside = strata.without(z)
    size = np.sqrt((inside**2).mean(0))
    inside = inside[:, size > ROUNDING**0.5] / size[size > ROUNDING**0.5]
    axes, variances = _principal(inside, min(MOST_AXES, len(z) // 10), ROUNDING)
    main = int((np.cumsum(variances) < MAIN * variances.sum()).sum()) + 1
    single = _single(inside, axes, generator)
    bends = _bends(single, axes, strata)
    curved = min(axes.shape[1], MOST_CURVED)
    first, second = np.triu_indices(curved)
    products = strata.without(axes[:, first] * axes[:, second])
    parts = (_columns(axes), _columns(single), bends, _columns(products))
    return Directions(*parts, curved, min(main, axes.shape[1]))


def _columns(values: Array) -> Array:
    return np.ascontiguousarray(values.T, dtype=np.float32)


def _single(columns: Array, axes: Array, generator: np.random.Generator) -> Array:
    """Columns, leading axes, and mixtures of the first few axes."""
    if axes.shape[1] == 1:
        return axes
    mixtures = generator.normal(size=(min(MIXED, axes.shape[1]), MIXTURES))
    mixed = axes[:, :MIXED] @ (mixtures / np.linalg.norm(mixtures, axis=0))
    return np.concatenate([columns, axes[:, :LEADING], mixed], axis=1)


def _bends(single: Array, axes: Array, strata: Strata) -> Array:
    """The functions `WAVES` along each direction, with lines along any axis taken off."""
    rows = len(single)
    place = ((rankdata(single, axis=0) - 0.5) / rows).astype(np.float32)
    axes = axes.astype(np.float32)
    waves = [np.cos(k * np.pi * place) if k else ndtri(place) ** 2 for k in WAVES]
    functions = np.stack(waves, axis=2).reshape(rows, -1)
    functions = strata.without(functions)
    functions -= axes @ (axes.T @ functions / rows)
    parts = functions.reshape(rows, -1, BENDS).transpose(1, 0, 2)
    straight, triangle = np.linalg.qr(parts)
    # A column of two values has no bends: what is left of them is rounding.
    there = np.abs(np.diagonal(triangle, axis1=1, axis2=2)) > 1e-3 * np.sqrt(rows)
    straight *= there[:, None, :] * np.float32(np.sqrt(rows))
    straight = straight.transpose(0, 2, 1)
    return np.ascontiguousarray(straight.reshape(-1, rows), dtype=np.float32)
