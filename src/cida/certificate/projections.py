"""The directions of an encoding that a test of independence looks along, and what it looks within.

Tests along few directions see less, tests along many drown it in noise. So there are several
families: all principal components at once, the leading ones, and single directions with bends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from cida.array_types import Array

__all__ = ["N_BENDS", "Projections", "Strata", "compute_projections", "sample_rows", "whiten"]

# Functions along one direction: the square of its normal scores and cosines of its ranks, those
# that are even about the middle and those that are odd in turn, coarse ones first.
COSINE_HALF_TURNS = (0, 3, 2, 5, 4, 7, 6, 9)  # of each cosine; 0 stands for the square
N_BENDS = len(COSINE_HALF_TURNS)
MAX_COMPONENTS = 64
MAIN_VARIANCE_SHARE = 0.99  # of the variance of z
N_LEADING_COMPONENTS = 16  # principal components that are tested one by one
N_MIXED_COMPONENTS = 4  # leading components of which random mixtures are tested
N_MIXTURES = 32
MAX_PRODUCT_COMPONENTS = 32  # components whose 528 products are tested
VARIANCE_TOLERANCE = 1e-6  # of the largest variance: below, float32 encodings hold rounding alone
MIN_DISTINCT_NUMBERS = 20  # distinct predicted numbers; fewer are classes
MEAN_ROWS_PER_BIN = 40
MAX_STRATUM_BINS = 50


def sample_rows(n_rows: int, max_rows: int) -> Array:
    """At most ``most`` row numbers in order, drawn: even steps may meet a cycle in the table."""
    if n_rows <= max_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).permutation(n_rows)[:max_rows])


@dataclass(frozen=True)
class Strata:
    """Groups of rows within which u is permuted: predicted classes, or bins of predicted numbers.

    ``covariate`` is the predicted number: it still varies within a bin, so a regression line on it
    is subtracted there as well as the mean.
    """

    codes: Array
    covariate: Array | None = None

    @classmethod
    def single(cls, n_rows: int) -> Strata:
        """All rows in one stratum."""
        return cls(np.zeros(n_rows, dtype=np.int64))

    @classmethod
    def from_predictions(cls, predicted: Array) -> Strata:
        """One stratum per predicted class, or bins of equal size of many distinct numbers."""
        values, codes = np.unique(predicted, return_inverse=True)
        if predicted.dtype.kind != "f" or len(values) < MIN_DISTINCT_NUMBERS:
            return cls(codes.reshape(-1))
        bins = int(np.clip(len(predicted) // MEAN_ROWS_PER_BIN, 1, MAX_STRATUM_BINS))
        rank_share = (rankdata(predicted) - 0.5) / len(predicted)
        return cls((rank_share * bins).astype(np.int64), predicted.astype(np.float64))

    def __len__(self) -> int:
        return len(np.unique(self.codes))

    @property
    def n_removed_terms(self) -> int:
        """How many means and slopes are subtracted."""
        return len(self) * (1 if self.covariate is None else 2)

    def __getitem__(self, rows: Array) -> Strata:
        return Strata(self.codes[rows], None if self.covariate is None else self.covariate[rows])

    def groups(self) -> list[Array]:
        """The rows of each stratum."""
        order = np.argsort(self.codes, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(self.codes[order])) + 1)

    def residualize(self, values: Array) -> Array:
        """``values``, shape (rows, columns), minus each stratum's mean (and regression line)."""
        residual: Array = np.array(values)
        for rows in self.groups():
            residual[rows] -= residual[rows].mean(0)
            if self.covariate is not None:
                slope = (self.covariate[rows] - self.covariate[rows].mean()).astype(residual.dtype)
                if (square := slope @ slope) > 0:
                    residual[rows] -= np.outer(slope, slope @ residual[rows]) / square
        return residual

    def permutations(
        self, n_permutations: int, is_separate: Array, generator: np.random.Generator
    ) -> Array:
        """Orders that permute rows within strata, and separate rows only among themselves."""
        orders = np.tile(np.arange(len(self.codes)), (n_permutations, 1))
        for rows in Strata(2 * self.codes + is_separate).groups():
            orders[:, rows] = generator.permuted(np.tile(rows, (n_permutations, 1)), axis=1)
        return orders


