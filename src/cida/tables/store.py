"""Encoded rows in a file of their own, read as they are dealt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cida.data import Batch, IndexedDataset
from cida.io.arrays import advise_random_access

__all__ = ["MappedDataset", "write_mapped_rows"]

Array = np.ndarray[Any, Any]


def write_mapped_rows(path: Path, parts: Iterable[Array], width: int) -> Array:
    """Writes float32 rows one after another, so that a full disk is an error, and maps the file."""
    rows = 0
    with path.open("wb") as file:
        for part in parts:
            file.write(np.ascontiguousarray(part, dtype=np.float32).tobytes())
            rows += len(part)
    if not width:
        return np.zeros((rows, 0), dtype=np.float32)
    return np.memmap(path, dtype=np.float32, mode="r", shape=(rows, width))


class MappedDataset(IndexedDataset):
    """Row i is row ``place[i]`` of the stored array: only the rows of a batch are read."""

    def __init__(self, array: Array, row_numbers: Tensor, y: Tensor, u: Tensor, labelled: Tensor):
        super().__init__(row_numbers, y, u, labelled)
        self.array = np.asarray(advise_random_access(array))

    def __getitem__(self, indices: Tensor) -> Batch:
        batch = super().__getitem__(indices)
        return replace(batch, x=torch.from_numpy(self.array[batch.x.numpy()]))
