"""Encoded rows in a temporary file, mapped and read as they are needed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["map_rows"]

Array = np.ndarray[Any, Any]


def map_rows(parts: Iterable[Array], width: int) -> Array:
    """Write float32 rows one after another to a file without a name, and map it.

    The rows are written, not mapped, so that a full disk is an error; the file goes with the array.
    """
    n_rows = 0
    with tempfile.TemporaryFile() as file:
        for part in parts:
            file.write(np.ascontiguousarray(part, dtype=np.float32).tobytes())
            n_rows += len(part)
        file.flush()
        if not width or not n_rows:
            return np.zeros((n_rows, width), dtype=np.float32)
        return np.memmap(file, dtype=np.float32, mode="r", shape=(n_rows, width))
