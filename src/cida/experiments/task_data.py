"""What all samples of data share: their fingerprint, scores in words, and points to look at."""

from __future__ import annotations

import hashlib
import warnings
from typing import Any

import numpy as np

from cida.datasets import IndexedData
from cida.estimators import CIDAClassifier, CidaWarning
from cida.experiments.display_rows import DisplayRows
from cida.indexing import evenly_spaced
from cida.metrics import BinScore
from cida.runs.snapshot import MAX_SNAPSHOT_ROWS
from cida.selection.expected_score import ExpectedScore

__all__ = [
    "N_EXPECTED_SCORE_BINS",
    "bin_score_to_dict",
    "estimate_expected_scores",
    "hash_arrays",
    "select_display_rows",
]

Array = np.ndarray[Any, Any]

N_EXPECTED_SCORE_BINS = 20  # along u


def bin_score_to_dict(score: BinScore) -> dict[str, Any]:
    """A bin's accuracy, as results.json has it."""
    return {"lo": score.lo, "hi": score.hi, "score": score.score, "n": score.n}


def hash_arrays(*arrays: Array) -> str:
    """A short hash of the data's bytes: equal for equal data."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def select_display_rows(data: IndexedData) -> DisplayRows:
    """Points of a world, evenly from all of it."""
    row_numbers = evenly_spaced(len(data.u), MAX_SNAPSHOT_ROWS).numpy()
    width = data.u.reshape(len(data.u), -1).shape[1]
    names = ("u",) if width == 1 else tuple(f"u{k + 1}" for k in range(width))
    return DisplayRows(
        data.x[row_numbers],
        data.u[row_numbers],
        data.source[row_numbers],
        data.y[row_numbers],
        names,
    )


def estimate_expected_scores(data: IndexedData, model: CIDAClassifier) -> list[ExpectedScore]:
    """What accuracy to expect along u; labels of the source alone are read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)  # a report says which cells were not checked
        labels = data.training_labels
        return model.expected_score(data.x, labels, data.u, n_bins=N_EXPECTED_SCORE_BINS)
