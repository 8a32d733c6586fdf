"""The geometry of the domain index u: all that depends on what u is.

A space turns raw index values, shape ``(rows, width)``, into

* *coordinates*: one scaled number a column, in which the metric is measured,
* the *embedding*: what networks see and what regression heads regress; the scaled number on a
  `Line`, ``(cos, sin)`` on a `Periodic` index, so that there is no seam,
* *anchors* and *bins*: points and cells that cover the index range.

Spaces are immutable. ``fit`` returns a new, scaled space and leaves the one it was called on alone.
"""

from collections.abc import Mapping
from typing import Any

from cida.io.json_decode import decode
from cida.spaces.base import Bins, Space
from cida.spaces.hull import is_outside_hull
from cida.spaces.line import Line
from cida.spaces.periodic import Periodic
from cida.spaces.product import Product

__all__ = [
    "Bins",
    "Line",
    "Periodic",
    "Product",
    "Space",
    "is_outside_hull",
    "make_line_space",
    "space_from_dict",
]

MAX_ABS_INDEX = 1e150  # of an index in a file: squares of distances must not overflow


def make_line_space(width: int) -> Space:
    """Return the space of an index about which nothing is known: a `Line`, or a `Product` of lines.

    Parameters
    ----------
    width : int
        Number of index columns.

    Returns
    -------
    Space
        A space that is not fitted yet.
    """
    return Line() if width == 1 else Product([Line() for _ in range(width)])


def space_from_dict(values: Mapping[str, Any], max_depth: int = 8) -> Space:
    """Make a space from what `Space.to_dict` returned.

    Parameters
    ----------
    values : mapping
        The kind of the space and its parameters.
    max_depth : int, default 8
        How many levels of products inside products are accepted.

    Returns
    -------
    Space
        The space.

    Raises
    ------
    ValueError
        If the kind is unknown or a value is not usable.
    """
    kind = values.get("kind") if isinstance(values, Mapping) else values
    if kind == "line":
        centre, scale = (decode(float, values.get(name), name) for name in ("centre", "scale"))
        if not (abs(centre) < MAX_ABS_INDEX and 1 / MAX_ABS_INDEX < scale < MAX_ABS_INDEX):
            raise ValueError(f"the line has centre {centre:g} and scale {scale:g}; it is no scale.")
        return Line(centre, scale)
    if kind == "periodic":
        return Periodic(decode(float, values.get("period"), "period"))
    if kind == "product":
        parts = decode(list[dict[str, Any]], values.get("parts"), "parts")
        if not max_depth:
            raise ValueError("the space has products in products in products; name its parts.")
        return Product([space_from_dict(part, max_depth - 1) for part in parts])
    raise ValueError(f"the space kind {kind!r} is unknown; known are line, periodic and product.")
