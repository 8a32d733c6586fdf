"""The range of the source to leave out: that nearest to the target."""

from __future__ import annotations

import torch
from torch import Tensor

from cida.scratch import MANY, few, filled, parts, places, room
from cida.space import Space

__all__ = ["nearest_first", "outermost"]

SHARE = 1 / 3


def nearest_first(space: Space, u: Tensor, labelled: Tensor) -> Tensor:
    """The source rows, those nearest to the target first."""
    sources, distance = _from_target(space, u, labelled)
    return sources[distance.argsort(stable=True)]


def outermost(space: Space, u: Tensor, labelled: Tensor) -> Tensor:
    """Which rows are of the third of the source that is nearest to the target."""
    sources, distance = _from_target(space, u, labelled)
    hidden = room((len(u),), torch.bool)
    if len(sources) <= MANY:
        hidden[sources[distance.argsort(stable=True)[: int(SHARE * len(sources))]]] = True
        return hidden
    reach = few(distance).quantile(SHARE)
    for part in parts(len(sources)):
        hidden[sources[part]] = distance[part] <= reach
    return hidden


def _from_target(space: Space, u: Tensor, labelled: Tensor) -> tuple[Tensor, Tensor]:
    """The source rows, and how far each is from the target.

    The target is the farther half of the unlabelled rows that lie outside the source: labels may
    be missing inside it too, and what lies there is no direction to go.
    """
    sources = places(lambda part: labelled[part], len(u))
    others = u[few(places(lambda part: ~labelled[part], len(u)))]
    away = space.distance_to_set(others, u[few(sources)])
    outside = away > 0
    far = away >= (away[outside].median() if bool(outside.any()) else 0.0)
    known = filled(len(sources), lambda part: u[sources[part]])
    return sources, space.distance_to_set(known, others[far])
