"""How much is left of the index, and how far the target lies from the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.spatial import ConvexHull, QhullError
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from torch import Tensor

from cida.space import Product, Space, outside_hull, thinned

__all__ = ["Support", "explained_share", "target_support"]

Array = np.ndarray[Any, Any]
LOOKED_AT = 500  # target rows: each is a linear programme


def explained_share(features: Array, index: Array) -> float:
    """The share of the index's variance that a ridge regression explains, on the other half.

    Every second row is fitted on, the rows between are scored; 0 where it does no better than the
    mean. ``index`` is the embedded index, shape ``(rows, width)``.
    """
    spread = features.std(axis=0)
    scaled = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    model = Ridge(alpha=1.0).fit(scaled[::2], index[::2])
    predicted = model.predict(scaled[1::2]).reshape(-1, index.shape[1])
    share = r2_score(index[1::2], predicted, multioutput="variance_weighted")
    return max(0.0, float(share))


@dataclass(frozen=True)
class Support:
    """How much of the target lies outside the source's support, and how far its farthest row is.

    ``farthest`` is the distance to the nearest source row, in the units of u where it is one
    number and in those of the space's metric where it is several.
    """

    outside: float
    farthest: float


def target_support(space: Space, target: Tensor, source: Tensor) -> Support:
    """The support is the source's range: an interval, an arc or, of several lines, a hull."""
    outside = torch.zeros(len(target), dtype=torch.bool)
    for number, column in enumerate(space.columns):
        if column.turns[0]:
            one = slice(number, number + 1)
            cells = column.bins(source[:, one], 30)
            start, length = cells.lo[0], cells.hi[-1] - cells.lo[0]
            along = torch.remainder(target[:, one] - start, column.turns[0] * column.unit)
            # A hair before the start is a whole turn after it.
            near = column.turns[0] * column.unit - along < 1e-9 * column.unit
            outside |= ((along > length * (1 + 1e-9)) & ~near)[:, 0]
    lines = [number for number, turn in enumerate(space.turns) if not turn]
    if len(lines) == 1:
        mine, known = target[:, lines], source[:, lines]
        outside |= ((mine < known.min()) | (mine > known.max()))[:, 0]
    elif lines:
        rows = thinned(len(target), LOOKED_AT)
        part = Product([space.columns[number] for number in lines])
        corners = _corners(part, source[:, lines])
        outside = outside[rows] | outside_hull(part, target[rows][:, lines], corners)
    distance = space.distance_to_set(target, source).max()
    unit = space.columns[0].unit if space.width == 1 else 1.0
    return Support(float(outside.double().mean()), float(distance) * unit)


def _corners(space: Space, points: Tensor) -> Tensor:
    """The corners of the hull alone: many points inside would only cost time."""
    try:
        hull = ConvexHull(space.coordinates(points).numpy())
    except (QhullError, ValueError):  # all on one line, or too few
        distinct: Tensor = torch.unique(points, dim=0)
        return distinct[thinned(len(distinct), 2000)]
    return points[torch.from_numpy(hull.vertices).long()]
