"""What all samples of data share: their fingerprint, scores in words, and points to look at."""

from __future__ import annotations

import hashlib
import warnings
from typing import Any

import numpy as np

from cida.benchmarks.views import Shown
from cida.datasets import World
from cida.diagnostics import BinScore, Expected
from cida.diagnostics.view import MOST_ROWS
from cida.estimators import CIDAClassifier, CidaWarning
from cida.space import thinned

__all__ = ["EXPECTED_CELLS", "bin_words", "expected_in_world", "fingerprint", "shown_world"]

Array = np.ndarray[Any, Any]

EXPECTED_CELLS = 20  # along u


def bin_words(score: BinScore) -> dict[str, Any]:
    """A bin's accuracy, as results.json has it."""
    return {"lo": score.lo, "hi": score.hi, "accuracy": score.score, "n": score.n}


def fingerprint(*arrays: Array) -> str:
    """A short hash of the data's bytes: equal for equal data."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def shown_world(world: World) -> Shown:
    """Points of a world, evenly from all of it."""
    some = thinned(len(world.u), MOST_ROWS).numpy()
    width = world.u.reshape(len(world.u), -1).shape[1]
    names = ("u",) if width == 1 else tuple(f"u{k + 1}" for k in range(width))
    return Shown(world.x[some], world.u[some], world.source[some], world.y[some], names)


def expected_in_world(world: World, model: CIDAClassifier) -> list[Expected]:
    """What accuracy to expect along u; labels of the source alone are read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)  # a report says which cells were not checked
        labels = world.training_labels
        return model.expected_accuracy(world.x, labels, world.u, bins=EXPECTED_CELLS)
