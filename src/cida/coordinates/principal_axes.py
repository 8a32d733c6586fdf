"""How the principal axes of the rows turn along the index."""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm

from cida.array_types import Array

__all__ = ["principal_axis_rotations"]

N_NEIGHBOR_BINS = 3  # bins on either side that share their rows, the nearer the more
SHAPE_DECAY = 0.8  # of the shape that axes are compared with, from bin to bin
N_ROTATION_ITERATIONS = 5
MIN_AXIS_SIGNAL_TO_NOISE = 15.0  # of the difference of two axes to the noise of a covariance


def principal_axis_rotations(residuals: Array, bin_of_row: Array) -> Array:
    """``T_b`` such that ``T_b C_b T_b'`` stands still: C_b is the covariance in bin b along u.

    In the eigenbasis of the shape so far, with eigenvalues l, an entry C_ij between two axes asks
    for a turn of ``C_ij (l_i - l_j) / ((l_i - l_j)^2 + 15^2 l_i l_j / n)`` in their plane: the
    second term is 15 times the noise of C_ij, squared, so that axes of nearly equal length, whose
    direction is not determined, hardly turn. Each step takes the smallest turn that achieves this.
    """
    counts, covariances = _smoothed_covariances(residuals, bin_of_row)
    rotation = np.eye(residuals.shape[1])
    shape = covariances[0]
    rotations = [rotation]
    for count, covariance in zip(counts[1:], covariances[1:], strict=True):
        lengths, axes = np.linalg.eigh(shape)
        for _ in range(N_ROTATION_ITERATIONS):
            turned = rotation @ covariance @ rotation.T
            rotation = _rotation_step(lengths, axes, turned, count) @ rotation
        shape = SHAPE_DECAY * shape + (1 - SHAPE_DECAY) * rotation @ covariance @ rotation.T
        rotations.append(rotation)
    return np.stack(rotations)


def _rotation_step(lengths: Array, axes: Array, covariance: Array, count: float) -> Array:
    """The rotation that brings the axes of a covariance towards the given axes and lengths."""
    rotated_covariance = axes.T @ covariance @ axes
    length_gaps = lengths[:, None] - lengths[None, :]
    noise = np.outer(lengths, lengths).clip(min=0) / count
    scale = length_gaps**2 + MIN_AXIS_SIGNAL_TO_NOISE**2 * noise + 1e-12
    generator = rotated_covariance * length_gaps / scale
    np.fill_diagonal(generator, 0.0)
    return np.asarray(axes @ expm(generator) @ axes.T)


def _smoothed_covariances(residuals: Array, bin_of_row: Array) -> tuple[Array, Array]:
    """How many rows each bin and its neighbours have, and their covariance."""
    bins = int(bin_of_row.max()) + 1
    parts = [residuals[bin_of_row == b] for b in range(bins)]
    products = np.stack([part.T @ part for part in parts])
    bin_gaps = np.abs(np.arange(bins)[:, None] - np.arange(bins)[None, :])
    share = (1 - bin_gaps / (N_NEIGHBOR_BINS + 1)).clip(min=0)
    counts = share @ np.bincount(bin_of_row, minlength=bins)
    sums = np.einsum("ab,bij->aij", share, products)
    return counts, sums / counts[:, None, None]
