"""A space scaled to the index values of a fit, with checks that name what is wrong."""

from __future__ import annotations

from torch import Tensor

from cida.indexing import subsample
from cida.spaces.base import Space

__all__ = ["fit_space"]

MIN_EXTENT = 1e-150  # below, squares of distances are 0
MIN_PERIODIC_EXTENT = 1e-9  # of a turn: whole turns are rounded


def fit_space(space: Space, u: Tensor) -> Space:
    """Scale the space to u; refuses a column that never changes or a width that does not fit."""
    if not isinstance(space, Space):
        raise TypeError(
            f"space is {space!r}; give an instance such as cida.Line(), cida.Periodic(24) or "
            "cida.Product([cida.Line(), cida.Periodic(24)])."
        )
    if space.width != u.shape[1]:
        raise ValueError(
            f"domain_index has {u.shape[1]} columns but space={space!r} is for {space.width}; "
            "give one Line or Periodic for each column, in a Product."
        )
    u = subsample(u)
    for number, column in enumerate(space.column_spaces):
        values = u[:, number : number + 1]
        extent = float(column.distance(values, values[:1]).max())
        if 0 < extent < MIN_EXTENT:
            raise ValueError(f"domain_index spans {extent:.3g} in all; give it in other units.")
        if extent <= (MIN_PERIODIC_EXTENT if column.periods[0] else 0.0):
            where = f" in column {number}" if space.width > 1 else ""
            raise ValueError(
                f"domain_index is constant{where} (every row has {float(values[0]):g}); "
                "without different index values there is nothing to adapt to: leave it out."
            )
    return space.fit(u)
