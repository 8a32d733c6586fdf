"""Segments of breathing as `Rows`, read from memory maps as they are dealt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cida.data import Batch, IndexedDataset

__all__ = ["NightDataset"]

Array = np.ndarray[Any, Any]


class NightDataset(IndexedDataset):
    """Rows of one or several stores: row i is segment ``place[i]`` of ``segments[cohort[i]]``.

    Only the segments of a batch are read and made float32, so that a cohort may be larger than
    memory. Stages and cohorts are kept in one byte each: there are millions.
    """

    def __init__(
        self,
        segments: Sequence[Array],
        cohort: Tensor,
        positions: Tensor,
        y: Tensor,
        u: Tensor,
        labelled: Tensor,
    ) -> None:
        super().__init__(positions, y.to(torch.int8), u, labelled)
        self.segments = tuple(segments)
        self.cohort = cohort.to(torch.int8)

    def __getitem__(self, indices: Tensor) -> Batch:
        batch = super().__getitem__(indices)
        return replace(
            batch, x=self._read_segments(self.cohort[indices], batch.x), y=batch.y.long()
        )

    def _read_segments(self, cohort: Tensor, positions: Tensor) -> Tensor:
        """The segments at these places, shape ``(rows, 1, samples)``."""
        values = torch.empty(len(positions), 1, self.segments[0].shape[1])
        for number, store in enumerate(self.segments):
            row_numbers = (cohort == number).nonzero()[:, 0]
            stored_segments = np.asarray(store[positions[row_numbers].numpy()], dtype=np.float32)
            values[row_numbers, 0] = torch.from_numpy(stored_segments)
        return values
