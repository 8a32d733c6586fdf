"""Tools that fit the constant parameters of heads without a closed form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

__all__ = ["merge_duplicates", "minimize_lbfgs", "subsample_weighted"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]


def merge_duplicates(points: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Distinct points with their summed weights: an index of 30 values is 30 points, not 3,000."""
    distinct, group_ids = torch.unique(points, dim=0, return_inverse=True)
    share = weights.new_zeros(len(distinct)).index_add_(0, group_ids, weights)
    return distinct[share > 0], share[share > 0]


def subsample_weighted(
    points: Tensor, share: Tensor, max_points: int = 4096
) -> tuple[Tensor, Tensor]:
    """At most ``max_points`` points that represent all, drawn in proportion to their weights."""
    if len(points) <= max_points:
        return points, share
    # Evenly along a line; in the plane no order is even (a circle sorted by its cosine alternates
    # between its halves), so there at random.
    order = points[:, 0].argsort()
    if points.shape[1] > 1:
        order = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))
    quantiles = (torch.arange(max_points, dtype=share.dtype) + 0.5) / max_points
    picks = torch.searchsorted(share[order].cumsum(0), quantiles).clamp(max=len(points) - 1)
    return points[order[picks]], torch.full((max_points,), 1 / max_points, dtype=share.dtype)


def minimize_lbfgs(
    loss: Callable[[Tensor], Tensor], starts: Iterable[Tensor], max_iter: int = 200
) -> Tensor:
    """The parameters of the lowest loss that L-BFGS finds from any of the starts, in float64."""

    def value_and_gradient(flat_params: FloatArray) -> tuple[float, FloatArray]:
        params = torch.from_numpy(flat_params).requires_grad_()
        with torch.enable_grad():
            value = loss(params)
            (gradient,) = torch.autograd.grad(value, params)
        return float(value.detach()), gradient.numpy()

    settings = {"jac": True, "method": "L-BFGS-B", "options": {"maxiter": max_iter}}
    results = [minimize(value_and_gradient, start.numpy(), **settings) for start in starts]
    return torch.from_numpy(min(results, key=lambda one: float(one.fun)).x)
