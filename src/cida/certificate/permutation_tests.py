"""Is z independent of u? Many tests, one family-wise answer.

Each test statistic grows with one kind of dependence. All are computed on the rows as they are and
on the same rows with u permuted, with the same permutations for every test. The largest score, each
weighted by its test, is compared with the largest of each permutation (Westfall and Young, 1993):
the answer is exact for any number of rows and tests, and tests that see the same dependence share
their level rather than pay for it twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincc

from cida.array_types import Array
from cida.certificate.multiple_testing import PermutationTest, combine_tests, share_as_large
from cida.certificate.pairwise import (
    PAIR_MEASURES,
    PairMeasure,
    compute_pair_measure,
    restrict_orders,
)
from cida.certificate.power import FTest, f_test
from cida.certificate.projections import (
    MAX_PRODUCT_COMPONENTS,
    N_BENDS,
    Projections,
    Strata,
    compute_projections,
    sample_rows,
    whiten,
)
from cida.kernel_ridge import standardize_columns

__all__ = ["CellTest", "PermutationTestResults", "run_permutation_tests"]

N_PERMUTATIONS = 499
MEAN_TESTS = ("mean", "mean-few-directions", "bend", "curvature")
VARIANCE_TESTS = ("variance", "variance-few-directions", "variance-bend", "variance-curvature")
# How the level is divided. With many columns a mean needs most of it to be detected; with few a
# tenth is enough, and the rest is better spent on bends.
TEST_NAMES = (*MEAN_TESTS, *VARIANCE_TESTS, "cell", *PAIR_MEASURES)
NARROW_TEST_WEIGHTS = (0.10, 0.06, 0.26, 0.24, 0.12, 0.08, 0.03, 0.02, 0.04, 0.03, 0.02)
WIDE_TEST_WEIGHTS = (0.33, 0.06, 0.10, 0.07, 0.29, 0.06, 0.02, 0.01, 0.02, 0.02, 0.02)
MAX_NARROW_COMPONENTS = 16
MAX_PAIR_ROWS = 1000  # rows of which all pairs are compared
MAX_PERMUTED_VALUES = 6_000_000  # numbers of permuted u in memory
MAX_COVARIANCE_COLUMNS = 3  # of u; with more columns only variances are tested


@dataclass(frozen=True)
class CellTest:
    """How far z in one cell along u is from z elsewhere; ``p`` is adjusted for all cells."""

    neg_log_p: float
    p_value: float


@dataclass(frozen=True)
class PermutationTestResults:
    """``p_value`` is the family-wise answer; ``cell_tests`` has those of the cells along u.

    ``linear_f_test`` tests all components of z, ``main_f_test`` the first ``n_main_components``,
    which hold 99 % of its variance. ``index_components`` are the uncorrelated columns of u,
    ``n_second_moments`` counts their variances and covariances that vary; ``pair_rows`` are the
    rows whose pairs were compared.
    """

    p_value: float
    tests: dict[str, PermutationTest]
    linear_f_test: FTest
    main_f_test: FTest
    n_main_components: int
    cell_tests: dict[int, CellTest]
    pair_measures: dict[str, PairMeasure]
    pair_rows: Array
    components: Array
    index_components: Array
    n_second_moments: int


def run_permutation_tests(
    z: Array,
    e: Array,
    strata: Strata,
    cells: Array | None = None,
    *,
    alpha: float = 0.05,
    n_permutations: int = N_PERMUTATIONS,
    with_pairs: bool = True,
    seed: int = 0,
) -> PermutationTestResults:
    """Test z, shape (rows, columns), against the embedded index e within strata.

    ``cells`` has the number of each row's cell along u, -1 where it is in none; ``with_pairs``
    includes distance correlation and HSIC, on at most 1,000 rows.
    """
    generator = np.random.default_rng(seed)
    projections = compute_projections(z, strata, generator)
    index_components = whiten(strata.residualize(e), tolerance=1e-9)
    pair_rows = sample_rows(len(z), MAX_PAIR_ROWS)
    is_pair_row = np.isin(np.arange(len(z)), pair_rows)
    orders = strata.permutations(n_permutations, is_pair_row, generator)
    orders = np.concatenate([np.arange(len(z))[None], orders])  # the actual rows come first

    moments = _SecondMoments.from_index(index_components)
    statistics = _projection_statistics(projections, index_components, moments, orders)
    cell_statistics = {} if cells is None else _cell_statistics(projections, cells, orders)
    if cell_statistics:
        statistics["cell"] = np.max(list(cell_statistics.values()), axis=0)
    pair_measures = {}
    if with_pairs:
        pair_orders, pair_strata = restrict_orders(pair_rows, orders), strata[pair_rows].groups()
        pairs = (z[pair_rows], index_components[pair_rows], pair_strata, pair_orders)
        pair_measures = {name: compute_pair_measure(name, *pairs) for name in PAIR_MEASURES}
        statistics |= {name: measure.permuted_values for name, measure in pair_measures.items()}
    components = projections.components.T.astype(np.float64)
    is_narrow = components.shape[1] <= MAX_NARROW_COMPONENTS
    weights = NARROW_TEST_WEIGHTS if is_narrow else WIDE_TEST_WEIGHTS
    p, tests = combine_tests(statistics, dict(zip(TEST_NAMES, weights, strict=True)), alpha)
    n_main, n_removed_terms = projections.n_main_components, strata.n_removed_terms
    return PermutationTestResults(
        p_value=p,
        tests=tests,
        linear_f_test=f_test(components, index_components, n_removed_terms),
        main_f_test=f_test(components[:, :n_main], index_components, n_removed_terms),
        n_main_components=n_main,
        cell_tests={
            cell: CellTest(float(values[0]), share_as_large(statistics["cell"], values[0]))
            for cell, values in cell_statistics.items()
        },
        pair_measures=pair_measures,
        pair_rows=pair_rows,
        components=components,
        index_components=index_components,
        n_second_moments=moments.count,
    )


def _projection_statistics(
    projections: Projections, index_components: Array, moments: _SecondMoments, orders: Array
) -> dict[str, Array]:
    rows, width = index_components.shape
    step = max(1, MAX_PERMUTED_VALUES // (rows * max(width, len(moments.first))))
    names = MEAN_TESTS + (VARIANCE_TESTS if moments.count else ())
    chunks = []
    for start in range(0, len(orders), step):
        # The shape is rows, permutations, columns.
        u = index_components[orders[start : start + step]].transpose(1, 0, 2).astype(np.float32)
        residual = standardize_columns(u - _project(projections.components, u))
        statistics = _directional_statistics(projections, u, residual)
        if moments.count:
            squares = standardize_columns(moments.transform(residual))
            residual = squares - _project(projections.components, squares)
            statistics += _directional_statistics(projections, squares, residual)
        chunks.append(np.stack(statistics))
    return dict(zip(names, np.concatenate(chunks, axis=1).astype(np.float64), strict=True))


@dataclass(frozen=True)
class _SecondMoments:
    """Products of the columns of u, in combinations that are uncorrelated if u is independent of z.

    Constant ones are left out: ``cos^2 + sin^2`` on a circle, and all where u has two values, whose
    mean determines the variance.
    """

    first: Array
    second: Array
    weights: Array

    @classmethod
    def from_index(cls, index_components: Array) -> _SecondMoments:
        width = index_components.shape[1]
        first = second = np.arange(width)
        if width <= MAX_COVARIANCE_COLUMNS:
            first, second = np.triu_indices(width)
        rows = len(index_components)
        products = index_components[:, first] * index_components[:, second]
        products = products - products.mean(0)
        products -= index_components @ (index_components.T @ products / rows)  # what u explains
        eigenvalues, eigenvectors = np.linalg.eigh(products.T @ products / rows)
        has_variance = eigenvalues > max(1e-3 * float(eigenvalues.max()), 1e-6)
        return cls(first, second, eigenvectors[:, has_variance].astype(np.float32))

    @property
    def count(self) -> int:
        return int(self.weights.shape[1])

    def transform(self, residual: Array) -> Array:
        return np.asarray((residual[..., self.first] * residual[..., self.second]) @ self.weights)


def _correlate(functions: Array, values: Array) -> Array:
    """``f' t / sqrt(n)`` for each function, permutation and column: normal if independent."""
    rows, count, width = values.shape
    product = functions @ values.reshape(rows, count * width)
    return np.asarray(product.reshape(-1, count, width) / math.sqrt(rows))


