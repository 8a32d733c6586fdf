"""Thirds of the source by their distance to the target, for leave-range-out trials."""

from __future__ import annotations

import torch
from torch import Tensor

from cida.indexing import subsample
from cida.spaces import Space

__all__ = ["nearest_source_third", "split_source_thirds"]


def split_source_thirds(space: Space, u: Tensor, labelled: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The source rows nearest to the target, those in the middle, and the farthest."""
    source_rows, distance = _distances_to_target(space, u, labelled)
    ordered = source_rows[distance.argsort(stable=True)]
    third = len(ordered) // 3
    return ordered[:third], ordered[third : len(ordered) - third], ordered[len(ordered) - third :]


def nearest_source_third(space: Space, u: Tensor, labelled: Tensor) -> Tensor:
    """Tell which rows belong to the third of the source that is nearest to the target.

    Parameters
    ----------
    space : Space
        The fitted space of the index.
    u : Tensor of shape (rows, width)
        Raw index values of all rows.
    labelled : Tensor of bool
        True for source rows.

    Returns
    -------
    Tensor of bool
        True for the rows of that third.
    """
    is_nearest = torch.zeros(len(u), dtype=torch.bool)
    is_nearest[split_source_thirds(space, u, labelled)[0]] = True
    return is_nearest


def _distances_to_target(space: Space, u: Tensor, labelled: Tensor) -> tuple[Tensor, Tensor]:
    """The source rows, and the distance of each to the target.

    The target is the farther half of the unlabelled rows outside the source: labels may be missing
    inside it too, and those rows define no direction.
    """
    source_rows = labelled.nonzero()[:, 0]
    target_index = u[subsample((~labelled).nonzero()[:, 0])]
    source_distance = space.distance_to_set(target_index, u[subsample(source_rows)])
    outside = source_distance > 0
    is_far = source_distance >= (source_distance[outside].median() if bool(outside.any()) else 0.0)
    return source_rows, space.distance_to_set(u[source_rows], target_index[is_far])
