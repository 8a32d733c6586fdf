"""Kernel ridge regression on a thousand rows or so: a learner that needs no training loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.linalg import solve
from torch import Tensor

__all__ = ["kernel_ridge", "reduce_columns", "squared_distances"]

Array = np.ndarray[Any, Any]

MAX_KERNEL_COLUMNS = 50  # of x; of more, as many principal components
RIDGE_PENALTY = 0.1


def reduce_columns(x: Tensor) -> Tensor:
    """Columns of unit size, or of very many the first principal components."""
    centered = x.double() - x.double().mean(0)
    if x.shape[1] <= MAX_KERNEL_COLUMNS:
        std = centered.std(0)
        scaled: Tensor = (centered / torch.where(std > 0, std, 1.0)).float()
        return scaled
    _, directions = torch.linalg.eigh(centered.T @ centered)
    components: Tensor = (centered @ directions[:, -MAX_KERNEL_COLUMNS:]).float()
    return components


def kernel_ridge(
    x: Array, y: Array, queries: Array, index_kernel: tuple[Array, Array, float] | None = None
) -> Array:
    """Kernel ridge regression: ``exp(-|x - x'|^2 / V[x])``, in u as well where it is given."""
    mean = y.mean(0)
    bandwidth = max(float(x.var(axis=0).sum()), 1e-300)
    gram, cross_gram = (
        np.exp(-squared_distances(x, x) / bandwidth),
        np.exp(-squared_distances(queries, x) / bandwidth),
    )
    if index_kernel is not None:
        index, query_index, radius = index_kernel
        index_bandwidth = max(2 * radius**2, 1e-300)
        gram *= np.exp(-squared_distances(index, index) / index_bandwidth)
        cross_gram *= np.exp(-squared_distances(query_index, index) / index_bandwidth)
    gram[np.diag_indices(len(gram))] += RIDGE_PENALTY
    weights = solve(gram, y - mean, assume_a="pos", overwrite_a=True, check_finite=False)
    predicted: Array = cross_gram @ weights + mean
    return predicted


def squared_distances(a: Array, b: Array) -> Array:
    """Squared distances between the rows of a and those of b."""
    raw_distances = (a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * a @ b.T
    distances: Array = np.maximum(raw_distances, 0)
    return distances
