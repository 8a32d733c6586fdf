"""The F-test of a linear probe, and how small a dependence a test would have seen.

Closed forms: along k uncorrelated directions of z, n rows and q columns of u the test adds up k q
squares of numbers that are normal where z and u are independent. A dependence that explains the
share s of V[u] moves their means by ``n q s / (1 - s)`` in all (the non-centrality).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq

__all__ = ["CHANCE", "FTest", "f_test", "smallest_share", "smallest_share_of_few"]

Array = np.ndarray[Any, Any]
CHANCE = 0.95  # of being seen


@dataclass(frozen=True)
class FTest:
    """Are all coefficients of the linear probe zero? ``share`` is R^2, on the rows fitted on.

    ``adjusted`` has what chance fits taken off: zero in the mean where z and u are independent.
    """

    share: float
    adjusted: float
    f: float
    freedom: tuple[float, float]
    p: float

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {**asdict(self), "freedom": list(self.freedom)}


def f_test(axes: Array, targets: Array, taken: int = 1) -> FTest:
    """``F = (V / k) / ((s - V) / (n - taken - k))``, V Pillai's trace of z against u.

    For one column of u or one of z this is the F-test of ordinary least squares, exact for normal
    u; for more it is Pillai's approximation. ``axes``, shape (rows, k), and ``targets``, shape
    (rows, q), are uncorrelated with mean square 1; ``taken`` counts the means (and slopes) that
    were taken off before.
    """
    rows, width = targets.shape
    count = axes.shape[1]
    trace = float(((axes.T @ targets / rows) ** 2).sum())
    fewer, spare = min(count, width), rows - taken - count
    first = float(fewer * max(count, width))
    second = float(fewer * (spare - width + fewer))
    f = (trace / first) / max((fewer - trace) / second, 1e-300)
    share = trace / width
    adjusted = 1 - (1 - share) * (rows - taken) / spare
    return FTest(share, adjusted, f, (first, second), float(stats.f.sf(f, first, second)))


def smallest_share(
    critical: float, rows: int, axes: int, columns: int, chance: float = CHANCE
) -> float:
    """The least share of V[u] that a sum over all axes passes ``critical`` for with this chance.

    By the non-central F distribution; 1 where none does.
    """
    freedom, spare = axes * columns, columns * (rows - axes - 1)
    most = rows * columns
    if critical >= most:
        return 1.0
    limit = critical / (most - critical) * spare / freedom
    needed = _needed(lambda shift: float(stats.ncf.sf(limit, freedom, spare, shift)), chance)
    return needed / (needed + most)


def smallest_share_of_few(
    surprise: float, rows: int, functions: int, columns: int, chance: float = CHANCE
) -> float:
    """The same for a sum over few functions of z, given as ``-log P(chi^2 >= sum)``."""
    freedom = functions * columns
    limit = float(stats.chi2.isf(np.exp(-surprise), freedom))
    needed = _needed(lambda shift: float(stats.ncx2.sf(limit, freedom, shift)), chance)
    return needed / (needed + rows * columns)


def _needed(seen: Callable[[float], float], chance: float) -> float:
    high = 1.0
    while seen(high) < chance:
        high *= 2
    return float(brentq(lambda shift: seen(shift) - chance, 0.0, high, xtol=1e-6))
