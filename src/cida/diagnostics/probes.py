"""Fresh probes from z to u, scored on rows that they were not fitted on."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import stats
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import GammaRegressor, RidgeCV

__all__ = ["Gain", "Probe", "boosted_probe", "linear_probe", "mean_and_variance_gain"]

Array = np.ndarray[Any, Any]

FOLDS = 3
PENALTIES = np.geomspace(1e-4, 10, 8)  # a row
SPREAD_PENALTIES = (0.03, 0.3)


@dataclass(frozen=True)
class Probe:
    """``share`` of V[u] explained, weighted by the variance of u's columns; 0 at the least.

    ``p`` is that of the covariance of predictions and u, for boosting alone: the linear probe has
    an F-test.
    """

    share: float
    predicted: Array
    p: float | None = None


def _folds(rows: int, seed: int) -> Iterator[tuple[Array, Array]]:
    """Rows to fit on and rows to score, each row scored once."""
    fold = np.random.default_rng(seed).permutation(np.arange(rows) % FOLDS)
    for number in range(FOLDS):
        yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)


def _share(e: Array, predicted: Array) -> float:
    left, whole = ((e - predicted) ** 2).sum(), ((e - e.mean(0)) ** 2).sum()
    return max(0.0, 1 - float(left / whole))


def linear_probe(z: Array, e: Array, seed: int = 0) -> Probe:
    """Ridge regression, its penalty chosen on the rows fitted on."""
    predicted = np.zeros_like(e)
    for fitted, scored in _folds(len(z), seed):
        model = RidgeCV(PENALTIES * len(fitted)).fit(z[fitted], e[fitted])
        predicted[scored] = model.predict(z[scored]).reshape(len(scored), -1)
    return Probe(_share(e, predicted), predicted)


def boosted_probe(z: Array, e: Array, seed: int = 0) -> Probe:
    """Small gradient-boosted trees: bends and interactions that a line misses."""
    predicted = np.zeros_like(e)
    covaries = np.zeros(len(z))
    for fitted, scored in _folds(len(z), seed):
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
            told = model.fit(z[fitted], e[fitted, column]).predict(z[scored])
            predicted[scored, column] = told
            mine = e[scored, column]
            covaries[scored] += (told - told.mean()) * (mine - mine.mean())
    # The folds are not independent: u of one trains the probe of another and is scored by its own.
    # Of a probe that is linear in u each pair of rows counts twice, so the variance is doubled.
    size = math.sqrt(2 * float((covaries**2).sum()))
    score = float(covaries.sum()) / size if size > 0 else 0.0
    return Probe(_share(e, predicted), predicted, float(stats.norm.sf(score)))


@dataclass(frozen=True)
class Gain:
    """Nats a row that a probe of mean and variance gains, on rows that it was not fitted on.

    ``over_blind``: over the belief that ignores z, whose loss is the ceiling of Theorem 4.2.
    ``over_mean``: over the same mean with one variance for all rows. Errors are standard errors.
    """

    over_blind: float
    over_blind_error: float
    over_mean: float
    over_mean_error: float

    def to_dict(self) -> dict[str, float]:
        """JSON values."""
        return asdict(self)


def mean_and_variance_gain(z: Array, e: Array, seed: int = 0) -> Gain:
    """``E[1/2 log v + (u - m)^2 / 2 v]`` (eq. 3) of the blind belief less that of the probe.

    The mean m is linear in z, the log of the variance v in z and its squares; both penalised.
    """
    blind, mean_only, both = (np.zeros(len(z)) for _ in range(3))
    features = np.concatenate([z, (z**2 - 1) / math.sqrt(2)], axis=1)
    for fitted, scored in _folds(len(z), seed):
        model = RidgeCV(PENALTIES * len(fitted)).fit(z[fitted], e[fitted])
        left = e - model.predict(z).reshape(e.shape)
        for column in range(e.shape[1]):
            u, residual = e[:, column], left[:, column]
            around = u - u[fitted].mean()
            square = residual**2
            middle = max(float(square[fitted].mean()), 1e-12)
            v = middle * _relative_variance(features, square / middle, fitted, scored)
            blind[scored] += _loss(around[scored] ** 2, float((around[fitted] ** 2).mean()))
            mean_only[scored] += _loss(square[scored], middle)
            both[scored] += _loss(square[scored], v)
    return Gain(*_mean_and_error(blind - both), *_mean_and_error(mean_only - both))


def _loss(square: Array, v: Array | float) -> Array:
    return np.asarray(0.5 * np.log(v) + 0.5 * square / v)


def _mean_and_error(values: Array) -> tuple[float, float]:
    return float(values.mean()), float(values.std() / math.sqrt(len(values)))


def _relative_variance(features: Array, square: Array, fitted: Array, scored: Array) -> Array:
    """``exp(a + w' features)`` of the scored rows; 1 where no penalty beats one variance for all.

    The likelihood of a variance is that of a gamma distribution, so that a regression with that
    loss is the probe. A quarter of the rows fitted on chooses the penalty.
    """
    inner, judge = fitted[np.arange(len(fitted)) % 4 != 0], fitted[::4]
    best, lowest = None, float(_loss(square[judge], float(square[inner].mean())).mean())
    for penalty in SPREAD_PENALTIES:
        told = _variance(features, square, inner, judge, penalty)
        loss = float(_loss(square[judge], told).mean())
        if loss < lowest:
            best, lowest = penalty, loss
    if best is None:
        return np.ones(len(scored))
    return _variance(features, square, fitted, scored, best)


def _variance(features: Array, square: Array, fitted: Array, asked: Array, penalty: float) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a probe may stop a little early
        model = GammaRegressor(alpha=penalty, max_iter=50)
        model.fit(features[fitted], np.maximum(square[fitted], 1e-9))
    known = model.predict(features[fitted])
    # No row is given a variance beyond those seen: the squares of a far z would take it anywhere.
    return np.asarray(np.clip(model.predict(features[asked]), known.min(), known.max()))
