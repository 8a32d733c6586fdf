"""Encoded rows in a file of their own, read as they are dealt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cida.batch import Batch, Rows

__all__ = ["StoredRows", "store_rows"]

Array = np.ndarray[Any, Any]


def store_rows(path: Path, parts: Iterable[Array], width: int) -> Array:
    """Writes float32 rows one after another, so that a full disk is an error, and maps the file."""
    rows = 0
    with path.open("wb") as file:
        for part in parts:
            file.write(np.ascontiguousarray(part, dtype=np.float32).tobytes())
            rows += len(part)
    if not width:
        return np.zeros((rows, 0), dtype=np.float32)
    return np.memmap(path, dtype=np.float32, mode="r", shape=(rows, width))


class StoredRows(Rows):
    """Row i is row ``place[i]`` of the stored array: only the rows of a batch are read."""

    def __init__(self, stored: Array, place: Tensor, y: Tensor, u: Tensor, labelled: Tensor):
        super().__init__(place, y, u, labelled)
        self.stored = np.asarray(stored)

    def __getitem__(self, indices: Tensor) -> Batch:
        batch = super().__getitem__(indices)
        return replace(batch, x=torch.from_numpy(self.stored[batch.x.numpy()]))
