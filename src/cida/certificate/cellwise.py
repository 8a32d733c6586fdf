"""Where along u an encoding still depends on it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from torch import Tensor

from cida.array_types import Array
from cida.certificate.permutation_tests import CellTest, run_permutation_tests
from cida.certificate.probes import ProbeResult
from cida.certificate.projections import Strata, sample_rows
from cida.spaces import Bins, Space

__all__ = ["CellDependence", "CellwiseTests", "assign_cells", "run_cellwise_tests"]

MAX_CELLS = 10
MEAN_ROWS_PER_CELL = 100
MIN_ROWS_PER_COMPARED_CELL = 20  # to compare the mean of z with that elsewhere
MIN_ROWS_PER_TESTED_CELL = 50  # to test inside a cell
MIN_R2_TO_SPLIT = 0.005  # share of V[u] explained, below which its parts are noise


@dataclass(frozen=True)
class CellDependence:
    """One cell along u, ``lo`` to ``hi`` in the units of u, a number for each column.

    ``between_p_value``: does z here differ from z elsewhere? ``within_p_value``: does z tell u
    inside the cell? Both are adjusted for the number of cells, and None where there are too few
    rows or, inside, only one value of u. ``neg_log_p`` is ``-log p`` of the first, unadjusted.
    """

    lo: tuple[float, ...]
    hi: tuple[float, ...]
    n: int
    between_p_value: float | None
    neg_log_p: float
    within_p_value: float | None


@dataclass(frozen=True)
class CellwiseTests:
    """The cells, and the share of what boosting explains that lies between cells.

    ``between_share`` is ``Cov(E[p | cell], E[u | cell]) / Cov(p, u)`` of its predictions p on rows
    that it was not fitted on; None where it explains next to nothing.
    """

    cells: tuple[CellDependence, ...]
    between_share: float | None
    alpha: float

    @property
    def worst_cell(self) -> CellDependence | None:
        """The cell whose z is farthest from z elsewhere, where that is beyond chance."""
        significant = [cell for cell in self.cells if (cell.between_p_value or 1.0) <= self.alpha]
        return max(significant, key=lambda cell: cell.neg_log_p, default=None)

    @property
    def worst_cell_within(self) -> CellDependence | None:
        """The cell inside which z tells u most surely, where that is beyond chance."""
        significant = [cell for cell in self.cells if (cell.within_p_value or 1.0) <= self.alpha]
        return min(significant, key=lambda cell: cell.within_p_value or 1.0, default=None)


@dataclass(frozen=True)
class CellAssignment:
    """``cell_of_row``: the cell of each row, -1 where the cell has too few rows to compare."""

    bins: Bins
    cell_of_row: Array


def assign_cells(space: Space, u: Tensor) -> CellAssignment:
    """At most ten cells, of a hundred rows on average."""
    bins = space.make_bins(u, int(np.clip(len(u) // MEAN_ROWS_PER_CELL, 2, MAX_CELLS)))
    cell_of_row = bins.cell_of_row.numpy()
    has_enough = np.bincount(cell_of_row)[cell_of_row] >= MIN_ROWS_PER_COMPARED_CELL
    return CellAssignment(bins, np.where(has_enough, cell_of_row, -1))


def run_cellwise_tests(
    z: Array,
    e: Array,
    cells: CellAssignment,
    cell_tests: dict[int, CellTest],
    probe: ProbeResult,
    alpha: float,
    seed: int,
) -> CellwiseTests:
    """Test each cell; ``cell_tests`` and ``probe`` are those of all rows."""
    bins, cell_of_row = cells.bins, cells.bins.cell_of_row.numpy()
    members = {int(cell): np.flatnonzero(cell_of_row == cell) for cell in np.unique(cell_of_row)}
    p_values = {cell: _test_within_cell(z[rows], e[rows], seed) for cell, rows in members.items()}
    adjusted = _adjust_holm({cell: p for cell, p in p_values.items() if p is not None})
    results = []
    for cell, rows in members.items():
        test = cell_tests.get(cell)
        p, neg_log_p = (test.p_value, test.neg_log_p) if test else (None, 0.0)
        lo, hi = (tuple(bound[cell].tolist()) for bound in (bins.lower, bins.upper))
        results.append(CellDependence(lo, hi, len(rows), p, neg_log_p, adjusted.get(cell)))
    sampled = sample_rows(len(z), len(probe.predictions))
    between_share = _share_between_cells(probe, e[sampled], cell_of_row[sampled])
    return CellwiseTests(tuple(results), between_share, alpha)


def _test_within_cell(z: Array, e: Array, seed: int) -> float | None:
    z = z[:, z.std(0) > 1e-6]
    if len(z) < MIN_ROWS_PER_TESTED_CELL or not np.ptp(e, axis=0).any() or not z.shape[1]:
        return None
    return run_permutation_tests(z, e, Strata.single(len(z)), with_pairs=False, seed=seed).p_value


def _adjust_holm(p_values: dict[int, float]) -> dict[int, float]:
    """Holm's correction: the smallest p-value times their number, the next times one less ..."""
    cells = sorted(p_values, key=p_values.__getitem__)
    scaled = [min(1.0, p_values[cell] * (len(cells) - k)) for k, cell in enumerate(cells)]
    return dict(zip(cells, accumulate(scaled, max), strict=True))


def _share_between_cells(probe: ProbeResult, e: Array, cell_of_row: Array) -> float | None:
    if probe.r2 < MIN_R2_TO_SPLIT:
        return None
    p, residual = probe.predictions - probe.predictions.mean(0), e - e.mean(0)
    cells = Strata(cell_of_row)
    within = (cells.residualize(p) * cells.residualize(residual)).sum()
    return float(np.clip(1 - within / (p * residual).sum(), 0.0, 1.0))
