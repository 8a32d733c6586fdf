"""The F-test of a linear probe, and how small a dependence a test would have seen.

Closed forms: along k uncorrelated directions of z, n rows and q columns of u the test adds up k q
squares of numbers that are normal where z and u are independent. A dependence that explains the
share s of V[u] moves their means by ``n q s / (1 - s)`` in all (the non-centrality).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from cida.array_types import Array

__all__ = ["FTest", "f_test", "min_detectable_share", "min_detectable_share_few"]

TARGET_POWER = 0.95  # the probability of detection


@dataclass(frozen=True)
class FTest:
    """Are all coefficients of the linear probe zero? ``r2`` is R^2 on the rows it was fitted on.

    ``adjusted_r2`` is corrected for chance: zero on average where z and u are independent.
    """

    r2: float
    adjusted_r2: float
    f_statistic: float
    dof: tuple[float, float]
    p_value: float


def f_test(components: Array, index_components: Array, n_removed_terms: int = 1) -> FTest:
    """``F = (V / k) / ((s - V) / (n - removed - k))``, V Pillai's trace of z against u.

    For one column of u or one of z this is the F-test of ordinary least squares, exact for normal
    u; for more it is Pillai's approximation. ``components``, shape (rows, k), and
    ``index_components``, shape (rows, q), are uncorrelated with mean square 1; ``n_removed_terms``
    counts the means (and slopes) that were subtracted before.
    """
    rows, width = index_components.shape
    n_components = components.shape[1]
    trace = float(((components.T @ index_components / rows) ** 2).sum())
    min_width, residual_dof = min(n_components, width), rows - n_removed_terms - n_components
    numerator_dof = float(min_width * max(n_components, width))
    denominator_dof = float(min_width * (residual_dof - width + min_width))
    dof = (numerator_dof, denominator_dof)
    f = (trace / numerator_dof) / max((min_width - trace) / denominator_dof, 1e-300)
    share = trace / width
    adjusted = 1 - (1 - share) * (rows - n_removed_terms) / residual_dof
    return FTest(share, adjusted, f, dof, float(stats.f.sf(f, *dof)))


def min_detectable_share(
    critical: float, n_rows: int, n_components: int, n_index_columns: int
) -> float:
    """The smallest share of V[u] with which a sum over all components exceeds ``critical``.

    95 % of the time, by the non-central F distribution; 1 where no share does.
    """
    dof = n_components * n_index_columns
    residual_dof = n_index_columns * (n_rows - n_components - 1)
    max_statistic = n_rows * n_index_columns
    if critical >= max_statistic:
        return 1.0
    limit = critical / (max_statistic - critical) * residual_dof / dof
    shift = _required_noncentrality(lambda shift: stats.ncf.sf(limit, dof, residual_dof, shift))
    return shift / (shift + max_statistic)


def min_detectable_share_few(
    neg_log_p: float, n_rows: int, n_functions: int, n_index_columns: int
) -> float:
    """The same for a sum over few functions of z, given as ``-log P(chi^2 >= sum)``."""
    dof = n_functions * n_index_columns
    limit = float(stats.chi2.isf(np.exp(-neg_log_p), dof))
    shift = _required_noncentrality(lambda shift: stats.ncx2.sf(limit, dof, shift))
    return shift / (shift + n_rows * n_index_columns)


def _required_noncentrality(power_at: Callable[[float], float]) -> float:
    high = 1.0
    while power_at(high) < TARGET_POWER:
        high *= 2
    return float(brentq(lambda shift: power_at(shift) - TARGET_POWER, 0.0, high, xtol=1e-6))
