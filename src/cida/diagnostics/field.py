"""What a run can be judged by where the target has no labels: rows, and what runs make of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cida.batch import Rows
from cida.diagnostics.carried import Carried, carry
from cida.scratch import places, room
from cida.space import Space, thinned
from cida.training import isolated

__all__ = ["Candidate", "Field"]

Array = np.ndarray[Any, Any]

MOST_SOURCES = 1000
MOST_TARGETS = 3000


@dataclass(frozen=True)
class Field:
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
    held: Tensor
    row: Tensor

    @classmethod
    def of(cls, space: Space, rows: Rows, held: Tensor | None = None) -> Field:
        """Some source and some target rows, dealt once, and all that are ``held`` out.

        ``rows`` have the labels of the rows held out.
        """
        count = len(rows)
        target = places(lambda part: ~rows.labelled[part], count)
        unseen = room((count,), torch.bool) if held is None else held
        seen = places(lambda part: rows.labelled[part] & ~unseen[part], count)
        parts = [
            seen[thinned(len(seen), MOST_SOURCES)],
            places(lambda part: unseen[part], count),
            target[thinned(len(target), MOST_TARGETS)],
        ]
        which = torch.cat(parts)
        with isolated(0):  # rows may be drawn as they are dealt
            batch = rows[which]
        return cls(space, batch.x, batch.y, batch.u, batch.labelled, unseen[which], which)

    def __len__(self) -> int:
        return len(self.x)

    @property
    def has_classes(self) -> bool:
        """Whether labels are the numbers of classes; else they are numbers to regress on."""
        return not self.y.is_floating_point()

    @property
    def target(self) -> Array:
        """Which rows are target rows."""
        rows: Array = ~self.labelled.numpy()
        return rows

    @cached_property
    def carried(self) -> Carried:
        """The source labels, carried to every row."""
        return carry(self.space, self.x, self.y, self.u, self.labelled)


@dataclass(frozen=True)
class Candidate:
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
    def labels(self) -> Array:
        """The predicted class of each row, or the predicted number."""
        labels: Array = self.outputs.argmax(1) if self.outputs.shape[1] > 1 else self.outputs[:, 0]
        return labels
