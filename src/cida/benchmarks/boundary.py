"""A drawable decision boundary: an RBF support vector machine fitted to a model's predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.svm import SVC

__all__ = ["equal_boundaries", "fitting_accuracy"]

Array = np.ndarray[Any, Any]

GAMMA = 2.0  # of the kernel, for z-scored inputs: a reach of about half a deviation
LOOSEST, TIGHTEST = -3.0, 2.0  # log10 of the machine's C; beyond it noise takes minutes to fit
HIGHEST = 0.99


def equal_boundaries(x: Array, predictions: Mapping[str, Array]) -> dict[str, SVC]:
    """One machine for each set of predictions, all with the same fitting accuracy.

    As in the paper's supplement: a network's boundary is drawn as that of an SVM fitted to what it
    predicts, and for fairness all fit equally well. The level is what the worst can reach, at most
    99 %; each C is found by bisection. Predictions of a single class have no boundary.
    """
    several = {name: said for name, said in predictions.items() if len(np.unique(said)) > 1}
    tight = {name: _fit(x, said, TIGHTEST) for name, said in several.items()}
    reached = [fitting_accuracy(tight[name], x, said) for name, said in several.items()]
    level = min([HIGHEST, *reached])
    return {name: _loosened(tight[name], level, x, said) for name, said in several.items()}


def fitting_accuracy(machine: SVC, x: Array, said: Array) -> float:
    """The share of rows on which the machine says what the model said."""
    return float((machine.predict(x) == said).mean())


def _fit(x: Array, said: Array, log_c: float) -> SVC:
    return SVC(C=10**log_c, gamma=GAMMA).fit(x, said)


def _loosened(tight: SVC, level: float, x: Array, said: Array) -> SVC:
    """The machine nearest to the level, by bisection of C from the tightest down."""
    low, high = LOOSEST, TIGHTEST
    nearest, miss = tight, abs(fitting_accuracy(tight, x, said) - level)
    for _ in range(12):
        if miss < 0.001:
            break
        middle = (low + high) / 2
        machine = _fit(x, said, middle)
        accuracy = fitting_accuracy(machine, x, said)
        if abs(accuracy - level) < miss:
            nearest, miss = machine, abs(accuracy - level)
        low, high = (low, middle) if accuracy > level else (middle, high)
    return nearest
