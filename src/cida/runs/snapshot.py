"""What a report shows of a run: some rows along u, and what the model makes of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypedDict

import numpy as np
import torch

from cida.io.json_decode import decode
from cida.io.tensors import ModelFileError, read_model_file, write_model_file
from cida.selection.expected_score import ExpectedScore
from cida.spaces import Space, space_from_dict

__all__ = [
    "MAX_SNAPSHOT_ROWS",
    "SNAPSHOT_FILE",
    "PlaneMap",
    "RotatedImages",
    "Snapshot",
    "load_snapshot",
]

Array = np.ndarray[Any, Any]

SNAPSHOT_FILE = "view.safetensors"  # in a run's folder
MAX_SNAPSHOT_ROWS = 1500  # of a view: a cloud that can be looked at, in a small file
SNAPSHOT_SCHEMA_VERSION = 1


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
        tensors = {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in self._arrays()}
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

    def _arrays(self) -> list[tuple[str, Array]]:
        small = np.float32
        arrays = [
            ("u", self.u.astype(np.float64)),
            ("source", self.source.astype(bool)),
            ("predicted", self.predicted.astype(small)),
            ("truth", self.truth.astype(small)),
        ]
        if self.z is not None:
            arrays.append(("z", self.z.astype(small)))
        if (plane := self.plane) is not None:
            arrays += [("plane.x", plane.x.astype(small))]
            arrays += [("plane.grid", plane.grid.astype(np.float16))]
            arrays += [
                (f"plane.stops.{k}", s.astype(np.float64)) for k, s in enumerate(plane.stops)
            ]
        if (rotated := self.rotated_images) is not None:
            arrays += [
                ("turned.images", rotated.images.astype(np.uint8)),
                ("turned.labels", rotated.labels.astype(np.int64)),
                ("turned.stops", rotated.stops.astype(np.float64)),
                ("turned.angle", rotated.angle.astype(small)),
                ("turned.predicted", rotated.predicted.astype(small)),
            ]
        return arrays


class _Header(TypedDict, total=False):
    """What is said beside the arrays."""

    view: int
    space: dict[str, Any]
    index: list[str]
    classes: list[str] | None
    dates: list[bool]
    box: list[float] | None
    expected: list[ExpectedScore]


def load_snapshot(path: str | os.PathLike[str]) -> Snapshot:
    """The view that `View.write` wrote."""
    tensors, raw_header = read_model_file(path)
    try:
        header = decode(_Header, raw_header, "the header")
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        if header["view"] != SNAPSHOT_SCHEMA_VERSION:
            raise ValueError(f"view {header['view']}")
        snapshot = Snapshot(
            space=space_from_dict(header["space"]),
            index_names=tuple(header["index"]),
            classes=None if header["classes"] is None else tuple(header["classes"]),
            u=arrays["u"],
            source=arrays["source"],
            predicted=arrays["predicted"],
            truth=arrays["truth"],
            z=arrays.get("z"),
            is_date=tuple(header["dates"]),
            plane=_load_plane(arrays, header["box"]),
            rotated_images=_load_rotated_images(arrays),
            expected=tuple(header["expected"]),
        )
        validate_snapshot(snapshot)
        return snapshot
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"{os.fspath(path)} is not a view as this cida writes it ({error}); run it again."
        ) from None


def _load_plane(arrays: Mapping[str, Array], box: Sequence[float] | None) -> PlaneMap | None:
    if box is None:
        return None
    left, right, bottom, top = box
    stops = sorted(name for name in arrays if name.startswith("plane.stops."))
    return PlaneMap(
        x=arrays["plane.x"],
        box=(left, right, bottom, top),
        stops=tuple(arrays[name] for name in stops),
        grid=arrays["plane.grid"],
    )


def _load_rotated_images(arrays: Mapping[str, Array]) -> RotatedImages | None:
    names = ("images", "labels", "stops", "angle", "predicted")
    if "turned.images" not in arrays:
        return None
    return RotatedImages(**{name: arrays[f"turned.{name}"] for name in names})


def validate_snapshot(snapshot: Snapshot) -> None:
    """Refuses arrays that do not fit together: a file may be of anybody's making."""
    rows, columns = len(snapshot.u) if snapshot.u.ndim else 0, len(snapshot.index_names)
    outputs = 1 if snapshot.classes is None else len(snapshot.classes)
    if not rows or snapshot.space.width != columns or len(snapshot.is_date) not in (0, columns):
        raise ValueError(
            f"{rows} rows of {columns} index columns in a space of {snapshot.space.width}"
        )
    _validate_array("u", snapshot.u, (rows, columns))
    _validate_array("predicted", snapshot.predicted, (rows, outputs))
    _validate_array("truth", snapshot.truth, (rows,), allow_nan=True)
    _validate_array("source", snapshot.source, (rows,), kind="b")
    if snapshot.z is not None:
        _validate_array("z", snapshot.z, (rows, *snapshot.z.shape[1:2]))
    if snapshot.classes is not None:
        known_labels = snapshot.truth[np.isfinite(snapshot.truth)]
        if (
            not outputs
            or ((known_labels < 0) | (known_labels >= outputs) | (known_labels % 1 != 0)).any()
        ):
            raise ValueError("truth has a class that is not there")
    if (plane := snapshot.plane) is not None:
        _validate_array("plane.x", plane.x, (rows, 2))
        _validate_array("box", np.array(plane.box), (4,))
        if (
            len(plane.stops) != columns
            or plane.box[0] >= plane.box[1]
            or plane.box[2] >= plane.box[3]
        ):
            raise ValueError("plane has no stops for each index column, or its box is empty")
        for plane_stops in plane.stops:
            _validate_array("plane.stops", plane_stops, (len(plane_stops),), min_size=1)
        cells = tuple(len(places) for places in plane.stops)
        _validate_array(
            "plane.grid", plane.grid, (*cells, *plane.grid.shape[columns:][:2]), min_size=1
        )
    if (rotated := snapshot.rotated_images) is not None:
        n_images, stops = len(rotated.images), len(rotated.stops)
        _validate_array(
            "turned.images",
            rotated.images,
            (n_images, *rotated.images.shape[1:3]),
            kind="u",
            min_size=1,
        )
        _validate_array("turned.labels", rotated.labels, (n_images,), kind="i")
        _validate_array("turned.stops", rotated.stops, (stops,), min_size=1)
        _validate_array("turned.angle", rotated.angle, (n_images, stops))
        _validate_array("turned.predicted", rotated.predicted, (n_images, stops, outputs))
    for cell in snapshot.expected:
        numbers = np.hstack([cell.lo, cell.hi, cell.score, cell.low, cell.high])
        alike = np.shape(cell.lo) == np.shape(cell.hi)
        if not np.isfinite(numbers).all() or cell.n < 1 or not alike:
            raise ValueError("expected has a cell that is none")


def _validate_array(
    name: str,
    values: Array,
    shape: tuple[int, ...],
    kind: str = "f",
    allow_nan: bool = False,
    min_size: int = 0,
) -> None:
    if values.shape != shape or values.dtype.kind != kind or values.size < min_size:
        raise ValueError(f"{name} has the shape {list(values.shape)} and the type {values.dtype}")
    if kind == "f" and not (np.isfinite(values) | (allow_nan & np.isnan(values))).all():
        raise ValueError(f"{name} holds what is no finite number")
