"""Fitted networks over many rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from cida.estimators.inputs import Array
from cida.estimators.scaling import Scaling

__all__ = ["outputs"]

# Rows that go through the networks at once. Always this many, the last chunk padded: matrix
# products round differently for different shapes, and the prediction of a row must not depend on
# which other rows it came with.
ROWS = 256


@torch.no_grad()
def outputs(
    network: Callable[[Tensor, Tensor], Tensor], scaling: Scaling, x: Array, u: Tensor
) -> Array:
    """What the network gives for each row; refuses outputs that are not finite."""
    parts = []
    for start in range(0, len(x), ROWS):
        rows = slice(start, start + ROWS)
        parts.append(network(_padded(scaling.apply(x[rows])), _padded(u[rows])))
    output: Array = torch.cat(parts)[: len(x)].numpy()
    if not np.isfinite(output).all():
        raise ValueError(
            f"X gives outputs that are not finite (its largest value is {np.abs(x).max():.3g}); "
            "look for values far beyond those that the model was fitted on."
        )
    return output


def _padded(rows: Tensor) -> Tensor:
    missing = ROWS - len(rows)
    return torch.cat([rows, rows.new_zeros(missing, *rows.shape[1:])]) if missing else rows
