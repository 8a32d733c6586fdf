"""Inside the source's hull or outside it: interpolation or extrapolation."""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor

from cida.array_types import Array
from cida.spaces.base import Space

__all__ = ["is_outside_hull"]


def is_outside_hull(space: Space, u: Tensor, reference: Tensor) -> Tensor:
    """Tell which rows of u are no mixture ``sum_i w_i r_i``, ``w >= 0``, ``sum w = 1``, of rows r.

    Section 5.4 of the paper: a target outside the convex hull of the source is extrapolation. One
    linear program is solved for each distinct row, in the metric coordinates of the space.

    Parameters
    ----------
    space : Space
        The space of the index; no column may be periodic.
    u : Tensor of shape (rows, width)
        Raw index values.
    reference : Tensor of shape (references, width)
        The rows r whose convex hull is meant, such as those of the source.

    Returns
    -------
    Tensor of shape (rows,)
        True where a row lies outside the hull.

    Raises
    ------
    ValueError
        If a column is periodic, since a circle has no convex hull, or the reference is empty.
    """
    if any(space.periods):
        raise ValueError(
            f"space has a column that wraps ({space!r}), and a circle has no convex hull; leave "
            "the column out."
        )
    if not len(reference):
        raise ValueError("reference has no rows, so there is no hull; give at least one.")
    points = torch.unique(space.metric_coordinates(reference).double(), dim=0).numpy()
    queries, row = torch.unique(space.metric_coordinates(u).double(), dim=0, return_inverse=True)
    flags = [_is_outside(point, points) for point in queries.numpy()]
    return torch.tensor(flags, dtype=torch.bool)[row]


def _is_outside(point: Array, points: Array) -> bool:
    low, high = points.min(0), points.max(0)
    if (point < low).any() or (point > high).any():
        return True  # outside the box already
    mixture = np.vstack([points.T, np.ones(len(points))])
    target = np.append(point, 1.0)
    solution = linprog(np.zeros(len(points)), A_eq=mixture, b_eq=target, method="highs")
    return bool(solution.status == 2)  # infeasible
