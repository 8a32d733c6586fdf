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

from cida.space.base import Bins, Space, thinned
from cida.space.hull import outside_hull
from cida.space.line import Line
from cida.space.periodic import Periodic
from cida.space.product import Product

__all__ = [
    "Bins",
    "Line",
    "Periodic",
    "Product",
    "Space",
    "line_space",
    "outside_hull",
    "space_from_dict",
    "thinned",
]


def line_space(width: int) -> Space:
    """The space of u when nothing is known about it: a `Line`, or a `Product` of lines."""
    return Line() if width == 1 else Product([Line() for _ in range(width)])


def space_from_dict(values: Mapping[str, Any]) -> Space:
    """Reads what `Space.to_dict` wrote."""
    kind = values.get("kind")
    if kind == "line":
        return Line(float(values["centre"]), float(values["scale"]))
    if kind == "periodic":
        return Periodic(float(values["period"]))
    if kind == "product":
        return Product([space_from_dict(part) for part in values["parts"]])
    raise ValueError(f"the space kind {kind!r} is unknown; known are line, periodic and product.")
