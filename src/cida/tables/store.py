"""Encoded rows in a file of their own, read as they are dealt."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from cida.data import Batch, IndexedDataset
from cida.scratch import MANY, to_be_dealt

__all__ = ["MappedDataset", "RowBuffer", "write_mapped_rows"]

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


class RowBuffer:
    """Rows that come part by part: in memory or, of very many, in a file without a name."""

    def __init__(self) -> None:
        self.parts: list[Array] = []
        self.n_rows = 0
        self.file: IO[bytes] | None = None

    def add(self, part: Array) -> None:
        self.parts.append(part)
        self.n_rows += len(part)
        if self.n_rows > MANY:
            self.file = self.file or tempfile.TemporaryFile()  # noqa: SIM115 (`whole` closes it)
            for one in self.parts:
                self.file.write(np.ascontiguousarray(one).tobytes())
            self.parts = [part[:0]]

    def concatenate(self) -> Array:
        """All rows; nothing can be added any more."""
        if self.file is None:
            return np.concatenate(self.parts)
        with self.file as file:
            file.flush()
            template = self.parts[0]
            return np.memmap(file, template.dtype, "r+", shape=(self.n_rows, *template.shape[1:]))


class MappedDataset(IndexedDataset):
    """Row i is row ``place[i]`` of the stored array: only the rows of a batch are read."""

    def __init__(self, array: Array, row_numbers: Tensor, y: Tensor, u: Tensor, labelled: Tensor):
        super().__init__(row_numbers, y, u, labelled)
        self.array = np.asarray(to_be_dealt(array))

    def __getitem__(self, indices: Tensor) -> Batch:
        batch = super().__getitem__(indices)
        return replace(batch, x=torch.from_numpy(self.array[batch.x.numpy()]))
