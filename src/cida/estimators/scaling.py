"""Centring and scaling of X, fitted once and kept with the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

__all__ = ["Scaling", "check_size"]

Array = np.ndarray[Any, Any]
LARGEST = 1e150  # its square is still a number


def check_size(name: str, values: Array) -> None:
    """Refuses numbers that cannot be squared."""
    most = float(np.abs(values).max(initial=0.0))
    if most > LARGEST:
        raise ValueError(
            f"{name} has numbers as large as {most:.3g}, beyond what can be computed with; "
            "give it in other units, or look for values that stand for missing ones."
        )


@dataclass(frozen=True)
class Scaling:
    """``(x - mean) / scale``: per column for tables, over everything for images and signals."""

    mean: Array
    scale: Array

    @classmethod
    def none(cls) -> Self:
        return cls(np.zeros(()), np.ones(()))

    @classmethod
    def fit(cls, x: Array, weight: Array) -> Self:
        """Zero mean and unit variance under the weights.

        Columns that never change stay as is, but for huge ones: the rounding of their mean is huge.
        """
        check_size("X", x)
        share = weight / weight.sum()
        mean = sum(_weighted(share[part], x[part]) for part in _chunks(x))
        spread = sum(_weighted(share[part], (x[part] - mean) ** 2) for part in _chunks(x))
        scale = np.sqrt(spread)
        least = 1e-12 * np.maximum(1.0, np.abs(mean))
        flat = scale <= least
        return cls(np.asarray(mean), np.where(flat, np.maximum(1.0, least), scale))

    def apply(self, x: Array) -> Tensor:
        scaled = np.empty(x.shape, dtype=np.float32)
        for part in _chunks(x):
            with np.errstate(over="ignore"):
                scaled[part] = (x[part] - self.mean) / self.scale
            if np.isinf(scaled[part]).any():
                far = float(np.abs(x[part]).max())
                raise ValueError(
                    f"X holds {far:.3g}, too far from the values fitted on to compute with; give "
                    "it in the same units, or look for values that stand for missing ones."
                )
        return torch.from_numpy(scaled)


def _weighted(share: Array, x: Array) -> Array:
    """The weighted sum over rows; for images and signals, of each row's mean."""
    if x.ndim > 2:
        x = x.reshape(len(x), -1).mean(axis=1, dtype=np.float64)
    total: Array = share @ x.astype(np.float64, copy=False)
    return total


def _chunks(x: Array, numbers: int = 1 << 20) -> Iterator[slice]:
    """Slices of about a million numbers: no full copy in double precision is ever made."""
    rows = max(1, numbers // max(1, x[0].size))
    for start in range(0, len(x), rows):
        yield slice(start, start + rows)
