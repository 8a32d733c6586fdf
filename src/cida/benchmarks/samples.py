"""What all samples of data share: their fingerprint, and scores in words."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from cida.diagnostics import BinScore

__all__ = ["bin_words", "fingerprint"]

Array = np.ndarray[Any, Any]


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
