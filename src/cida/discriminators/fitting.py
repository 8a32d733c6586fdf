"""What heads without a closed form fit their blind belief with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

__all__ = ["few", "lowest", "merge_repeats"]

Numbers = np.ndarray[Any, np.dtype[np.float64]]


def merge_repeats(points: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Distinct points with their summed weights: an index of 30 values is 30 points, not 3,000."""
    distinct, where = torch.unique(points, dim=0, return_inverse=True)
    share = weights.new_zeros(len(distinct)).index_add_(0, where, weights)
    return distinct[share > 0], share[share > 0]


def few(points: Tensor, share: Tensor, most: int = 4096) -> tuple[Tensor, Tensor]:
    """At most ``most`` points that stand for all, drawn in proportion to their weights."""
    if len(points) <= most:
        return points, share
    # Evenly along a line; in the plane no order is even (a circle sorted by its cosine alternates
    # between its halves), so there at random.
    generator = torch.Generator().manual_seed(0)
    line = points.shape[1] == 1
    order = points[:, 0].argsort() if line else torch.randperm(len(points), generator=generator)
    places = (torch.arange(most, dtype=share.dtype) + 0.5) / most
    chosen = torch.searchsorted(share[order].cumsum(0), places).clamp(max=len(points) - 1)
    return points[order[chosen]], torch.full((most,), 1 / most, dtype=share.dtype)


def lowest(loss: Callable[[Tensor], Tensor], starts: Iterable[Tensor], rounds: int = 200) -> Tensor:
    """The belief of the lowest loss that L-BFGS finds from any of the starts, in float64."""

    def value_and_slope(numbers: Numbers) -> tuple[float, Numbers]:
        belief = torch.from_numpy(numbers).requires_grad_()
        with torch.enable_grad():
            value = loss(belief)
            (slope,) = torch.autograd.grad(value, belief)
        return float(value.detach()), slope.numpy()

    found = [
        minimize(
            value_and_slope, start.numpy(), jac=True, method="L-BFGS-B", options={"maxiter": rounds}
        )
        for start in starts
    ]
    return torch.from_numpy(min(found, key=lambda one: float(one.fun)).x)
