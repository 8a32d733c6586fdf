"""How right predictions are, and where along u."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from cida.spaces import Space

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


def accuracy(y_true: Array, y_pred: Array) -> float:
    """The share of rows predicted right."""
    return float(np.mean(y_true == y_pred))


def root_mean_squared_error(y_true: Array, y_pred: Array) -> float:
    """``sqrt(mean (y - prediction)^2)``, in the units of y."""
    return float(np.sqrt(np.mean((y_true - y_pred) ** 2)))


def score_by_bin(
    space: Space, u: Tensor, y_true: Array, y_pred: Array, n_bins: int, metric: Metric
) -> list[BinScore]:
    """The metric in each cell along u; empty cells are left out."""
    cells = space.make_bins(u, n_bins)
    cell_of_row = cells.cell_of_row.numpy()
    scores = []
    for cell in range(len(cells)):
        in_cell = cell_of_row == cell
        if in_cell.any():
            score = metric(y_true[in_cell], y_pred[in_cell])
            lo, hi = _bound(cells.lower[cell]), _bound(cells.upper[cell])
            scores.append(BinScore(lo, hi, score, int(in_cell.sum())))
    return scores


def _bound(values: Tensor) -> float | list[float]:
    numbers: list[float] = values.tolist()
    return numbers[0] if len(numbers) == 1 else numbers
