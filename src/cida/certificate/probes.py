"""Fresh probes from z to u, scored on rows that they were not fitted on."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import GammaRegressor, RidgeCV

from cida.array_types import Array

__all__ = [
    "ProbeGain",
    "ProbeResult",
    "fit_boosted_probe",
    "fit_linear_probe",
    "measure_mean_variance_gain",
]

N_FOLDS = 3
RIDGE_PENALTIES_PER_ROW = np.geomspace(1e-4, 10, 8)
VARIANCE_PENALTIES = (0.03, 0.3)


@dataclass(frozen=True)
class ProbeResult:
    """``r2``: the share of V[u] explained, weighted by the variance of u's columns; at least 0.

    ``p_value`` is that of the covariance of predictions and u, for boosting alone: the linear
    probe has an F-test.
    """

    r2: float
    predictions: Array
    p_value: float = 1.0


def _folds(n_rows: int, seed: int) -> Iterator[tuple[Array, Array]]:
    """Rows to fit on and rows to score, each row scored once."""
    fold = np.random.default_rng(seed).permutation(np.arange(n_rows) % N_FOLDS)
    for number in range(N_FOLDS):
        yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)


def _r2(e: Array, predicted: Array) -> float:
    residual_sum, total_sum = ((e - predicted) ** 2).sum(), ((e - e.mean(0)) ** 2).sum()
    return max(0.0, 1 - float(residual_sum / total_sum))


def fit_linear_probe(z: Array, e: Array, seed: int = 0) -> ProbeResult:
    """Ridge regression, its penalty chosen on the rows fitted on."""
    predicted = np.zeros_like(e)
    for train_rows, test_rows in _folds(len(z), seed):
        model = _fit_ridge(z[train_rows], e[train_rows])
        predicted[test_rows] = model.predict(z[test_rows]).reshape(len(test_rows), -1)
    return ProbeResult(_r2(e, predicted), predicted)


def _fit_ridge(z: Array, e: Array) -> RidgeCV:
    return RidgeCV(RIDGE_PENALTIES_PER_ROW * len(z)).fit(z, e)


def fit_boosted_probe(z: Array, e: Array, seed: int = 0) -> ProbeResult:
    """Small gradient-boosted trees: bends and interactions that a line misses."""
    predicted = np.zeros_like(e)
    covariance_terms = np.zeros(len(z))
    for train_rows, test_rows in _folds(len(z), seed):
        for column in range(e.shape[1]):
            model = HistGradientBoostingRegressor(
                learning_rate=0.08,
                max_iter=50,
                max_leaf_nodes=8,
                min_samples_leaf=20,
                max_bins=63,
                early_stopping=False,
                random_state=seed,
            )
            p = model.fit(z[train_rows], e[train_rows, column]).predict(z[test_rows])
            u = e[test_rows, column]
            predicted[test_rows, column] = p
            covariance_terms[test_rows] += (p - p.mean()) * (u - u.mean())
    # The folds are not independent: u of one trains the probe of another and is scored by its own.
    # Of a probe that is linear in u each pair of rows counts twice, so the variance is doubled.
    std = math.sqrt(2 * float((covariance_terms**2).sum()))
    score = float(covariance_terms.sum()) / std if std > 0 else 0.0
    return ProbeResult(_r2(e, predicted), predicted, float(stats.norm.sf(score)))


@dataclass(frozen=True)
class ProbeGain:
    """Nats a row that a probe of mean and variance gains, on rows that it was not fitted on.

    ``over_marginal``: over the prediction that ignores z, whose loss is the ceiling of Theorem 4.2.
    ``over_mean``: over the same mean with one variance for all rows. Errors are standard errors.
    """

    over_marginal: float
    over_marginal_std_error: float
    over_mean: float
    over_mean_std_error: float


def measure_mean_variance_gain(z: Array, e: Array, seed: int = 0) -> ProbeGain:
    """``E[1/2 log v + (u - m)^2 / 2 v]`` (eq. 3) of the marginal fit minus that of the probe.

    The mean m is linear in z, the log of the variance v in z and its squares; both penalised.
    """
    marginal_loss, mean_loss, full_loss = (np.zeros(len(z)) for _ in range(3))
    features = np.concatenate([z, (z**2 - 1) / math.sqrt(2)], axis=1)
    for train_rows, test_rows in _folds(len(z), seed):
        model = _fit_ridge(z[train_rows], e[train_rows])
        squares = (e - model.predict(z).reshape(e.shape)) ** 2
        for u, square in zip(e.T, squares.T, strict=True):
            deviation = (u - u[train_rows].mean()) ** 2
            mean_square = max(float(square[train_rows].mean()), 1e-12)
            ratio = _relative_variance(features, square / mean_square, train_rows, test_rows)
            marginal_variance = float(deviation[train_rows].mean())
            marginal_loss[test_rows] += _gaussian_loss(deviation[test_rows], marginal_variance)
            mean_loss[test_rows] += _gaussian_loss(square[test_rows], mean_square)
            full_loss[test_rows] += _gaussian_loss(square[test_rows], mean_square * ratio)
    return ProbeGain(
        *_mean_and_std_error(marginal_loss - full_loss), *_mean_and_std_error(mean_loss - full_loss)
    )


def _gaussian_loss(square: Array, v: Array | float) -> Array:
    return np.asarray(0.5 * np.log(v) + 0.5 * square / v)


def _mean_and_std_error(values: Array) -> tuple[float, float]:
    return float(values.mean()), float(values.std() / math.sqrt(len(values)))


def _relative_variance(
    features: Array, square: Array, train_rows: Array, test_rows: Array
) -> Array:
    """``exp(a + w' features)`` of the scored rows; 1 where no penalty beats one variance for all.

    The likelihood of a variance is that of a gamma distribution, so that a regression with that
    loss is the probe. A quarter of the rows fitted on chooses the penalty.
    """
    inner_rows, validation_rows = train_rows[np.arange(len(train_rows)) % 4 != 0], train_rows[::4]

    def loss(variances: Array | float) -> float:
        return float(_gaussian_loss(square[validation_rows], variances).mean())

    losses = {0.0: loss(float(square[inner_rows].mean()))}  # of one variance for all rows
    for penalty in VARIANCE_PENALTIES:
        rows = (inner_rows, validation_rows)
        losses[penalty] = loss(_predict_variance(features, square, *rows, penalty))
    best = min(losses, key=losses.__getitem__)
    if not best:
        return np.ones(len(test_rows))
    return _predict_variance(features, square, train_rows, test_rows, best)


def _predict_variance(
    features: Array, square: Array, train_rows: Array, query_rows: Array, penalty: float
) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a probe may stop a little early
        model = GammaRegressor(alpha=penalty, max_iter=50)
        model.fit(features[train_rows], np.maximum(square[train_rows], 1e-9))
    # No row is given a variance beyond those seen: the squares of a far z would take it anywhere.
    seen = model.predict(features[train_rows])
    return np.asarray(model.predict(features[query_rows]).clip(seen.min(), seen.max()))
