"""Kernel ridge regression for up to a few thousand rows, and arrays made ready for it."""

from __future__ import annotations

import numpy as np
import torch
from scipy.linalg import solve
from torch import Tensor
from torch.nn.functional import one_hot

from cida.array_types import Array

__all__ = [
    "kernel_ridge",
    "make_label_matrix",
    "reduce_columns",
    "squared_distances",
    "standardize_columns",
]


MAX_KERNEL_COLUMNS = 50  # of x; wider x is reduced to its principal components
RIDGE_PENALTY = 0.1


def make_label_matrix(y: Tensor) -> Array:
    """Classes as one-hot columns, numbers as columns of their own; shape (rows, columns)."""
    columns = y.reshape(len(y), -1) if y.is_floating_point() else one_hot(y.long())
    matrix: Array = columns.double().numpy()
    return matrix


def standardize_columns(values: Array, train_values: Array | None = None) -> Array:
    """Columns at mean 0 and variance 1, by the training rows if given; constant ones become 0."""
    reference = values if train_values is None else train_values
    std = reference.std(0)
    is_varying = std > 1e-12 * np.abs(reference).max(0)  # the mean of a constant may be rounded
    return np.asarray((values - reference.mean(0)) / np.where(is_varying, std, 1.0))


def reduce_columns(x: Tensor) -> Tensor:
    """Standardized columns, or the first principal components of a wide x."""
    centered = x.double() - x.double().mean(0)
    if x.shape[1] <= MAX_KERNEL_COLUMNS:
        std = centered.std(0)
        scaled: Tensor = (centered / torch.where(std > 0, std, 1.0)).float()
        return scaled
    _, directions = torch.linalg.eigh(centered.T @ centered)
    components: Tensor = (centered @ directions[:, -MAX_KERNEL_COLUMNS:]).float()
    return components


def kernel_ridge(
    x: Array,
    y: Array,
    queries: Array,
    index_kernel: tuple[Array, Array, float] | None = None,
    *,
    penalty: float = RIDGE_PENALTY,
    bandwidth: float | None = None,
) -> Array:
    """Fit y by a ridge regression with the kernel ``exp(-|x - x'|^2 / b)``, and predict queries.

    The bandwidth b is by default V[x], summed over columns. ``index_kernel``, if given, is the
    index of x, that of the queries, and a radius: the kernel is then multiplied by
    ``exp(-|u - u'|^2 / 2 radius^2)``.
    """
    mean = y.mean(0)
    bandwidth = bandwidth or max(float(x.var(axis=0).sum()), 1e-300)
    gram, cross_gram = (
        np.exp(-squared_distances(x, x) / bandwidth),
        np.exp(-squared_distances(queries, x) / bandwidth),
    )
    if index_kernel is not None:
        index, query_index, radius = index_kernel
        index_bandwidth = max(2 * radius**2, 1e-300)
        gram *= np.exp(-squared_distances(index, index) / index_bandwidth)
        cross_gram *= np.exp(-squared_distances(query_index, index) / index_bandwidth)
    gram[np.diag_indices(len(gram))] += penalty
    weights = solve(gram, y - mean, assume_a="pos", overwrite_a=True, check_finite=False)
    predicted: Array = cross_gram @ weights + mean
    return predicted


def squared_distances(a: Array, b: Array) -> Array:
    """Squared distances between the rows of a and those of b."""
    raw_distances = (a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * a @ b.T
    distances: Array = np.maximum(raw_distances, 0)
    return distances
