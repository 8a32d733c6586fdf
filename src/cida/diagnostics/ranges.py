"""The range of the source to leave out: that nearest to the target."""

from __future__ import annotations

import torch
from torch import Tensor

from cida.space import Space

__all__ = ["outermost"]

SHARE = 1 / 3


def outermost(space: Space, u: Tensor, labelled: Tensor) -> Tensor:
    """Which rows are of the third of the source that is nearest to the target."""
    sources = labelled.nonzero()[:, 0]
    away = space.distance_to_set(u[sources], u[~labelled])
    hidden = torch.zeros(len(u), dtype=torch.bool)
    hidden[sources[away.argsort(stable=True)[: int(SHARE * len(sources))]]] = True
    return hidden
