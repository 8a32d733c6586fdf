"""A drawable decision boundary: an RBF support vector machine fitted to a model's predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.svm import SVC

__all__ = ["fit_equal_boundaries", "fitting_accuracy"]

Array = np.ndarray[Any, Any]

RBF_GAMMA = 2.0  # of the kernel, for z-scored inputs: a reach of about half a deviation
MIN_LOG10_C, MAX_LOG10_C = (
    -3.0,
    2.0,
)  # log10 of the machine's C; beyond it noise takes minutes to fit
MAX_FITTING_ACCURACY = 0.99


def fit_equal_boundaries(x: Array, predictions: Mapping[str, Array]) -> dict[str, SVC]:
    """One machine for each set of predictions, all with the same fitting accuracy.

    As in the paper's supplement: a network's boundary is drawn as that of an SVM fitted to what it
    predicts, and for fairness all fit equally well. The level is what the worst can reach, at most
    99 %; each C is found by bisection. Predictions of a single class have no boundary.
    """
    multiclass_predictions = {
        name: said for name, said in predictions.items() if len(np.unique(said)) > 1
    }
    tightest_fits = {
        name: _fit_svm(x, said, MAX_LOG10_C) for name, said in multiclass_predictions.items()
    }
    accuracies = [
        fitting_accuracy(tightest_fits[name], x, said)
        for name, said in multiclass_predictions.items()
    ]
    target_score = min([MAX_FITTING_ACCURACY, *accuracies])
    return {
        name: _fit_at_accuracy(tightest_fits[name], target_score, x, said)
        for name, said in multiclass_predictions.items()
    }


def fitting_accuracy(svm: SVC, x: Array, predicted: Array) -> float:
    """The share of rows on which the machine says what the model said."""
    return float((svm.predict(x) == predicted).mean())


def _fit_svm(x: Array, predicted: Array, log_c: float) -> SVC:
    return SVC(C=10**log_c, gamma=RBF_GAMMA).fit(x, predicted)


def _fit_at_accuracy(tightest_fit: SVC, target_score: float, x: Array, predicted: Array) -> SVC:
    """The machine nearest to the level, by bisection of C from the tightest down."""
    low, high = MIN_LOG10_C, MAX_LOG10_C
    best_fit, best_error = (
        tightest_fit,
        abs(fitting_accuracy(tightest_fit, x, predicted) - target_score),
    )
    for _ in range(12):
        if best_error < 0.001:
            break
        log_c = (low + high) / 2
        svm = _fit_svm(x, predicted, log_c)
        accuracy = fitting_accuracy(svm, x, predicted)
        if abs(accuracy - target_score) < best_error:
            best_fit, best_error = svm, abs(accuracy - target_score)
        low, high = (low, log_c) if accuracy > target_score else (log_c, high)
    return best_fit
