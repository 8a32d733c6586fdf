"""What a run can be judged by where the target has no labels: rows, and what runs make of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cida.data import IndexedDataset
from cida.indexing import evenly_spaced
from cida.selection.label_propagation import PropagatedLabels, propagate_labels
from cida.spaces import Space
from cida.training import seeded

__all__ = ["CandidateOutputs", "ValidationSet"]

Array = np.ndarray[Any, Any]

MAX_VALIDATION_SOURCE_ROWS = 1000
MAX_VALIDATION_TARGET_ROWS = 3000


@dataclass(frozen=True)
class ValidationSet:
    """The rows on which runs are compared, the labels of the target wiped.

    ``held`` are source rows that no run was trained on, if any were held out; ``row`` says which
    row of the table each is. All runs must be compared on the very same x and u: rows may be made
    as they are dealt.
    """

    space: Space
    x: Tensor
    y: Tensor
    u: Tensor
    labelled: Tensor
    held_out: Tensor
    row_indices: Tensor

    @classmethod
    def from_dataset(
        cls, space: Space, dataset: IndexedDataset, held_out: Tensor | None = None
    ) -> ValidationSet:
        """Some source and some target rows, dealt once, and all that are ``held`` out.

        ``rows`` have the labels of the rows held out.
        """
        n_rows = len(dataset)
        target_rows = dataset.target_rows
        is_held_out = torch.zeros(n_rows, dtype=torch.bool) if held_out is None else held_out
        source_rows = (dataset.labelled & ~is_held_out).nonzero()[:, 0]
        parts = [
            source_rows[evenly_spaced(len(source_rows), MAX_VALIDATION_SOURCE_ROWS)],
            is_held_out.nonzero()[:, 0],
            target_rows[evenly_spaced(len(target_rows), MAX_VALIDATION_TARGET_ROWS)],
        ]
        row_indices = torch.cat(parts)
        with seeded(0):  # rows may be drawn as they are dealt
            batch = dataset[row_indices]
        return cls(
            space, batch.x, batch.y, batch.u, batch.labelled, is_held_out[row_indices], row_indices
        )

    def __len__(self) -> int:
        return len(self.x)

    @property
    def has_classes(self) -> bool:
        """Whether labels are the numbers of classes; else they are numbers to regress on."""
        return not self.y.is_floating_point()

    @property
    def is_target(self) -> Array:
        """Which rows are target rows."""
        rows: Array = ~self.labelled.numpy()
        return rows

    @cached_property
    def propagated_labels(self) -> PropagatedLabels:
        """The source labels, carried to every row."""
        return propagate_labels(self.space, self.x, self.y, self.u, self.labelled)


@dataclass(frozen=True)
class CandidateOutputs:
    """What one run makes of a field: probabilities (or one number) and the encoding of each row.

    ``loss`` is its last prediction loss on the source. ``refit`` plays the same game again without
    the labels of the outermost source range, and gives the accuracy (or minus the squared error)
    on that range.
    """

    outputs: Array
    encoding: Array
    loss: float
    refit: Callable[[], float] | None = None

    @property
    def predictions(self) -> Array:
        """The predicted class of each row, or the predicted number."""
        labels: Array = self.outputs.argmax(1) if self.outputs.shape[1] > 1 else self.outputs[:, 0]
        return labels
