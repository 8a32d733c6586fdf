"""The rows that the players get: a `Batch`, and the `IndexedDataset` that batches come from."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

__all__ = ["Batch", "IndexedDataset"]


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
        moved = {n: getattr(self, n).to(device) for n in ("x", "y", "u", "labelled", "weight")}
        return replace(self, **moved)

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
        self,
        x: Tensor,
        y: Tensor,
        u: Tensor,
        labelled: Tensor,
        weight: Tensor | None = None,
    ) -> None:
        lengths = {len(x), len(y), len(u), len(labelled)}
        if len(lengths) != 1:
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
        return Batch(
            x=self.x.index_select(0, indices),
            y=self.y.index_select(0, indices),
            u=self.u.index_select(0, indices),
            labelled=self.labelled.index_select(0, indices),
            weight=self.weight.index_select(0, indices),
            row_ids=indices,
        )


def _zero_unlabelled(y: Tensor, labelled: Tensor) -> Tensor:
    """The labels, 0 where none may be read."""
    is_labelled = labelled.view(-1, *[1] * (y.dim() - 1))
    return torch.where(is_labelled, y, torch.zeros_like(y))
