"""The range of the source to leave out: that nearest to the target."""

from __future__ import annotations

import torch
from torch import Tensor

from cida.space import Space

__all__ = ["nearest_first", "outermost"]

SHARE = 1 / 3


def nearest_first(space: Space, u: Tensor, labelled: Tensor) -> Tensor:
    """The source rows, those nearest to the target first.

    The target is the farther half of the unlabelled rows that lie outside the source: labels may
    be missing inside it too, and what lies there is no direction to go.
    """
    sources, others = labelled.nonzero()[:, 0], u[~labelled]
    away = space.distance_to_set(others, u[sources])
    outside = away > 0
    far = away >= (away[outside].median() if bool(outside.any()) else 0.0)
    order = space.distance_to_set(u[sources], others[far]).argsort(stable=True)
    return sources[order]


def outermost(space: Space, u: Tensor, labelled: Tensor) -> Tensor:
    """Which rows are of the third of the source that is nearest to the target."""
    order = nearest_first(space, u, labelled)
    hidden = torch.zeros(len(u), dtype=torch.bool)
    hidden[order[: int(SHARE * len(order))]] = True
    return hidden