def _project(components: Array, values: Array) -> Array:
    rows, count, width = values.shape
    flat = values.reshape(rows, count * width)
    return np.asarray((components.T @ (components @ flat / rows)).reshape(values.shape))


def _neg_log_p(squares: Array, dof: int) -> Array:
    """``-log P(chi^2 >= squares)``."""
    return np.asarray(-np.log(np.maximum(gammaincc(dof / 2, squares / 2), 1e-300)))


def _leading_counts(n_components: int) -> list[int]:
    """How many leading components are tested together."""
    return [count for count in (1, 2, 4, 8, 16) if count < n_components] or [n_components]


def _directional_statistics(
    projections: Projections, values: Array, residual: Array
) -> list[Array]:
    """Lines along all components and along few, bends and squares: one number a permutation."""
    squares = _correlate(projections.components, values) ** 2
    return [
        squares.sum((0, 2)),
        _few_directions_statistic(projections, values, squares.sum(2).cumsum(0)),
        _bend_statistic(projections, residual),
        _curvature_statistic(projections, residual),
    ]


def _few_directions_statistic(projections: Projections, values: Array, sums: Array) -> Array:
    """Leading components together, or one direction of many: each half of the level."""
    width = values.shape[2]
    leading = [_neg_log_p(sums[k - 1], k * width) for k in _leading_counts(len(sums))]
    best_single = _neg_log_p((_correlate(projections.directions, values) ** 2).sum(2).max(0), width)
    best_single -= math.log(len(projections.directions) / len(leading))
    return np.asarray(np.max([best_single, *leading], axis=0))


