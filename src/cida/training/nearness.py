"""How much each source row counts, by how near it is to the target."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["near_weights"]


def near_weights(distance: Tensor, share: float) -> Tensor:
    """``w = exp(-d^2 / 2 h^2)`` with mean 1, with h so that ``(sum w)^2 / sum w^2 = share n``.

    ``distance`` is how far each source row is from the target. What holds for a label may change
    along u; the source next to the target says most about it, and ``share`` is how many of the n
    source rows count in effect.
    """
    if share >= 1 or len(distance) == 0 or not bool(distance.max() > distance.min()):
        return torch.ones_like(distance.double())
    d = distance.double() - distance.min()
    if float((d <= 0).double().mean()) >= share:  # as many are nearest of all
        return (d <= 0) / (d <= 0).double().mean()
    low, high = float(d[d > 0].min()) * 1e-3, float(d.max()) * 1e4
    for _ in range(100):
        h = (low * high) ** 0.5
        low, high = (h, high) if _effective(_bell(d, h)) < share else (low, h)
    weights = _bell(d, high)
    return weights / weights.mean()


def _bell(distance: Tensor, width: float) -> Tensor:
    return torch.exp(-0.5 * (distance / width).square())


def _effective(weights: Tensor) -> float:
    return float(weights.sum().square() / weights.square().sum() / len(weights))
