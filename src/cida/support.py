"""How much of the target lies outside the source, and how far."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from scipy.spatial import ConvexHull, QhullError
from torch import Tensor

from cida.indexing import evenly_spaced
from cida.spaces import Product, Space, is_outside_hull

__all__ = ["TargetSupport", "measure_target_support"]

MAX_HULL_ROWS = 500  # target rows: each is a linear program


@dataclass(frozen=True)
class TargetSupport:
    """How much of the target lies outside the source's support, and how far its farthest row is.

    ``max_distance`` is the distance to the nearest source row, in the units of u where it is one
    number and in those of the space's metric where it is several.
    """

    share_outside: float
    max_distance: float


def measure_target_support(space: Space, target: Tensor, source: Tensor) -> TargetSupport:
    """The support is the source's range: an interval, an arc or, of several lines, a hull."""
    outside = torch.zeros(len(target), dtype=torch.bool)
    for number, column in enumerate(space.column_spaces):
        if column.periods[0]:
            column_slice = slice(number, number + 1)
            cells = column.make_bins(source[:, column_slice], 30)
            start, length = cells.lower[0], cells.upper[-1] - cells.lower[0]
            offset = torch.remainder(
                target[:, column_slice] - start, column.periods[0] * column.raw_units_per_distance
            )
            # A hair before the start is a whole turn after it.
            is_start = (
                column.periods[0] * column.raw_units_per_distance - offset
                < 1e-9 * column.raw_units_per_distance
            )
            outside |= ((offset > length * (1 + 1e-9)) & ~is_start)[:, 0]
    lines = [number for number, turn in enumerate(space.periods) if not turn]
    if len(lines) == 1:
        target_values, source_values = target[:, lines], source[:, lines]
        outside |= ((target_values < source_values.min()) | (target_values > source_values.max()))[
            :, 0
        ]
    elif lines:
        rows = evenly_spaced(len(target), MAX_HULL_ROWS)
        line_space = Product([space.column_spaces[number] for number in lines])
        corners = _corners(line_space, source[:, lines])
        outside = outside[rows] | is_outside_hull(line_space, target[rows][:, lines], corners)
    distance = space.distance_to_set(target, source).max()
    unit = space.column_spaces[0].raw_units_per_distance if space.width == 1 else 1.0
    return TargetSupport(float(outside.double().mean()), float(distance) * unit)


def _corners(space: Space, points: Tensor) -> Tensor:
    """The corners of the hull alone: many points inside would only cost time."""
    try:
        hull = ConvexHull(space.metric_coordinates(points).numpy())
    except (QhullError, ValueError):  # all on one line, or too few
        distinct: Tensor = torch.unique(points, dim=0)
        return distinct[evenly_spaced(len(distinct), 2000)]
    return points[torch.from_numpy(hull.vertices).long()]