def _bend_statistic(projections: Projections, values: Array) -> Array:
    """The largest ``-log p`` of a few functions along one direction: even ones, odd ones or all."""
    count, width = values.shape[1:]
    squares = (_correlate(projections.bends, values) ** 2).sum(2).reshape(-1, N_BENDS, count)
    sums = [
        _neg_log_p(squares[:, chosen].sum(1).max(0), len(chosen) * width)
        for chosen in ([0], [1], [0, 2], [1, 3], [0, 1, 2, 3], list(range(N_BENDS)))
    ]
    return np.asarray(np.max(sums, axis=0))


def _curvature_statistic(projections: Projections, values: Array) -> Array:
    """The largest eigenvalue of ``sum_i t_i z_i z_i'``: a square along any direction there is.

    In the sum of all squared entries one direction would be lost in the noise of the others. With k
    components noise alone gives about ``2 sqrt(k)``, with a deviation of ``k^(-1/6)`` (Tracy and
    Widom): this puts the leading components and all of them on one scale.
    """
    count, width = values.shape[1:]
    entries = _correlate(projections.products, values).reshape(-1, count * width).T
    n_components = projections.n_product_components
    first, second = np.triu_indices(n_components)
    matrix = np.zeros((len(entries), n_components, n_components), dtype=np.float32)
    matrix[:, first, second] = matrix[:, second, first] = entries
    sizes = []
    for k in {min(k, n_components) for k in (4, 8, MAX_PRODUCT_COMPONENTS)}:
        extremes = np.linalg.eigvalsh(matrix[:, :k, :k])[:, [0, -1]]
        sizes.append((np.abs(extremes).max(1) - 2 * math.sqrt(k)) * k ** (1 / 6))
    return np.asarray(np.max(sizes, axis=0).reshape(count, width).max(1))


def _cell_statistics(projections: Projections, cells: Array, orders: Array) -> dict[int, Array]:
    """How far the mean of z in a cell along u is from the mean of z elsewhere (Hotelling)."""
    statistics = {}
    permuted_cells = np.ascontiguousarray(cells[orders].T)
    shares = {int(cell): float((cells == cell).mean()) for cell in np.unique(cells[cells >= 0])}
    for cell, share in shares.items():
        if share < 1:
            indicator = (permuted_cells == cell).astype(np.float32)[..., None]
            indicator /= math.sqrt(share * (1 - share))
            sums = (_correlate(projections.components, indicator) ** 2).sum(2).cumsum(0)
            counts = {*_leading_counts(len(sums)), len(sums)}
            statistics[cell] = np.max([_neg_log_p(sums[k - 1], k) for k in counts], axis=0)
    return statistics
