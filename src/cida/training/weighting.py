"""Weights of source rows, by their distance to the target."""

from __future__ import annotations

import torch
from torch import Tensor

from cida.indexing import subsample

__all__ = ["proximity_weights"]

MIN_RELATIVE_WEIGHT = 0.05  # of the largest: a class that only far rows have must still count


def proximity_weights(distance: Tensor, share: float) -> Tensor:
    """``0.05 + 0.95 b`` at mean 1: ``b = exp(-d^2 / 2 h^2)``, ``(sum b)^2 / sum b^2 = share n``.

    What holds for a label may change along u; the source next to the target says most about it.

    Parameters
    ----------
    distance : Tensor of shape (n,)
        Distance of each source row to the target.
    share : float
        Effective share of the source rows that count, not counting the constant 0.05; 1 or more for
        equal weights.

    Returns
    -------
    Tensor of shape (n,)
        Weights with mean 1.
    """
    if share >= 1 or len(distance) == 0 or not bool(distance.max() > distance.min()):
        return torch.ones_like(distance.double())
    min_distance = distance.min()
    d = subsample(distance).double() - min_distance
    low, high = float(d[d > 0].min()) * 1e-3, float(d.max()) * 1e4
    for _ in range(100):
        h = (low * high) ** 0.5
        kernel = _gaussian_kernel(d, h)
        effective_share = float(kernel.sum().square() / kernel.square().sum() / len(kernel))
        low, high = (h, high) if effective_share < share else (low, h)
    kernel = _gaussian_kernel(distance.double() - min_distance, high)
    weights = MIN_RELATIVE_WEIGHT + (1 - MIN_RELATIVE_WEIGHT) * kernel
    return weights / weights.mean()


def _gaussian_kernel(distance: Tensor, width: float) -> Tensor:
    return torch.exp(-0.5 * (distance / width).square())
