"""A data set whose truth is known, for scoring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["IndexedData"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class IndexedData:
    """A data set with its truth: inputs, labels of every row, index, and which rows are source.

    ``y`` holds the labels of the target rows too, for scoring. Train on ``training_labels``,
    where they are NaN.
    """

    name: str
    x: Array
    y: Array
    u: Array
    source: Array
    scaling: tuple[Array, Array] | None = None  # the mean and deviation that x was z-scored with

    @property
    def training_labels(self) -> Array:
        """The labels with the target rows blanked out."""
        return np.where(self.source, self.y.astype(np.float64), np.nan)
