"""The arrays of an npz file, or of a folder of mapped npy files, as a table: X, y and u."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cida.array_types import Array
from cida.io.arrays import map_array, read_arrays
from cida.tables.sources import MAX_BATCH_ROWS, TableSource, find_array_files

__all__ = ["ArraySource"]


class ArraySource(TableSource):
    """X of one vector a row is the columns x0, x1, ...; X of any other shape is kept as it is.

    y may be absent (to predict). u of several columns is u0, u1, ...; -1 in a y of whole numbers
    means no label, as in the estimators. The arrays of a folder stay in their files, X.npy, y.npy
    and u.npy, and are read from there: they may be larger than memory.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.unreadable = path, {}
        arrays = _load_arrays(path)
        for name in ("X", "u"):
            if name not in arrays:
                available = ", ".join(arrays) or "none"
                raise ValueError(
                    f"{path} has no array {name} (there: {available}); it needs X and u."
                )
        lengths = {name: len(values) for name, values in arrays.items()}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{name} {count}" for name, count in lengths.items())
            raise ValueError(f"{path} has arrays of different lengths ({counts}); make them equal.")
        if arrays["X"].dtype.kind not in "fiub":
            raise ValueError(f"{path} has X of type {arrays['X'].dtype}; it must be numbers.")
        self.columns = _split_columns("u", arrays["u"])
        self.default_index, self.default_label = tuple(self.columns), "y"
        if "y" in arrays:
            self.columns |= _split_columns("y", arrays["y"])
            self.missing_label = -1.0 if arrays["y"].dtype.kind == "i" else None
        if arrays["X"].ndim == 1 or (arrays["X"].ndim > 2 and not arrays["X"].size):
            raise ValueError(
                f"{path} has X of shape {arrays['X'].shape}; give a row of numbers for each row, "
                "for one column the shape (rows, 1)."
            )
        if arrays["X"].ndim == 2:
            self.columns |= {f"x{k}": column for k, column in enumerate(arrays["X"].T)}
        else:
            self.input_array = x = arrays["X"]
            is_bad = [_has_nonfinite(x[part]) for part in _iter_slices(len(x))]
            bad_rows = np.flatnonzero(np.concatenate(is_bad))
            if len(bad_rows):
                raise ValueError(
                    f"{path} has NaN or infinity in {len(bad_rows)} rows of X (first: row "
                    f"{bad_rows[0] + 1}); fill in or drop such values first."
                )
        self.column_names = tuple(self.columns)
        self.types = {name: _to_arrow(column[:0]).type for name, column in self.columns.items()}

    def iter_batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for part in _iter_slices(len(next(iter(self.columns.values())))):
            try:
                yield pa.record_batch({n: _to_arrow(self.columns[n][part]) for n in columns})
            except UnicodeError as error:
                raise ValueError(f"{self.path} has texts that are none ({error}).") from None


def _load_arrays(path: Path) -> dict[str, Array]:
    try:
        if path.is_dir():
            arrays = {name: map_array(file) for name, file in find_array_files(path).items()}
        else:
            arrays = read_arrays(path, ("X", "y", "u"))
    except (ValueError, OSError) as error:
        kind = "folder of npy files" if path.is_dir() else "npz file"
        raise ValueError(f"{path} is no {kind} of plain arrays ({error}).") from None
    for name, values in arrays.items():
        if values.ndim == 0 or values.dtype.kind not in "biufUM":
            raise ValueError(
                f"{path} has {name} of type {values.dtype} and shape {values.shape}; give an array "
                "of numbers or texts with one entry for each row."
            )
    return arrays


def _iter_slices(n_rows: int) -> Iterator[slice]:
    """The rows of each batch."""
    for start in range(0, n_rows, MAX_BATCH_ROWS):
        yield slice(start, start + MAX_BATCH_ROWS)


def _has_nonfinite(rows: Array) -> Any:
    return ~np.isfinite(rows.reshape(len(rows), -1)).all(axis=1)


def _split_columns(name: str, values: Array) -> dict[str, Array]:
    if values.ndim == 1 or values.shape[1:] == (1,):
        return {name: values.reshape(-1)}
    if values.ndim > 2 or name == "y":
        raise ValueError(f"{name} has the shape {values.shape}; give one number for each row.")
    return {f"{name}{k}": column for k, column in enumerate(values.T)}


def _to_arrow(values: Array) -> Any:
    return pa.array(np.ascontiguousarray(values), from_pandas=True)
