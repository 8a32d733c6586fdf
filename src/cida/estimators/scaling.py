"""Centring and scaling of X, fitted once and kept with the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

__all__ = ["Scaling"]

Array = np.ndarray[Any, Any]


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
        """Zero mean and unit variance under the weights; columns that never change stay as is."""
        share = weight / weight.sum()
        if x.ndim > 2:
            share = np.repeat(share, x[0].size) / x[0].size
            x = x.reshape(-1, 1)
        mean = share @ x.astype(np.float64, copy=False)
        spread = np.sqrt(share @ (x - mean) ** 2)
        flat = spread <= 1e-12 * np.maximum(1.0, np.abs(mean))
        scale = np.where(flat, 1.0, spread)
        return cls(mean, scale)

    def apply(self, x: Array) -> Tensor:
        return torch.from_numpy(((x - self.mean) / self.scale).astype(np.float32))
