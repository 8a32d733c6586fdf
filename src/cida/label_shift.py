"""Whether the distribution of labels changes along the index, by source labels alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree
from torch import Tensor

from cida.array_types import Array
from cida.data import IndexedDataset
from cida.indexing import evenly_spaced, subsample
from cida.kernel_ridge import make_label_matrix
from cida.spaces import Space

__all__ = ["LabelShift", "measure_label_shift", "measure_source_label_shift"]


MAX_LABEL_SHIFT_ROWS = 20_000
N_NEIGHBORHOODS = 50
N_LABEL_PERMUTATIONS = 50
MIN_LABEL_SHIFT = 0.05  # of all labels: a smaller shift does little harm
MIN_SOURCE_ROWS = 200  # with fewer, a shift cannot be told from chance


@dataclass(frozen=True)
class LabelShift:
    """How far label shares in places along u are from the overall ones, beyond chance.

    ``shift`` is the mean over places of ``1/2 sum_c |p_c(place) - p_c|`` for classes, and for
    numbers the share of V[y] between places, both minus what permuted labels give on average.
    ``max_permuted_shift`` is the largest that permuted labels gave. ``low`` and ``high`` are the
    smallest and the largest share of the class that changes most (``label``), or mean of y, and
    ``low_at`` and ``high_at`` the index where they occur.
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
        """Whether an encoder that hides u may also hide what tells labels apart."""
        return self.shift > max(MIN_LABEL_SHIFT, self.max_permuted_shift)

    def summary(self) -> str:
        """How the labels change along u, as part of a sentence."""
        if self.label is None:
            return f"{self.shift:.0%} of y's variance in the source lies between places along u"
        return f"the share of one class in the source goes from {self.low:.0%} to {self.high:.0%}"


def measure_source_label_shift(space: Space, dataset: IndexedDataset) -> LabelShift | None:
    """Measure the shift of a data set's source labels; None without a target or 200 source rows."""
    rows = dataset.source_rows
    if len(rows) < MIN_SOURCE_ROWS or len(rows) == len(dataset):
        return None
    sample = subsample(rows)
    return measure_label_shift(space, dataset.u[sample], dataset.y[sample])


def measure_label_shift(space: Space, u: Tensor, y: Tensor, seed: int = 0) -> LabelShift:
    """Compare labels y (class codes, or one column of numbers) between places along u.

    Only labelled rows are given. What happens to labels beyond them is unknown, but a shift inside
    the source will hardly stop at its edge. Each place is the ``n / 20`` rows around one row, so
    that a few hundred rows are enough.
    """
    kept_rows = u[:, 0].argsort(stable=True)[evenly_spaced(len(u), MAX_LABEL_SHIFT_ROWS)]
    u, values = u[kept_rows], make_label_matrix(y[kept_rows])
    if y.is_floating_point():
        values = values[:, :1]
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


def _shift_between(values: Array, neighbors: Array) -> float:
    deviations = values[neighbors].mean(1) - values.mean(0)
    if values.shape[1] == 1:
        return float((deviations**2).mean() / max(values.var(), 1e-300))
    return float(0.5 * np.abs(deviations).sum(1).mean())
