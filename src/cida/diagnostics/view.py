"""What a report shows of a run: some rows along u, and what the model makes of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypedDict

import numpy as np
import torch

from cida.diagnostics.expected import Expected
from cida.plain import checked
from cida.space import Space, space_from_dict
from cida.training.checkpoint import ModelFileError, read_model_file, write_model_file

__all__ = ["MOST_ROWS", "VIEW", "Plane", "Turned", "View", "read_view"]

Array = np.ndarray[Any, Any]

VIEW = "view.safetensors"  # in a run's folder
MOST_ROWS = 1500  # of a view: a cloud that can be looked at, in a small file
SCHEMA = 1


@dataclass(frozen=True)
class Plane:
    """Rows that are points of a plane, and what is predicted all over it as u moves.

    ``x`` has two columns; ``box`` is left, right, bottom, top. ``stops`` are the values of each
    index column at which ``grid[k1, (k2,) row, column]`` was made: the log-odds of the second
    class, whose zero is where a boundary is, or the prediction as a share of its range; row 0 is at
    the bottom.
    """

    x: Array
    box: tuple[float, float, float, float]
    stops: tuple[Array, ...]
    grid: Array


@dataclass(frozen=True)
class Turned:
    """Upright images (one byte a pixel), and what becomes of each when it comes turned by u.

    ``angle[image, k]`` is by how many degrees, anticlockwise, the transformer turns the image that
    comes turned by ``stops[k]`` degrees; ``predicted[image, k]`` the probability of each class.
    """

    images: Array
    labels: Array
    stops: Array
    angle: Array
    predicted: Array


@dataclass(frozen=True)
class View:
    """Some rows of a run, which may be from all its parts, and what the model makes of each.

    ``u`` is ``(rows, columns)``; ``predicted`` has a column for each class, the probabilities, or
    one column of numbers where ``classes`` is None. ``truth`` is the number of the class, or the
    number: NaN where nobody knows, or where the row was trained on. ``z`` is None for a model that
    has no encoding. ``dates`` says which index columns are days since 1970-01-01.
    """

    space: Space
    index: tuple[str, ...]
    classes: tuple[str, ...] | None
    u: Array
    source: Array
    predicted: Array
    truth: Array
    z: Array | None = None
    dates: tuple[bool, ...] = ()
    plane: Plane | None = None
    turned: Turned | None = None
    expected: tuple[Expected, ...] = ()

    def write(self, path: str | os.PathLike[str]) -> None:
        """All of it in one safetensors file; u in double precision, the grid in half."""
        tensors = {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in self._arrays()}
        header = {
            "view": SCHEMA,
            "space": self.space.to_dict(),
            "index": list(self.index),
            "classes": None if self.classes is None else list(self.classes),
            "dates": list(self.dates),
            "box": None if self.plane is None else list(self.plane.box),
            "expected": [asdict(cell) for cell in self.expected],
        }
        write_model_file(path, tensors, header)

    def _arrays(self) -> list[tuple[str, Array]]:
        small = np.float32
        found = [
            ("u", self.u.astype(np.float64)),
            ("source", self.source.astype(bool)),
            ("predicted", self.predicted.astype(small)),
            ("truth", self.truth.astype(small)),
        ]
        if self.z is not None:
            found.append(("z", self.z.astype(small)))
        if (plane := self.plane) is not None:
            found += [("plane.x", plane.x.astype(small))]
            found += [("plane.grid", plane.grid.astype(np.float16))]
            found += [(f"plane.stops.{k}", s.astype(np.float64)) for k, s in enumerate(plane.stops)]
        if (turned := self.turned) is not None:
            found += [
                ("turned.images", turned.images.astype(np.uint8)),
                ("turned.labels", turned.labels.astype(np.int64)),
                ("turned.stops", turned.stops.astype(np.float64)),
                ("turned.angle", turned.angle.astype(small)),
                ("turned.predicted", turned.predicted.astype(small)),
            ]
        return found


class _Header(TypedDict, total=False):
    """What is said beside the arrays."""

    view: int
    space: dict[str, Any]
    index: list[str]
    classes: list[str] | None
    dates: list[bool]
    box: list[float] | None
    expected: list[Expected]


def read_view(path: str | os.PathLike[str]) -> View:
    """The view that `View.write` wrote."""
    tensors, found = read_model_file(path)
    try:
        header = checked(_Header, found, "the header")
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        if header["view"] != SCHEMA:
            raise ValueError(f"view {header['view']}")
        view = View(
            space=space_from_dict(header["space"]),
            index=tuple(header["index"]),
            classes=None if header["classes"] is None else tuple(header["classes"]),
            u=arrays["u"],
            source=arrays["source"],
            predicted=arrays["predicted"],
            truth=arrays["truth"],
            z=arrays.get("z"),
            dates=tuple(header["dates"]),
            plane=_plane(arrays, header["box"]),
            turned=_turned(arrays),
            expected=tuple(header["expected"]),
        )
        check_view(view)
        return view
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"{os.fspath(path)} is not a view as this cida writes it ({error}); run it again."
        ) from None


def _plane(arrays: Mapping[str, Array], box: Sequence[float] | None) -> Plane | None:
    if box is None:
        return None
    left, right, bottom, top = box
    stops = sorted(name for name in arrays if name.startswith("plane.stops."))
    return Plane(
        x=arrays["plane.x"],
        box=(left, right, bottom, top),
        stops=tuple(arrays[name] for name in stops),
        grid=arrays["plane.grid"],
    )


def _turned(arrays: Mapping[str, Array]) -> Turned | None:
    names = ("images", "labels", "stops", "angle", "predicted")
    if "turned.images" not in arrays:
        return None
    return Turned(**{name: arrays[f"turned.{name}"] for name in names})


def check_view(view: View) -> None:
    """Refuses arrays that do not fit together: a file may be of anybody's making."""
    rows, columns = len(view.u) if view.u.ndim else 0, len(view.index)
    outputs = 1 if view.classes is None else len(view.classes)
    if not rows or view.space.width != columns or len(view.dates) not in (0, columns):
        raise ValueError(f"{rows} rows of {columns} index columns in a space of {view.space.width}")
    _check("u", view.u, (rows, columns))
    _check("predicted", view.predicted, (rows, outputs))
    _check("truth", view.truth, (rows,), holes=True)
    _check("source", view.source, (rows,), kind="b")
    if view.z is not None:
        _check("z", view.z, (rows, *view.z.shape[1:2]))
    if view.classes is not None:
        known = view.truth[np.isfinite(view.truth)]
        if not outputs or ((known < 0) | (known >= outputs) | (known % 1 != 0)).any():
            raise ValueError("truth has a class that is not there")
    if (plane := view.plane) is not None:
        _check("plane.x", plane.x, (rows, 2))
        _check("box", np.array(plane.box), (4,))
        if (
            len(plane.stops) != columns
            or plane.box[0] >= plane.box[1]
            or plane.box[2] >= plane.box[3]
        ):
            raise ValueError("plane has no stops for each index column, or its box is empty")
        for places in plane.stops:
            _check("plane.stops", places, (len(places),), least=1)
        cells = tuple(len(places) for places in plane.stops)
        _check("plane.grid", plane.grid, (*cells, *plane.grid.shape[columns:][:2]), least=1)
    if (turned := view.turned) is not None:
        count, stops = len(turned.images), len(turned.stops)
        _check(
            "turned.images", turned.images, (count, *turned.images.shape[1:3]), kind="u", least=1
        )
        _check("turned.labels", turned.labels, (count,), kind="i")
        _check("turned.stops", turned.stops, (stops,), least=1)
        _check("turned.angle", turned.angle, (count, stops))
        _check("turned.predicted", turned.predicted, (count, stops, outputs))
    for cell in view.expected:
        numbers = np.hstack([cell.lo, cell.hi, cell.score, cell.low, cell.high])
        alike = np.shape(cell.lo) == np.shape(cell.hi)
        if not np.isfinite(numbers).all() or cell.n < 1 or not alike:
            raise ValueError("expected has a cell that is none")


def _check(
    name: str,
    values: Array,
    shape: tuple[int, ...],
    kind: str = "f",
    holes: bool = False,
    least: int = 0,
) -> None:
    if values.shape != shape or values.dtype.kind != kind or values.size < least:
        raise ValueError(f"{name} has the shape {list(values.shape)} and the type {values.dtype}")
    if kind == "f" and not (np.isfinite(values) | (holes & np.isnan(values))).all():
        raise ValueError(f"{name} holds what is no finite number")