@dataclass(frozen=True)
class Projections:
    """What z is tested along: uncorrelated components, single directions, bends and products.

    All are orthogonal to the strata and of mean square 1; bends also to all components. Components
    come in the order of their variance. Bends have the shape ``(directions * N_BENDS, rows)``, the
    rest ``(columns, rows)``. The first ``n_product_components`` have products, the first
    ``n_main_components`` hold 99 % of the variance.
    """

    components: Array
    directions: Array
    bends: Array
    products: Array
    n_product_components: int
    n_main_components: int


def whiten(
    values: Array, max_components: int | None = None, tolerance: float = VARIANCE_TOLERANCE
) -> Array:
    """Principal components of centred columns at mean square 1, those that have a variance."""
    return _principal(values, max_components, tolerance)[0]


def _principal(values: Array, max_components: int | None, tolerance: float) -> tuple[Array, Array]:
    left_vectors, singular_values, _ = np.linalg.svd(values, full_matrices=False)
    variances = singular_values**2
    has_variance = variances > tolerance * max(float(singular_values[:1].sum()) ** 2, 1e-300)
    components = left_vectors[:, has_variance][:, :max_components] * np.sqrt(len(values))
    # Which way a component points is chance; the heavier tail is the same after a change of units.
    return components * np.where((components**3).sum(0) < 0, -1, 1), variances


def compute_projections(z: Array, strata: Strata, generator: np.random.Generator) -> Projections:
    """The directions of z, shape (rows, columns), whose columns have mean square 1."""
    residual = strata.residualize(z)
    rms = np.sqrt((residual**2).mean(0))
    is_varying = rms > VARIANCE_TOLERANCE**0.5
    residual = residual[:, is_varying] / rms[is_varying]
    max_components = min(MAX_COMPONENTS, len(z) // 10)
    components, variances = _principal(residual, max_components, VARIANCE_TOLERANCE)
    n_main = int((np.cumsum(variances) < MAIN_VARIANCE_SHARE * variances.sum()).sum()) + 1
    directions = _single_directions(residual, components, generator)
    bends = _compute_bends(directions, components, strata)
    n_product_components = min(components.shape[1], MAX_PRODUCT_COMPONENTS)
    first, second = np.triu_indices(n_product_components)
    products = strata.residualize(components[:, first] * components[:, second])
    parts = (_as_rows(components), _as_rows(directions), bends, _as_rows(products))
    return Projections(*parts, n_product_components, min(n_main, components.shape[1]))


def _as_rows(values: Array) -> Array:
    return np.ascontiguousarray(values.T, dtype=np.float32)


def _single_directions(columns: Array, components: Array, generator: np.random.Generator) -> Array:
    """Columns, leading components, and random mixtures of the first few components."""
    if components.shape[1] == 1:
        return components
    mixed = components[:, :N_MIXED_COMPONENTS]
    weights = generator.normal(size=(mixed.shape[1], N_MIXTURES))
    mixtures = mixed @ (weights / np.linalg.norm(weights, axis=0))
    return np.concatenate([columns, components[:, :N_LEADING_COMPONENTS], mixtures], axis=1)


def _compute_bends(directions: Array, components: Array, strata: Strata) -> Array:
    """A square and cosines along each direction, minus their regression on the components."""
    rows = len(directions)
    rank_share = ((rankdata(directions, axis=0) - 0.5) / rows).astype(np.float32)
    components = components.astype(np.float32)
    waves = [
        np.cos(k * np.pi * rank_share) if k else ndtri(rank_share) ** 2 for k in COSINE_HALF_TURNS
    ]
    functions = strata.residualize(np.stack(waves, axis=2).reshape(rows, -1))
    functions -= components @ (components.T @ functions / rows)
    orthogonal, triangle = np.linalg.qr(functions.reshape(rows, -1, N_BENDS).transpose(1, 0, 2))
    # A column of two values has no bends: what is left of them is rounding.
    is_nonzero = np.abs(np.diagonal(triangle, axis1=1, axis2=2)) > 1e-3 * np.sqrt(rows)
    orthogonal *= is_nonzero[:, None, :] * np.float32(np.sqrt(rows))
    bends = orthogonal.transpose(0, 2, 1).reshape(-1, rows)
    return np.ascontiguousarray(bends, dtype=np.float32)
