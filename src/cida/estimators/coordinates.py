"""In which coordinates along the index one predictor holds for the whole source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from torch import Tensor

from cida.batch import Rows
from cida.networks import IndexWindows, MovingFrame, can_frame
from cida.space import Space, thinned

__all__ = ["IndexMode", "choose_coordinates"]

Array = np.ndarray[Any, Any]
IndexMode = bool | Literal["frame", "axes", "windows"]

MOST_ROWS = 50_000  # that coordinates are fitted to
MOST_SOURCES = 1500  # that are tried on: a support vector machine's time grows with their square
FEWEST_SOURCES = 60


def choose_coordinates(space: Space, rows: Rows) -> IndexMode:
    """The simplest coordinates whose error is within one standard error of the least.

    Candidates, simplest first: x as it is, in windows along u, in the frame of its path, and of its
    principal axes. None is fitted to labels. In each a support vector machine learns the first
    third of the source along u and is scored on the last, and the other way round: source labels
    tell in which of them a label keeps its place as u moves.
    """
    errors = trial_errors(space, rows)
    if not errors:
        return False
    least = min(errors.values(), key=lambda each: float(each.mean()))
    for mode, error in errors.items():
        excess = error - least
        if float(excess.mean()) <= float(excess.std()) / np.sqrt(len(excess)):
            return mode
    raise AssertionError("the least error is within its own standard error")


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
    for mode, fit in _candidates(space, everyone.shape[1], index.shape[1]).items():
        seen = own if fit is None else fit(everyone, index)(own, own_index)
        found[mode] = _trial(seen.double().numpy(), mine.y, thirds)
    return found


Coordinates = Callable[[Tensor, Tensor], Tensor]


def _candidates(
    space: Space, features: int, index_width: int
) -> dict[IndexMode, Callable[[Tensor, Tensor], Coordinates] | None]:
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
    """The error of each row of a third for a model that learned the other one."""
    truth = y.numpy().reshape(len(y), -1)[:, 0]
    errors = []
    for known, asked in (thirds, thirds[::-1]):
        if y.is_floating_point():
            model = make_pipeline(StandardScaler(), SVR(C=10.0))
            predicted = model.fit(x[known], truth[known]).predict(x[asked])
            errors.append((predicted - truth[asked]) ** 2)
        elif len(np.unique(truth[known])) < 2:
            errors.append((truth[asked] != truth[known][0]).astype(float))
        else:
            model = make_pipeline(StandardScaler(), SVC(C=10.0))
            predicted = model.fit(x[known], truth[known]).predict(x[asked])
            errors.append((predicted != truth[asked]).astype(float))
    return np.concatenate(errors)
