"""In which coordinates along the index one predictor holds for the whole source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from cida.coordinates import IndexWindows, MovingFrame, can_use_moving_frame
from cida.data import IndexedDataset
from cida.indexing import evenly_spaced
from cida.kernel_ridge import kernel_ridge, make_label_matrix, standardize_columns
from cida.spaces import Space

__all__ = ["CoordinateMode", "coordinate_candidates", "select_coordinates", "trial_errors"]

Array = np.ndarray[Any, Any]
CoordinateMode = Literal["raw", "windows", "moving-frame", "principal-axes", "learned"]

MAX_COORDINATE_ROWS = 50_000  # that coordinates are fitted to
MAX_TRIAL_ROWS = 1500  # that are tried on: a kernel has as many entries as they have pairs
MIN_TRIAL_ROWS = 60
MAX_STANDARD_ERRORS = 2.0


def select_coordinates(space: Space, dataset: IndexedDataset) -> CoordinateMode:
    """The simplest coordinates whose error is within two standard errors of the least.

    Candidates, simplest first: x as it is, in windows along u, in the frame of its path, and of its
    principal axes. None is fitted to labels. In each a kernel ridge regression learns the first
    third of the source along u and is scored on the last, and the other way round: source labels
    tell in which of them a label keeps its place as u moves.
    """
    errors = trial_errors(space, dataset)
    if not errors:
        return "raw"
    lowest_errors = min(errors.values(), key=lambda each: float(each.mean()))
    for mode, error in errors.items():
        excess = error - lowest_errors
        if float(excess.mean()) <= MAX_STANDARD_ERRORS * float(excess.std()) / np.sqrt(len(excess)):
            return mode
    raise AssertionError("the least error is within any number of standard errors of itself")


def trial_errors(space: Space, dataset: IndexedDataset) -> dict[CoordinateMode, Array]:
    """The errors of both trials, row by row, in each candidate; none where rows are too few."""
    source_rows = dataset.source_rows[evenly_spaced(len(dataset.source_rows), MAX_TRIAL_ROWS)]
    if len(source_rows) < MIN_TRIAL_ROWS:
        return {}
    pooled = dataset[evenly_spaced(len(dataset), MAX_COORDINATE_ROWS)]
    source = dataset[source_rows]
    pooled_x, pooled_index = pooled.x.flatten(1), space.embed(pooled.u)
    source_x, source_index = source.x.flatten(1), space.embed(source.u).float()
    thirds = _outer_thirds(source_index)
    errors: dict[CoordinateMode, Array] = {}
    for mode, fit in coordinate_candidates(space, pooled_x.shape[1], pooled_index.shape[1]).items():
        transformed = (
            source_x if fit is None else fit(pooled_x, pooled_index)(source_x, source_index)
        )
        errors[mode] = _cross_errors(transformed.double().numpy(), source.y, thirds)
    return errors


CoordinateMap = Callable[[Tensor, Tensor], Tensor]


def coordinate_candidates(
    space: Space, n_features: int, index_width: int
) -> dict[CoordinateMode, Callable[[Tensor, Tensor], CoordinateMap] | None]:
    """How to fit each, simplest first, to rows of x and their embedded index; None is x itself."""
    candidates: dict[CoordinateMode, Callable[[Tensor, Tensor], CoordinateMap] | None] = {
        "raw": None,
        "windows": lambda x, index: IndexWindows(n_features, index_width).fit(x, index),
    }
    if can_use_moving_frame(space, n_features):
        candidates["moving-frame"] = lambda x, index: MovingFrame(n_features).fit(x, index)
        candidates["principal-axes"] = lambda x, index: MovingFrame(n_features, "axes").fit(
            x, index
        )
    return candidates


def _outer_thirds(index: Tensor) -> tuple[Array, Array]:
    """The first and the last third of the rows along the direction in which they spread most."""
    centered = (index - index.mean(0)).double()
    _, _, directions = torch.linalg.svd(centered, full_matrices=False)
    order = (centered @ directions[0]).argsort(stable=True).numpy()
    third = len(order) // 3
    return order[:third], order[-third:]


def _cross_errors(x: Array, y: Tensor, thirds: tuple[Array, Array]) -> Array:
    """The squared error of each row of a third for a model that learned the other one."""
    # Classes are one-hot: squared errors show small differences sooner than counts of errors do.
    label_matrix = make_label_matrix(y)
    errors = []
    for train_rows, test_rows in (thirds, thirds[::-1]):
        predicted = kernel_ridge(
            standardize_columns(x[train_rows]),
            label_matrix[train_rows],
            standardize_columns(x[test_rows], x[train_rows]),
            penalty=1.0,
            bandwidth=x.shape[1],
        )
        errors.append(((predicted - label_matrix[test_rows]) ** 2).sum(axis=1))
    return np.concatenate(errors)
