"""A data set whose truth is known, for scoring."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cida.array_types import Array

__all__ = ["IndexedData"]


@dataclass(frozen=True)
class IndexedData:
    """A data set with its truth: inputs, labels of every row, index, and which rows are source.

    Parameters
    ----------
    name : str
        Name for reports.
    x : ndarray of shape (rows, columns)
        Inputs.
    y : ndarray of shape (rows,)
        Labels of all rows, those of target rows included, for scoring.
    u : ndarray of shape (rows,) or (rows, width)
        Domain index.
    source : ndarray of bool
        True for the rows whose labels may be used.
    scaling : tuple of two ndarray, optional
        Mean and standard deviation that x was standardized with.

    Examples
    --------
    >>> from cida.datasets import make_circle
    >>> data = make_circle()
    >>> data.x.shape, int(data.source.sum())
    ((3000, 2), 600)
    """

    name: str
    x: Array
    y: Array
    u: Array
    source: Array
    scaling: tuple[Array, Array] | None = None  # the mean and deviation that x was z-scored with

    @property
    def training_labels(self) -> Array:
        """The labels, NaN for target rows: what `fit` takes."""
        return np.where(self.source, self.y.astype(np.float64), np.nan)
