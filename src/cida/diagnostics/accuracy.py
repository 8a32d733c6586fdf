"""How right predictions are, and where along u."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from cida.space import Space

__all__ = ["BinScore", "accuracy", "root_mean_squared_error", "score_by_bin"]

Array = np.ndarray[Any, Any]
Metric = Callable[[Array, Array], float]


@dataclass(frozen=True)
class BinScore:
    """The score of the ``n`` rows whose index lies between ``lo`` and ``hi``.

    The bounds are numbers, or lists of numbers where u has several columns.
    """

    lo: float | list[float]
    hi: float | list[float]
    score: float
    n: int


def accuracy(truth: Array, prediction: Array) -> float:
    """The share of rows predicted right."""
    return float(np.mean(truth == prediction))


def root_mean_squared_error(truth: Array, prediction: Array) -> float:
    """``sqrt(mean (y - prediction)^2)``, in the units of y."""
    return float(np.sqrt(np.mean((truth - prediction) ** 2)))


def score_by_bin(
    space: Space, u: Tensor, truth: Array, prediction: Array, bins: int, metric: Metric
) -> list[BinScore]:
    """The metric in each cell along u; empty cells are left out."""
    cells = space.bins(u, bins)
    owner = cells.rows.numpy()
    scores = []
    for cell in range(len(cells)):
        mine = owner == cell
        if mine.any():
            score = metric(truth[mine], prediction[mine])
            lo, hi = _bound(cells.lo[cell]), _bound(cells.hi[cell])
            scores.append(BinScore(lo, hi, score, int(mine.sum())))
    return scores


def _bound(values: Tensor) -> float | list[float]:
    numbers: list[float] = values.tolist()
    return numbers[0] if len(numbers) == 1 else numbers
