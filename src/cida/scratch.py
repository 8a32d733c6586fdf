"""Numbers of very many rows: in files without a name rather than in memory, made part by part."""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["MANY", "evenly_spaced", "filled", "parts", "places", "room", "subsample", "to_be_dealt"]

MANY = 1_000_000  # rows: up to here all is in memory, and whole
ENOUGH = 250_000  # of very many, to tell a mean, a spread or a range by
PART = 1 << 18  # rows at a time, of very many


def evenly_spaced(rows: int, max_rows: int) -> Tensor:
    """At most ``most`` of the numbers 0 .. rows - 1, evenly spaced, both ends included."""
    spread: Tensor = torch.linspace(0, rows - 1, min(rows, max_rows), dtype=torch.float64)
    return spread.round().long()


def subsample(values: Tensor) -> Tensor:
    """The rows or, of very many, some evenly spaced: enough for what is true of all."""
    return values if len(values) <= MANY else values[evenly_spaced(len(values), ENOUGH)]


def parts(rows: int) -> Iterator[slice]:
    """All rows at once or, of very many, so many at a time."""
    size = rows if rows <= MANY else PART
    for start in range(0, rows, max(1, size)):
        yield slice(start, min(start + size, rows))


def room(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Zeros of this shape; of very many rows in a file that is gone when the tensor is.

    The file is in Python's folder for temporary files (TMPDIR); its place is taken at once, so that
    a full disk is an error here and not a crash later.
    """
    if shape[0] <= MANY:
        return torch.zeros(shape, dtype=dtype)
    kind = torch.zeros(0, dtype=dtype).numpy().dtype
    with tempfile.TemporaryFile() as file:
        os.posix_fallocate(file.fileno(), 0, kind.itemsize * math.prod(shape))
        return torch.from_numpy(np.memmap(file, kind, "r+", shape=shape))


def filled(rows: int, make: Callable[[slice], Tensor]) -> Tensor:
    """What ``make`` gives for all rows, asked for part by part where they are very many."""
    if rows <= MANY:
        return make(slice(0, rows))
    found: Tensor | None = None
    for part in parts(rows):
        made = make(part)
        if found is None:
            found = room((rows, *made.shape[1:]), made.dtype)
        found[part] = made
    assert found is not None, "there are very many rows"
    return found


def places(which: Callable[[slice], Tensor], rows: int) -> Tensor:
    """The numbers of the rows for which ``which`` is true."""
    if rows <= MANY:
        return which(slice(0, rows)).nonzero()[:, 0]
    count = sum(int(which(part).sum()) for part in parts(rows))
    found, end = room((count,), torch.int64), 0
    for part in parts(rows):
        mine = which(part).nonzero()[:, 0]
        found[end : end + len(mine)] = mine + part.start
        end += len(mine)
    return found


def to_be_dealt(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array; a mapped one is told that its rows will be read here and there.

    Else the system reads 128 KB around each row of a file that is larger than its memory.
    """
    mapped = getattr(array, "_mmap", None)
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_RANDOM"):
        mapped.madvise(mmap.MADV_RANDOM)
    return array
