"""Whether the balance of labels moves along the index: told from source labels alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from cida.space import Space, thinned

__all__ = ["LabelShift", "label_shift"]

Array = np.ndarray[Any, Any]

MOST_ROWS = 20_000
PLACES = 50
SHUFFLES = 50
WORTH_TELLING = 0.05  # of all labels that differ from place to place: less does little harm


@dataclass(frozen=True)
class LabelShift:
    """How far label shares in places along u are from the overall ones, beyond chance.

    ``moves``: the mean over places of ``1/2 sum_c |p_c(place) - p_c|`` for classes, and for numbers
    the share of V[y] between places, both with what shuffled labels give taken off. ``chance`` is
    the most that shuffled labels gave. ``low`` and ``high`` are the least and the largest share of
    the class that moves most (``label``), or mean of y, and ``low_at``, ``high_at`` where.
    """

    moves: float
    chance: float
    label: int | None
    low: float
    high: float
    low_at: tuple[float, ...]
    high_at: tuple[float, ...]

    @property
    def suspected(self) -> bool:
        """Whether an encoder that hides u may hide what tells labels apart."""
        return self.moves > max(WORTH_TELLING, self.chance)


def label_shift(space: Space, u: Tensor, y: Tensor, seed: int = 0) -> LabelShift:
    """Compares labels y (class numbers, or one column of numbers) among neighbours along u.

    Only labelled rows are given: what happens to labels beyond them nobody can see, but where
    their balance moves inside the source it hardly stops at its edge. Each place is the ``n / 20``
    rows around one row, so that a few hundred rows are enough to tell.
    """
    kept = u[:, 0].argsort(stable=True)[thinned(len(u), MOST_ROWS)]
    u, values = u[kept], _columns(y[kept])
    points = space.embed(u).double().numpy()
    here = thinned(len(u), PLACES).numpy()
    _, near = cKDTree(points).query(points[here], range(1, min(len(u), max(20, len(u) // 20)) + 1))
    generator = np.random.default_rng(seed)
    found = _spread(values, near)
    shuffled = [_spread(generator.permutation(values), near) for _ in range(SHUFFLES)]
    middle = float(np.mean(shuffled))
    shares = values[near].mean(1)
    column = int(np.ptp(shares, axis=0).argmax())
    mine = shares[:, column]
    low, high = int(mine.argmin()), int(mine.argmax())
    return LabelShift(
        moves=max(0.0, found - middle),
        chance=max(shuffled) - middle,
        label=None if y.is_floating_point() else column,
        low=float(mine[low]),
        high=float(mine[high]),
        low_at=tuple(u[here[low]].tolist()),
        high_at=tuple(u[here[high]].tolist()),
    )


def _columns(y: Tensor) -> Array:
    """A column of 0 and 1 for each class, or y as it is."""
    if y.is_floating_point():
        return y.double().reshape(len(y), -1)[:, :1].numpy()
    codes: Array = torch.nn.functional.one_hot(y.long()).double().numpy()
    return codes


def _spread(values: Array, near: Array) -> float:
    apart = values[near].mean(1) - values.mean(0)
    if values.shape[1] == 1:
        return float((apart**2).mean() / max(values.var(), 1e-300))
    return float(0.5 * np.abs(apart).sum(1).mean())
