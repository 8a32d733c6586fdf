"""Some rows of many: evenly spaced, so that what is true of all is true of them."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["evenly_spaced", "subsample"]

MAX_EXACT_ROWS = 1_000_000  # up to here means, quantiles and ranges are those of all rows
MAX_SUBSAMPLE_ROWS = 250_000  # beyond, those of so many of them


def evenly_spaced(rows: int, max_rows: int) -> Tensor:
    """At most ``max_rows`` of the numbers 0 .. rows - 1, evenly spaced, both ends included."""
    spread: Tensor = torch.linspace(0, rows - 1, min(rows, max_rows), dtype=torch.float64)
    return spread.round().long()


def subsample(values: Tensor) -> Tensor:
    """All rows up to a million; of more, 250,000 that are evenly spaced."""
    if len(values) <= MAX_EXACT_ROWS:
        return values
    return values[evenly_spaced(len(values), MAX_SUBSAMPLE_ROWS)]
