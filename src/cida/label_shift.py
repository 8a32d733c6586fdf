"""Whether the balance of labels moves along the index: told from source labels alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from cida.indexing import evenly_spaced
from cida.spaces import Space

__all__ = ["LabelShift", "measure_label_shift"]

Array = np.ndarray[Any, Any]

MAX_LABEL_SHIFT_ROWS = 20_000
N_NEIGHBORHOODS = 50
N_LABEL_PERMUTATIONS = 50
MIN_LABEL_SHIFT = 0.05  # of all labels that differ from place to place: less does little harm


@dataclass(frozen=True)
class LabelShift:
    """How far label shares in places along u are from the overall ones, beyond chance.

    ``moves``: the mean over places of ``1/2 sum_c |p_c(place) - p_c|`` for classes, and for numbers
    the share of V[y] between places, both with what shuffled labels give taken off. ``chance`` is
    the most that shuffled labels gave. ``low`` and ``high`` are the least and the largest share of
    the class that moves most (``label``), or mean of y, and ``low_at``, ``high_at`` where.
    """

    shift: float
    max_permuted_shift: float
    label: int | None
    low: float
    high: float
    low_at: tuple[float, ...]
    high_at: tuple[float, ...]

    @property
    def is_suspected(self) -> bool:
        """Whether an encoder that hides u may hide what tells labels apart."""
        return self.shift > max(MIN_LABEL_SHIFT, self.max_permuted_shift)


def measure_label_shift(space: Space, u: Tensor, y: Tensor, seed: int = 0) -> LabelShift:
    """Compares labels y (class numbers, or one column of numbers) among neighbours along u.

    Only labelled rows are given: what happens to labels beyond them nobody can see, but where
    their balance moves inside the source it hardly stops at its edge. Each place is the ``n / 20``
    rows around one row, so that a few hundred rows are enough to tell.
    """
    kept_rows = u[:, 0].argsort(stable=True)[evenly_spaced(len(u), MAX_LABEL_SHIFT_ROWS)]
    u, values = u[kept_rows], _label_columns(y[kept_rows])
    points = space.embed(u).double().numpy()
    center_rows = evenly_spaced(len(u), N_NEIGHBORHOODS).numpy()
    _, neighbors = cKDTree(points).query(
        points[center_rows], range(1, min(len(u), max(20, len(u) // 20)) + 1)
    )
    generator = np.random.default_rng(seed)
    observed = _shift_between(values, neighbors)
    permuted = [
        _shift_between(generator.permutation(values), neighbors)
        for _ in range(N_LABEL_PERMUTATIONS)
    ]
    permuted_mean = float(np.mean(permuted))
    local_means = values[neighbors].mean(1)
    column = int(np.ptp(local_means, axis=0).argmax())
    column_means = local_means[:, column]
    low, high = int(column_means.argmin()), int(column_means.argmax())
    return LabelShift(
        shift=max(0.0, observed - permuted_mean),
        max_permuted_shift=max(permuted) - permuted_mean,
        label=None if y.is_floating_point() else column,
        low=float(column_means[low]),
        high=float(column_means[high]),
        low_at=tuple(u[center_rows[low]].tolist()),
        high_at=tuple(u[center_rows[high]].tolist()),
    )


def _label_columns(y: Tensor) -> Array:
    """A column of 0 and 1 for each class, or y as it is."""
    if y.is_floating_point():
        return y.double().reshape(len(y), -1)[:, :1].numpy()
    codes: Array = torch.nn.functional.one_hot(y.long()).double().numpy()
    return codes


def _shift_between(values: Array, neighbors: Array) -> float:
    deviations = values[neighbors].mean(1) - values.mean(0)
    if values.shape[1] == 1:
        return float((deviations**2).mean() / max(values.var(), 1e-300))
    return float(0.5 * np.abs(deviations).sum(1).mean())
