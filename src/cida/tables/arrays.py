"""The arrays of an npz file, or of a folder of mapped npy files, as a table: X, y and u."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cida.arrays import map_array, read_arrays
from cida.tables.cells import Kind
from cida.tables.reading import ROWS, TableFile, array_files

__all__ = ["ArraysFile"]

Array = np.ndarray[Any, Any]
KINDS: dict[str, Kind] = {"b": "boolean", "i": "number", "u": "number", "f": "number",
                          "U": "category", "M": "date"}  # fmt: skip


class ArraysFile(TableFile):
    """X of one vector a row is the columns x0, x1, ...; X of any other shape is kept as it is.

    y may be absent (to predict). u of several columns is u0, u1, ...; -1 in a y of whole numbers
    means no label, as in the estimators. The arrays of a folder stay in their files, X.npy, y.npy
    and u.npy, and are read from there: they may be larger than memory.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.unreadable = path, {}
        arrays = _load(path)
        for name in ("X", "u"):
            if name not in arrays:
                there = ", ".join(arrays) or "none"
                raise ValueError(f"{path} has no array {name} (there: {there}); it needs X and u.")
        lengths = {name: len(values) for name, values in arrays.items()}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{name} {count}" for name, count in lengths.items())
            raise ValueError(f"{path} has arrays of different lengths ({counts}); make them equal.")
        if arrays["X"].dtype.kind not in "fiub":
            raise ValueError(f"{path} has X of type {arrays['X'].dtype}; it must be numbers.")
        self.columns = _columns("u", arrays["u"])
        self.index = tuple(self.columns)
        if "y" in arrays:
            self.columns |= _columns("y", arrays["y"])
            self.unlabelled = -1.0 if arrays["y"].dtype.kind == "i" else None
        if arrays["X"].ndim == 1 or (arrays["X"].ndim > 2 and not arrays["X"].size):
            raise ValueError(
                f"{path} has X of shape {arrays['X'].shape}; give a row of numbers for each row, "
                "for one column the shape (rows, 1)."
            )
        if arrays["X"].ndim == 2:
            self.columns |= {f"x{k}": column for k, column in enumerate(arrays["X"].T)}
        else:
            self.array = arrays["X"]
            wrong = [row + first for first, rows in _in_turn(self.array) for row in _broken(rows)]
            if wrong:
                raise ValueError(
                    f"{path} has NaN or infinity in {len(wrong)} rows of X (first: row "
                    f"{wrong[0] + 1}); fill in or drop such values first."
                )
        self.names = tuple(self.columns)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        rows = len(next(iter(self.columns.values())))
        for start in range(0, rows, ROWS):
            try:
                parts = [_cells(self.columns[name][start : start + ROWS]) for name in columns]
            except UnicodeError as error:
                raise ValueError(f"{self.path} has texts that are none ({error}).") from None
            yield pa.RecordBatch.from_arrays(parts, names=list(columns))

    def kinds(self, columns: Sequence[str]) -> dict[str, Kind | None]:
        return {name: KINDS[self.columns[name].dtype.kind] for name in columns}


def _load(path: Path) -> dict[str, Array]:
    try:
        if path.is_dir():
            arrays = {name: map_array(file) for name, file in array_files(path).items()}
        else:
            arrays = read_arrays(path, ("X", "y", "u"))
    except (ValueError, OSError) as error:
        kind = "folder of npy files" if path.is_dir() else "npz file"
        raise ValueError(f"{path} is no {kind} of plain arrays ({error}).") from None
    for name, values in arrays.items():
        if values.ndim == 0 or values.dtype.kind not in KINDS:
            raise ValueError(
                f"{path} has {name} of type {values.dtype} and shape {values.shape}; give an array "
                "of numbers or texts with one entry for each row."
            )
    return arrays


def _in_turn(array: Array) -> Iterator[tuple[int, Array]]:
    """Parts of a batch's length, each with the number of its first row."""
    for start in range(0, len(array), ROWS):
        yield start, array[start : start + ROWS]


def _broken(rows: Array) -> list[int]:
    """Which rows have NaN or infinity."""
    whole = np.isfinite(rows.reshape(len(rows), -1)).all(axis=1)
    return [int(row) for row in np.flatnonzero(~whole)]


def _columns(name: str, values: Array) -> dict[str, Array]:
    if values.ndim == 1 or values.shape[1:] == (1,):
        return {name: values.reshape(-1)}
    if values.ndim > 2 or name == "y":
        raise ValueError(f"{name} has the shape {values.shape}; give one number for each row.")
    return {f"{name}{k}": column for k, column in enumerate(values.T)}


def _cells(values: Array) -> Any:
    return pa.array(np.ascontiguousarray(values), from_pandas=True)
