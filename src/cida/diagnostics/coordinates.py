"""In which coordinates along the index one predictor holds for the whole source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from cida.batch import Rows
from cida.networks import IndexWindows, MovingFrame, can_frame
from cida.space import Space, thinned

__all__ = ["IndexMode", "choose_coordinates", "coordinate_candidates", "trial_errors"]

Array = np.ndarray[Any, Any]
IndexMode = bool | Literal["frame", "axes", "windows"]

MOST_ROWS = 50_000  # that coordinates are fitted to
MOST_SOURCES = 1500  # that are tried on: a kernel has as many entries as they have pairs
FEWEST_SOURCES = 60
STANDARD_ERRORS = 2.0


def choose_coordinates(space: Space, rows: Rows) -> IndexMode:
    """The simplest coordinates whose error is within two standard errors of the least.

    Candidates, simplest first: x as it is, in windows along u, in the frame of its path, and of its
    principal axes. None is fitted to labels. In each a kernel ridge regression learns the first
    third of the source along u and is scored on the last, and the other way round: source labels
    tell in which of them a label keeps its place as u moves.
    """
    errors = trial_errors(space, rows)
    if not errors:
        return False
    least = min(errors.values(), key=lambda each: float(each.mean()))
    for mode, error in errors.items():
        excess = error - least
        if float(excess.mean()) <= STANDARD_ERRORS * float(excess.std()) / np.sqrt(len(excess)):
            return mode
    raise AssertionError("the least error is within any number of standard errors of itself")


def trial_errors(space: Space, rows: Rows) -> dict[IndexMode, Array]:
    """The errors of both trials, row by row, in each candidate; none where rows are too few."""
    sources = rows.sources[thinned(len(rows.sources), MOST_SOURCES)]
    if len(sources) < FEWEST_SOURCES:
        return {}
    some = rows[thinned(len(rows), MOST_ROWS)]
    mine = rows[sources]
    everyone, index = some.x.flatten(1), space.embed(some.u)
    own, own_index = mine.x.flatten(1), space.embed(mine.u).float()
    thirds = _thirds(own_index)
    found: dict[IndexMode, Array] = {}
    for mode, fit in coordinate_candidates(space, everyone.shape[1], index.shape[1]).items():
        seen = own if fit is None else fit(everyone, index)(own, own_index)
        found[mode] = _trial(seen.double().numpy(), mine.y, thirds)
    return found


Coordinates = Callable[[Tensor, Tensor], Tensor]


def coordinate_candidates(
    space: Space, features: int, index_width: int
) -> dict[IndexMode, Callable[[Tensor, Tensor], Coordinates] | None]:
    """How to fit each, simplest first, to rows of x and their embedded index; None is x itself."""
    found: dict[IndexMode, Callable[[Tensor, Tensor], Coordinates] | None] = {
        False: None,
        "windows": lambda x, index: IndexWindows(features, index_width).fit(x, index),
    }
    if can_frame(space, features):
        found["frame"] = lambda x, index: MovingFrame(features).fit(x, index)
        found["axes"] = lambda x, index: MovingFrame(features, "axes").fit(x, index)
    return found


def _thirds(index: Tensor) -> tuple[Array, Array]:
    """The first and the last third of the rows along the direction in which they spread most."""
    centred = (index - index.mean(0)).double()
    _, _, directions = torch.linalg.svd(centred, full_matrices=False)
    order = (centred @ directions[0]).argsort(stable=True).numpy()
    third = len(order) // 3
    return order[:third], order[-third:]


def _trial(x: Array, y: Tensor, thirds: tuple[Array, Array]) -> Array:
    """The squared error of each row of a third for a model that learned the other one."""
    # Of classes as a column of 0 and 1 each: squared errors tell small differences sooner than
    # counts of misses do.
    truth = y.double() if y.is_floating_point() else nn.functional.one_hot(y).double()
    wanted = truth.reshape(len(y), -1).numpy()
    errors = []
    for known, asked in (thirds, thirds[::-1]):
        middle = wanted[known].mean(axis=0)
        model = make_pipeline(StandardScaler(), KernelRidge(kernel="rbf", gamma=1 / x.shape[1]))
        predicted = model.fit(x[known], wanted[known] - middle).predict(x[asked]) + middle
        errors.append(((predicted - wanted[asked]) ** 2).sum(axis=1))
    return np.concatenate(errors)
