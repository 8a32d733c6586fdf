"""What a report shows of a run: some rows along u, and what the model makes of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypedDict

import numpy as np
import torch

from cida.array_types import Array
from cida.io.json_decode import decode
from cida.io.tensors import ModelFileError, read_model_file, write_model_file
from cida.selection.expected_score import ExpectedScore
from cida.spaces import Space, space_from_dict

SNAPSHOT_FILE = "snapshot.safetensors"  # in a run's folder
MAX_SNAPSHOT_ROWS = 1500  # of a view: a cloud that can be looked at, in a small file
SNAPSHOT_SCHEMA_VERSION = 1
SMALL = np.float32
ROW_TYPES = {"u": np.float64, "source": np.bool_, "predicted": SMALL, "truth": SMALL, "z": SMALL}
IMAGE_TYPES = {"images": np.uint8, "labels": np.int64, "stops": np.float64}
IMAGE_TYPES |= {"angle": SMALL, "predicted": SMALL}
KINDS = {"source": "b", "turned.images": "u", "turned.labels": "i"}  # all others are floats


@dataclass(frozen=True)
class PlaneMap:
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
class RotatedImages:
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
class Snapshot:
    """Some rows of a run, which may be from all its parts, and what the model makes of each.

    ``u`` is ``(rows, columns)``; ``predicted`` has a column for each class, the probabilities, or
    one column of numbers where ``classes`` is None. ``truth`` is the number of the class, or the
    number: NaN where nobody knows, or where the row was trained on. ``z`` is None for a model that
    has no encoding. ``dates`` says which index columns are days since 1970-01-01.
    """

    space: Space
    index_names: tuple[str, ...]
    classes: tuple[str, ...] | None
    u: Array
    source: Array
    predicted: Array
    truth: Array
    z: Array | None = None
    is_date: tuple[bool, ...] = ()
    plane: PlaneMap | None = None
    rotated_images: RotatedImages | None = None
    expected: tuple[ExpectedScore, ...] = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        """All of it in one safetensors file; u in double precision, the grid in half."""
        arrays = {name: np.ascontiguousarray(each) for name, each in self._arrays().items()}
        tensors = {name: torch.from_numpy(each) for name, each in arrays.items()}
        header = {
            "view": SNAPSHOT_SCHEMA_VERSION,
            "space": self.space.to_dict(),
            "index": list(self.index_names),
            "classes": None if self.classes is None else list(self.classes),
            "dates": list(self.is_date),
            "box": None if self.plane is None else list(self.plane.box),
            "expected": [asdict(cell) for cell in self.expected],
        }
        write_model_file(path, tensors, header)

    def _arrays(self) -> dict[str, Array]:
        named = [(name, getattr(self, name), dtype) for name, dtype in ROW_TYPES.items()]
        if (plane := self.plane) is not None:
            named += [("plane.x", plane.x, np.float32), ("plane.grid", plane.grid, np.float16)]
            named += [(f"plane.stops.{k}", s, np.float64) for k, s in enumerate(plane.stops)]
        if (rotated := self.rotated_images) is not None:
            types = IMAGE_TYPES.items()
            named += [(f"turned.{name}", getattr(rotated, name), dtype) for name, dtype in types]
        return {name: values.astype(dtype) for name, values, dtype in named if values is not None}


class _Header(TypedDict, total=False):
    """What is said beside the arrays."""

    view: int
    space: dict[str, Any]
    index: tuple[str, ...]
    classes: tuple[str, ...] | None
    dates: tuple[bool, ...]
    box: tuple[float, float, float, float] | None
    expected: tuple[ExpectedScore, ...]


def load_snapshot(path: str | os.PathLike[str]) -> Snapshot:
    """The view that `View.write` wrote."""
    tensors, raw_header = read_model_file(path)
    try:
        header = decode(_Header, raw_header, "the header")
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        if header["view"] != SNAPSHOT_SCHEMA_VERSION:
            raise ValueError(f"view {header['view']}")
        plane, rotated, box = None, None, header["box"]
        if box is not None:
            stops = sorted(name for name in arrays if name.startswith("plane.stops."))
            places = tuple(arrays[name] for name in stops)
            plane = PlaneMap(arrays["plane.x"], box, places, arrays["plane.grid"])
        if "turned.images" in arrays:
            rotated = RotatedImages(**{name: arrays[f"turned.{name}"] for name in IMAGE_TYPES})
        snapshot = Snapshot(
            space=space_from_dict(header["space"]),
            index_names=header["index"],
            classes=header["classes"],
            **{name: arrays[name] for name in ROW_TYPES if name != "z"},
            z=arrays.get("z"),
            is_date=header["dates"],
            plane=plane,
            rotated_images=rotated,
            expected=header["expected"],
        )
        _validate(snapshot, arrays)
        return snapshot
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"{os.fspath(path)} is not a view as this cida writes it ({error}); run it again."
        ) from None


def _validate(snapshot: Snapshot, arrays: Mapping[str, Array]) -> None:
    """Refuses arrays that do not fit together: a file may be of anybody's making."""
    rows, columns = len(snapshot.u) if snapshot.u.ndim else 0, len(snapshot.index_names)
    width, classes = snapshot.space.width, snapshot.classes
    if not rows or width != columns or len(snapshot.is_date) not in (0, columns):
        raise ValueError(f"{rows} rows of {columns} index columns in a space of {width}")
    outputs = 1 if classes is None else len(classes)
    shapes: dict[str, tuple[int, ...]] = {"u": (rows, columns), "predicted": (rows, outputs)}
    shapes |= {"truth": (rows,), "source": (rows,)}
    if snapshot.z is not None:
        shapes["z"] = (rows, *snapshot.z.shape[1:2])
    if (plane := snapshot.plane) is not None:
        left, right, bottom, top = plane.box
        is_box = np.isfinite(plane.box).all() and left < right and bottom < top
        if len(plane.stops) != columns or not is_box:
            raise ValueError("plane has no stops for each index column, or its box is empty")
        cells = tuple(len(places) for places in plane.stops)
        shapes |= {f"plane.stops.{k}": (count,) for k, count in enumerate(cells)}
        shapes |= {"plane.x": (rows, 2), "plane.grid": (*cells, *plane.grid.shape[columns:][:2])}
    if (rotated := snapshot.rotated_images) is not None:
        grid = n_images, n_stops = len(rotated.images), len(rotated.stops)
        shapes["turned.images"] = (n_images, *rotated.images.shape[1:3])
        shapes |= {"turned.labels": (n_images,), "turned.stops": (n_stops,)}
        shapes |= {"turned.angle": grid, "turned.predicted": (*grid, outputs)}
    for name, shape in shapes.items():
        values, kind = arrays[name], KINDS.get(name, "f")
        if values.shape != shape or values.dtype.kind != kind or not values.size:
            raise ValueError(
                f"{name} has the shape {list(values.shape)} and the type {values.dtype}"
            )
        if not (np.isfinite(values) | (np.isnan(values) & (name == "truth"))).all():
            raise ValueError(f"{name} holds what is no finite number")
    labels = snapshot.truth[np.isfinite(snapshot.truth)]
    if classes is not None and not np.isin(labels, np.arange(outputs)).all():
        raise ValueError("truth has a class that is not there")
    for cell in snapshot.expected:
        numbers = np.hstack([cell.lo, cell.hi, cell.score, cell.low, cell.high])
        alike = np.shape(cell.lo) == np.shape(cell.hi)
        if not np.isfinite(numbers).all() or cell.n < 1 or not alike:
            raise ValueError("expected has a cell that is none")
