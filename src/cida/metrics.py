"""How accurate predictions are, overall and along the index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from torch import Tensor

from cida.array_types import Array
from cida.kernel_ridge import standardize_columns
from cida.spaces import Space

__all__ = ["BinScore", "accuracy", "index_r2", "root_mean_squared_error", "score_by_bin"]

Metric = Callable[[Array, Array], float]


@dataclass(frozen=True)
class BinScore:
    """The score of the rows in one cell along the index.

    Parameters
    ----------
    lo : float or list of float
        Lower bound of the cell; a list where the index has several columns.
    hi : float or list of float
        Upper bound of the cell.
    score : float
        The metric on the cell's rows.
    n : int
        Number of rows.
    metric : str
        Name of the metric, such as "accuracy" or "root_mean_squared_error".
    """

    lo: float | list[float]
    hi: float | list[float]
    score: float
    n: int
    metric: str = "accuracy"


def accuracy(y_true: Array, y_pred: Array) -> float:
    """The share of rows that are predicted correctly.

    Parameters
    ----------
    y_true : ndarray
        Labels.
    y_pred : ndarray
        Predictions.

    Returns
    -------
    float
        Between 0 and 1.
    """
    return float(np.mean(y_true == y_pred))


def root_mean_squared_error(y_true: Array, y_pred: Array) -> float:
    """``sqrt(mean (y - prediction)^2)``, in the units of y.

    Parameters
    ----------
    y_true : ndarray
        Labels.
    y_pred : ndarray
        Predictions.

    Returns
    -------
    float
        At least 0.
    """
    return float(np.sqrt(np.mean((y_true - y_pred) ** 2)))


def index_r2(features: Array, index: Array) -> float:
    """Return the share of the index's variance that a ridge regression on the features explains.

    It is fitted on every second row and scored on the others.

    Parameters
    ----------
    features : ndarray of shape (rows, columns)
        Inputs or encodings.
    index : ndarray of shape (rows, width)
        The embedded index.

    Returns
    -------
    float
        Between 0 and 1; 0 where it is no better than the mean.
    """
    scaled = standardize_columns(features)
    model = Ridge(alpha=1.0).fit(scaled[::2], index[::2])
    predicted = model.predict(scaled[1::2]).reshape(-1, index.shape[1])
    share = r2_score(index[1::2], predicted, multioutput="variance_weighted")
    return max(0.0, float(share))


def score_by_bin(
    space: Space, u: Tensor, y_true: Array, y_pred: Array, n_bins: int, metric: Metric
) -> list[BinScore]:
    """Return a metric in each cell along the index; empty cells are left out.

    Parameters
    ----------
    space : Space
        The fitted space of the index.
    u : Tensor of shape (rows, width)
        Raw index values.
    y_true : ndarray
        Labels.
    y_pred : ndarray
        Predictions.
    n_bins : int
        About how many cells to make.
    metric : callable
        ``metric(y_true, y_pred) -> float``.

    Returns
    -------
    list of BinScore
        One for each cell that has rows.
    """
    cells = space.make_bins(u, n_bins)
    metric_name = getattr(metric, "__name__", type(metric).__name__)
    cell_of_row = cells.cell_of_row.numpy()
    scores = []
    for cell in range(len(cells)):
        in_cell = cell_of_row == cell
        if in_cell.any():
            score = metric(y_true[in_cell], y_pred[in_cell])
            lo, hi = _bound(cells.lower[cell]), _bound(cells.upper[cell])
            scores.append(BinScore(lo, hi, score, int(in_cell.sum()), metric_name))
    return scores


def _bound(values: Tensor) -> float | list[float]:
    numbers: list[float] = values.tolist()
    return numbers[0] if len(numbers) == 1 else numbers
