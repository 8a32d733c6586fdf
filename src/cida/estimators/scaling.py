"""Centring and scaling of X, fitted once and kept with the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from cida.array_checks import check_magnitude
from cida.array_types import Array

__all__ = ["Scaler"]

MAX_CHUNK_NUMBERS = 1 << 20


@dataclass(frozen=True)
class Scaler:
    """``(x - mean) / scale``: per column for tables, over everything for images and signals."""

    mean: Array
    scale: Array

    @classmethod
    def identity(cls) -> Self:
        return cls(np.zeros(()), np.ones(()))

    @classmethod
    def fit(cls, x: Array, weight: Array) -> Self:
        """Zero mean and unit variance under the weights.

        Columns that never change stay as is, but for huge ones: the rounding of their mean is huge.
        """
        check_magnitude("X", x)
        share = weight / weight.sum()
        parts = list(iter_chunks(x))
        mean = sum(_weighted_sum(share[part], x[part]) for part in parts)
        variance = sum(_weighted_sum(share[part], (x[part] - mean) ** 2) for part in parts)
        scale = np.sqrt(variance)
        min_scale = 1e-12 * np.maximum(1.0, np.abs(mean))
        is_constant = scale <= min_scale
        return cls(np.asarray(mean), np.where(is_constant, np.maximum(1.0, min_scale), scale))

    def transform(self, x: Array) -> Tensor:
        scaled = np.empty(x.shape, dtype=np.float32)
        for part in iter_chunks(x):
            with np.errstate(over="ignore"):
                scaled[part] = (x[part] - self.mean) / self.scale
            if np.isinf(scaled[part]).any():
                largest = float(np.abs(x[part]).max())
                raise ValueError(
                    f"X holds {largest:.3g}, too far from the values fitted on to compute with; "
                    "give it in the same units, or look for values that stand for missing ones."
                )
        return torch.from_numpy(scaled)


def _weighted_sum(share: Array, x: Array) -> Array:
    """The weighted sum over rows; for images and signals, of each row's mean."""
    if x.ndim > 2:
        x = x.reshape(len(x), -1).mean(axis=1, dtype=np.float64)
    total: Array = share @ x.astype(np.float64, copy=False)
    return total


def iter_chunks(x: Array) -> Iterator[slice]:
    """Slices of about a million numbers: no full copy in double precision is ever made."""
    rows = max(1, MAX_CHUNK_NUMBERS // max(1, x[0].size))
    for start in range(0, len(x), rows):
        yield slice(start, start + rows)
