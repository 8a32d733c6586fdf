"""The rows that the players get: a `Batch`, and the `IndexedDataset` that batches come from."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor

from cida.array_types import Array
from cida.io.arrays import advise_random_access

__all__ = ["Batch", "IndexedDataset", "MappedDataset", "RowLayout"]

_ROW_FIELDS = ("x", "y", "u", "labelled", "weight")


@dataclass(frozen=True)
class Batch:
    """Some rows: inputs, labels, raw index, and which labels may be read.

    Parameters
    ----------
    x : Tensor
        Inputs.
    y : Tensor
        Labels; meaningful only where ``labelled`` is true, and zero elsewhere.
    u : Tensor of shape (rows, width)
        Raw index values.
    labelled : Tensor of bool
        True for source rows.
    weight : Tensor of float
        Weight of each row in the prediction loss. The discriminator's loss has no weights: it sees
        the index distribution as the sampler draws it.
    row_ids : Tensor of int
        Number of each row in the data set.
    global_rows : int, optional
        Number of rows of the whole batch where several processes share it.
    """

    x: Tensor
    y: Tensor
    u: Tensor
    labelled: Tensor
    weight: Tensor
    row_ids: Tensor
    global_rows: int | None = None

    def __len__(self) -> int:
        return len(self.x)

    def to(self, device: torch.device) -> Batch:
        """Return the same rows on a device; ``row_ids`` stay on the CPU."""
        if self.x.device == device:
            return self
        return replace(self, **{name: getattr(self, name).to(device) for name in _ROW_FIELDS})

    @property
    def has_classes(self) -> bool:
        """Whether labels are class numbers; otherwise they are numbers to regress on."""
        return not self.y.is_floating_point()


class IndexedDataset:
    """All rows of a data set; ``dataset[indices]`` looks up a `Batch` without a loop over rows.

    ``x`` may be a tensor over a memory map (``torch.from_numpy(np.memmap(...))``): only the rows of
    a batch are read. Labels of unlabelled rows are set to zero at once, so that nothing can read
    them.

    Parameters
    ----------
    x : Tensor of shape (rows, ...)
        Inputs.
    y : Tensor of shape (rows,) or (rows, outputs)
        Labels; class numbers as integers, or numbers as floats.
    u : Tensor of shape (rows,) or (rows, width)
        Raw index values.
    labelled : Tensor of bool
        True for source rows.
    weight : Tensor of float, optional
        Weight of each row in the prediction loss; 1 by default.

    Raises
    ------
    ValueError
        If the numbers of rows differ.
    """

    def __init__(
        self, x: Tensor, y: Tensor, u: Tensor, labelled: Tensor, weight: Tensor | None = None
    ) -> None:
        if len({len(x), len(y), len(u), len(labelled)}) != 1:
            raise ValueError(
                f"x, y, u and labelled have {len(x)}, {len(y)}, {len(u)} and {len(labelled)} rows; "
                "they must have the same number."
            )
        if weight is not None and len(weight) != len(x):
            raise ValueError(f"weight has {len(weight)} rows and x {len(x)}; they must agree.")
        self.x = x
        self.y = _zero_unlabelled(y, labelled)
        self.u = u if u.dim() == 2 else u[:, None]
        self.labelled = labelled
        self.weight = torch.ones(1).expand(len(x)) if weight is None else weight
        self.source_rows = labelled.nonzero()[:, 0]

    def __len__(self) -> int:
        return len(self.x)

    @property
    def target_rows(self) -> Tensor:
        """The rows without a label."""
        return (~self.labelled).nonzero()[:, 0]

    @property
    def source_labels(self) -> Tensor:
        """The labels of the source rows."""
        return self.y[self.source_rows]

    @property
    def source_index(self) -> Tensor:
        """The index of the source rows."""
        return self.u[self.source_rows]

    def with_weights(self, weight: Tensor) -> Self:
        """Return the same rows with other weights in the prediction loss."""
        dataset = copy.copy(self)
        dataset.weight = weight
        return dataset

    def with_hidden_labels(self, hidden: Tensor) -> Self:
        """Return the same rows without the labels of those for which ``hidden`` is true."""
        dataset = copy.copy(self)
        labelled = self.labelled & ~hidden
        dataset.labelled, dataset.y = labelled, _zero_unlabelled(self.y, labelled)
        dataset.source_rows = labelled.nonzero()[:, 0]
        return dataset

    def __getitem__(self, indices: Tensor) -> Batch:
        rows = {name: getattr(self, name).index_select(0, indices) for name in _ROW_FIELDS}
        return Batch(**rows, row_ids=indices)


def _zero_unlabelled(y: Tensor, labelled: Tensor) -> Tensor:
    """The labels, 0 where none may be read."""
    is_labelled = labelled.view(-1, *[1] * (y.dim() - 1))
    return torch.where(is_labelled, y, torch.zeros_like(y))


@dataclass(frozen=True)
class RowLayout:
    """What a row of x consists of, and whether it has an index.

    A row of columns is the numbers, then an indicator (1 where missing) for each number in
    ``missing_indicators``, then the codes of the categories.

    Parameters
    ----------
    kind : {"columns", "image", "signal", "own"}
        What a row is; "own" is for an encoder of the user's own.
    shape : tuple of int
        Shape of a row, as the encoder takes it.
    missing_indicators : tuple of int, default ()
        Which numbers have an indicator of missing values.
    category_sizes : tuple of int, default ()
        Number of values of each category column.
    has_index : bool, default True
        Whether there is a domain index.
    """

    kind: Literal["columns", "image", "signal", "own"]
    shape: tuple[int, ...]
    missing_indicators: tuple[int, ...] = ()
    category_sizes: tuple[int, ...] = ()
    has_index: bool = True

    @property
    def n_numbers(self) -> int:
        """How many columns are numbers."""
        return math.prod(self.shape) - len(self.missing_indicators) - len(self.category_sizes)

    @property
    def n_encoded_columns(self) -> int:
        """How many columns the design matrix has."""
        return self.n_numbers + len(self.missing_indicators) + sum(self.category_sizes)

    @property
    def is_numbers_only(self) -> bool:
        """Whether there are neither missing values nor categories."""
        return not self.missing_indicators and not self.category_sizes

    def split(self, x: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        """The numbers, which of them are missing, and the codes of each category."""
        widths = [self.n_numbers, len(self.missing_indicators), len(self.category_sizes)]
        numbers, indicators, codes = torch.split(x.flatten(1), widths, dim=1)
        missing = torch.zeros_like(numbers, dtype=torch.bool)
        missing[:, list(self.missing_indicators)] = indicators > 0.5
        return numbers, missing, list(codes.long().unbind(1))

    def design_matrix(self, x: Tensor, numbers: Tensor | None = None) -> Tensor:
        """Columns for a linear model: categories as a column of 0 and 1 for each value.

        ``numbers`` takes the place of those in x.
        """
        own_numbers, missing, codes = self.split(x)
        numbers = own_numbers if numbers is None else numbers
        indicators = missing[:, list(self.missing_indicators)]
        one_hot = [
            torch.nn.functional.one_hot(code, size)
            for code, size in zip(codes, self.category_sizes, strict=True)
        ]
        return torch.cat([numbers, *(part.to(numbers) for part in (indicators, *one_hot))], dim=1)


class MappedDataset(IndexedDataset):
    """Row i is row i of a mapped array: only the rows of a batch are read.

    Parameters
    ----------
    array : ndarray
        Inputs of all rows, usually a memory map.
    y : Tensor of shape (rows,) or (rows, outputs)
        Labels.
    u : Tensor of shape (rows,) or (rows, width)
        Raw index values.
    labelled : Tensor of bool
        True for source rows.
    weight : Tensor of float, optional
        Weight of each row in the prediction loss; 1 by default.
    """

    def __init__(
        self, array: Array, y: Tensor, u: Tensor, labelled: Tensor, weight: Tensor | None = None
    ) -> None:
        super().__init__(torch.arange(len(array)), y, u, labelled, weight)
        self.array = np.asarray(advise_random_access(array))

    def __getitem__(self, indices: Tensor) -> Batch:
        batch = super().__getitem__(indices)
        return replace(batch, x=torch.from_numpy(self.array[batch.x.numpy()]))
