"""Segments of breathing as `Rows`, read from memory maps as they are dealt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cida.batch import Batch, Rows

__all__ = ["NightRows"]

Array = np.ndarray[Any, Any]


class NightRows(Rows):
    """Rows of one or several stores: row i is segment ``place[i]`` of ``segments[cohort[i]]``.

    Only the segments of a batch are read and made float32, so that a cohort may be larger than
    memory. Stages and cohorts are kept in one byte each: there are millions.
    """

    def __init__(
        self,
        segments: Sequence[Array],
        cohort: Tensor,
        place: Tensor,
        y: Tensor,
        u: Tensor,
        labelled: Tensor,
    ) -> None:
        super().__init__(place, y.to(torch.int8), u, labelled)
        self.segments = tuple(segments)
        self.cohort = cohort.to(torch.int8)

    def __getitem__(self, indices: Tensor) -> Batch:
        batch = super().__getitem__(indices)
        return replace(batch, x=self._read(self.cohort[indices], batch.x), y=batch.y.long())

    def _read(self, cohort: Tensor, place: Tensor) -> Tensor:
        """The segments at these places, shape ``(rows, 1, samples)``."""
        read = torch.empty(len(place), 1, self.segments[0].shape[1])
        for number, store in enumerate(self.segments):
            mine = (cohort == number).nonzero()[:, 0]
            found = np.asarray(store[place[mine].numpy()], dtype=np.float32)
            read[mine, 0] = torch.from_numpy(found)
        return read
