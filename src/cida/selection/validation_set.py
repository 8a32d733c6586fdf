"""What runs are compared on where the target has no labels: rows, and the runs' outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from cida.array_types import Array
from cida.data import IndexedDataset
from cida.indexing import evenly_spaced
from cida.selection.label_propagation import PropagatedLabels, propagate_labels
from cida.spaces import Space
from cida.training import seeded

__all__ = ["CandidateOutputs", "ValidationSet"]

MAX_VALIDATION_SOURCE_ROWS = 1000
MAX_VALIDATION_TARGET_ROWS = 3000


@dataclass(frozen=True)
class ValidationSet:
    """The rows on which runs are compared, without target labels.

    All runs must be compared on exactly the same x and u, since some data sets make rows at
    look-up.

    Parameters
    ----------
    space : Space
        The fitted space of the index.
    x : Tensor
        Inputs.
    y : Tensor
        Labels; zero for target rows.
    u : Tensor of shape (rows, width)
        Raw index values.
    labelled : Tensor of bool
        True for source rows.
    held_out : Tensor of bool
        True for source rows that no run was trained on.
    row_indices : Tensor of int
        Number of each row in the data set.
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
        """Take a subset of source and target rows, and all rows that are held out.

        The data set must contain the labels of the rows that are held out.
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
        """Whether labels are class numbers; otherwise they are numbers to regress on."""
        return not self.y.is_floating_point()

    @property
    def is_target(self) -> Array:
        """True for target rows."""
        rows: Array = ~self.labelled.numpy()
        return rows

    @cached_property
    def propagated_labels(self) -> PropagatedLabels:
        """The source labels, propagated to every row."""
        return propagate_labels(self.space, self.x, self.y, self.u, self.labelled)


@dataclass(frozen=True)
class CandidateOutputs:
    """The outputs of one run for the rows of a validation set.

    Parameters
    ----------
    outputs : ndarray of shape (rows, outputs)
        Probabilities, or one predicted number.
    encoding : ndarray of shape (rows, encoding_width)
        Encodings.
    loss : float
        The run's last prediction loss on the source.
    refit : callable, optional
        Trains the same game again without the labels of the source range nearest to the target, and
        returns the accuracy (or minus the squared error) on that range.
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
