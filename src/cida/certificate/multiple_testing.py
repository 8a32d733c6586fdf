"""One family-wise p-value of many permutation tests (Westfall and Young, 1993)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from cida.array_types import Array

__all__ = ["PermutationTest", "combine_tests", "share_as_large"]

MAX_SCORE = 700.0  # beyond, p is 0 in floating point


@dataclass(frozen=True)
class PermutationTest:
    """One test: its own p-value, that adjusted for all tests, and its critical value.

    Both p-values are shares of the permutations, the actual rows included, that are as extreme.
    """

    __test__ = False  # nothing for pytest

    name: str
    statistic: float
    p_value: float
    adjusted_p_value: float
    critical_value: float


def combine_tests(
    statistics: dict[str, Array], weights: dict[str, float], alpha: float
) -> tuple[float, dict[str, PermutationTest]]:
    """The family-wise p-value and each test; ``statistics[name][0]`` is that of the actual rows."""
    log_weights = {name: math.log(weights[name]) for name in statistics}
    scores = {name: _gamma_scores(s) + log_weights[name] for name, s in statistics.items()}
    max_scores = np.max(list(scores.values()), axis=0)
    # A test is significant beyond its critical value, which the permutations alone determine.
    permuted = [_gamma_scores(s[1:]) + log_weights[name] for name, s in statistics.items()]
    critical_score = float(np.quantile(np.max(permuted, axis=0), 1 - alpha))
    tests = {
        name: PermutationTest(
            name,
            float(s[0]),
            share_as_large(s, s[0]),
            share_as_large(max_scores, scores[name][0]),
            _gamma_quantile(s[1:], critical_score - log_weights[name]),
        )
        for name, s in statistics.items()
    }
    return share_as_large(max_scores, max_scores[0]), tests


def share_as_large(values: Array, observed: float) -> float:
    """The share of values that are as large, up to rounding."""
    return float((values >= observed - 1e-6 * abs(observed)).mean())


def _fit_gamma(values: Array) -> tuple[float, float]:
    """Shape and scale of the gamma distribution with the mean and variance of the values.

    The p-values are valid with any curve, since it is the same for all permutations; it only
    decides how evenly the tests share the level.
    """
    mean, variance = float(values.mean()), float(values.var())
    if not (mean > 0 and variance > 0):
        return 1.0, 1.0
    return mean**2 / variance, variance / mean


def _gamma_scores(values: Array) -> Array:
    """``-log p`` under that curve; values below its support score 0."""
    nonnegative = values - min(0.0, float(values.min()))  # distance correlations can be negative
    shape, scale = _fit_gamma(nonnegative)
    return np.asarray(np.minimum(-stats.gamma.logsf(nonnegative, shape, scale=scale), MAX_SCORE))


def _gamma_quantile(values: Array, score: float) -> float:
    """The value of a given score."""
    offset = min(0.0, float(values.min()))
    shape, scale = _fit_gamma(values - offset)
    return float(stats.gamma.isf(math.exp(-max(score, 0.0)), shape, scale=scale) + offset)
