"""Trials on source labels: in which coordinates and with which capacity a label holds along u.

Only the source is tried on, and only its labels are read. Coordinates themselves are fitted to
the inputs of all rows, and never to a label.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import numpy as np
import torch
from sklearn.linear_model import Ridge
from torch import Tensor

from cida.array_types import Array
from cida.coordinates.moving_frame import MovingFrameLayer, can_use_moving_frame
from cida.coordinates.windows import WindowsLayer
from cida.data import Batch, IndexedDataset, RowLayout
from cida.indexing import evenly_spaced
from cida.kernel_ridge import kernel_ridge, make_label_matrix, standardize_columns
from cida.spaces import Space

__all__ = ["CoordinateMode", "compare_capacities", "compare_coordinates", "coordinate_candidates"]

CoordinateMode = Literal["raw", "windows", "moving-frame", "principal-axes", "learned"]
CoordinateMap = Callable[[Tensor, Tensor], Tensor]
CoordinateFit = Callable[[Tensor, Tensor, Tensor | None], CoordinateMap]
Capacity = Literal["linear", "mlp"]
Choice = TypeVar("Choice", bound=str)

MAX_COORDINATE_ROWS = 50_000  # that coordinates are fitted to
MAX_TRIAL_ROWS = 1500  # that are tried on: a kernel has as many entries as they have pairs
MIN_TRIAL_ROWS = 60
MAX_STANDARD_ERRORS = 2.0
MIN_COLUMN_DRIFT = 0.05  # share of a column's variance that lies in its mean along u
MAX_FRAME_ERROR_RATIO = 0.8  # of the error in windows or raw: a frame mixes columns
RIDGE_PENALTY = 30.0
MIN_ROWS_PER_COLUMN = 50.0  # of labelled rows, for a network where no trial can be made
MAX_ABS_TRIAL_VALUE = 5.0  # standard deviations


@dataclass(frozen=True)
class Comparison(Generic[Choice]):
    """What a trial chose, by which rule, and the figures that it went by."""

    choice: Choice
    rule: str
    evidence: Mapping[str, float]


def is_frame(coordinates: CoordinateMode) -> bool:
    """Whether these coordinates turn columns into each other."""
    return coordinates in ("moving-frame", "principal-axes")


def compare_coordinates(
    space: Space, dataset: IndexedDataset, layout: RowLayout
) -> Comparison[CoordinateMode]:
    """Choose coordinates by a leave-range-out trial on source labels.

    In each candidate a kernel ridge regression learns the first third of the source along u and is
    scored on the last, and the other way round. Windows are taken where their error is lower by
    two standard errors, or not higher by two while columns drift along u. A frame is taken where
    its error is at most 0.8 of that, and lower by two standard errors.
    """
    errors = trial_errors(space, dataset, layout)
    if not errors:
        n_source = float(len(dataset.source_rows))
        return Comparison("raw", "few-source-rows", {"n_source_rows": n_source})
    evidence = {f"error in {mode}": float(error.mean()) for mode, error in errors.items()}
    choice: CoordinateMode
    choice, rule = "raw", "raw-holds"
    if _is_lower(errors["windows"], errors["raw"]):
        choice, rule = "windows", "windows-hold"
    elif errors["raw"].any() and not _is_lower(errors["raw"], errors["windows"]):
        evidence["column drift"] = drift = _column_drift(space, dataset, layout)
        if drift >= MIN_COLUMN_DRIFT:
            choice, rule = "windows", "columns-drift"
    frames = [mode for mode in errors if is_frame(mode)]
    if frames:
        best = min(frames, key=lambda mode: float(errors[mode].mean()))
        ratio = float(errors[best].mean() / errors[choice].mean())
        if ratio <= MAX_FRAME_ERROR_RATIO and _is_lower(errors[best], errors[choice]):
            choice, rule = best, "frame-holds"
    return Comparison(choice, rule, evidence)


def compare_capacities(
    space: Space, dataset: IndexedDataset, layout: RowLayout, coordinates: CoordinateMode
) -> Comparison[Capacity]:
    """Choose between a linear model and a network, on the source third nearest to the target.

    A ridge and a kernel ridge regression learn the other two thirds; the linear one is taken
    unless its share of misses (squared error of a number) is higher by two standard errors. Of
    fewer than 60 labelled rows it is taken below 50 labelled rows a column.
    """
    n_source = len(dataset.source_rows)
    if n_source < MIN_TRIAL_ROWS:
        per_column = n_source / max(1, layout.n_encoded_columns)
        choice: Capacity = "linear" if per_column < MIN_ROWS_PER_COLUMN else "mlp"
        return Comparison(choice, "rows-per-column", {"labelled rows per column": per_column})
    trial = _Trial.of(space, dataset, layout)
    x = trial.source_in(coordinates if coordinates != "learned" else "raw")
    order = trial.rows_by_target_distance()
    rows = (order[len(order) // 3 :], order[: len(order) // 3])
    loss = _misses if trial.source.has_classes else _squares
    linear = loss(*_fit_and_predict(_predict_ridge, x, trial.labels, *rows))
    kernel = loss(*_fit_and_predict(_predict_kernel_ridge, x, trial.labels, *rows))
    evidence = {"linear error": float(linear.mean()), "kernel error": float(kernel.mean())}
    if _is_lower(kernel, linear):
        return Comparison("mlp", "kernel-better", evidence)
    return Comparison("linear", "linear-suffices", evidence)


def trial_errors(
    space: Space, dataset: IndexedDataset, layout: RowLayout
) -> dict[CoordinateMode, Array]:
    """The squared errors of both trials, row by row, in each candidate; none of too few rows."""
    if len(dataset.source_rows) < MIN_TRIAL_ROWS:
        return {}
    trial = _Trial.of(space, dataset, layout)
    thirds = _outer_thirds(trial.source_index)
    errors: dict[CoordinateMode, Array] = {}
    for mode in trial.candidates:
        x = trial.source_in(mode)
        pairs = [
            _fit_and_predict(_predict_kernel_ridge, x, trial.labels, *rows)
            for rows in (thirds, thirds[::-1])
        ]
        errors[mode] = np.concatenate([_squares(*pair) for pair in pairs])
    return errors


def coordinate_candidates(
    space: Space, n_features: int, index_width: int
) -> dict[CoordinateMode, CoordinateFit | None]:
    """How to fit each to rows of x and their embedded index; None is x itself.

    The third argument says which values are present; frames take none that are missing.
    """
    candidates: dict[CoordinateMode, CoordinateFit | None] = {
        "raw": None,
        "windows": lambda x, e, present: WindowsLayer(n_features, index_width).fit(x, e, present),
    }
    if can_use_moving_frame(space, n_features):
        candidates["moving-frame"] = lambda x, e, _: MovingFrameLayer(n_features).fit(x, e)
        candidates["principal-axes"] = lambda x, e, _: MovingFrameLayer(n_features, "axes").fit(
            x, e
        )
    return candidates


@dataclass(frozen=True)
class _Trial:
    """Source rows to try on, and all rows that coordinates are fitted to."""

    space: Space
    layout: RowLayout
    pooled: Batch
    source: Batch
    target_index: Tensor

    @classmethod
    def of(cls, space: Space, dataset: IndexedDataset, layout: RowLayout) -> _Trial:
        source_rows = dataset.source_rows
        chosen = source_rows[evenly_spaced(len(source_rows), MAX_TRIAL_ROWS)]
        pooled = dataset[evenly_spaced(len(dataset), MAX_COORDINATE_ROWS)]
        return cls(space, layout, pooled, dataset[chosen], pooled.u[~pooled.labelled])

    @property
    def labels(self) -> Array:
        """Numbers as a column, classes as a column of 0 and 1 each."""
        return make_label_matrix(self.source.y)

    @property
    def source_index(self) -> Tensor:
        return self.space.embed(self.source.u).float()

    @property
    def candidates(self) -> dict[CoordinateMode, CoordinateFit | None]:
        width, takes_frames = self.space.embedding_width, self.layout.is_numbers_only
        candidates = coordinate_candidates(self.space, self.layout.n_numbers, width)
        return {mode: f for mode, f in candidates.items() if takes_frames or not is_frame(mode)}

    def source_in(self, mode: CoordinateMode) -> Array:
        """The source rows in these coordinates; categories as a column of 0 and 1 each."""
        fit = self.candidates[mode]
        if fit is None or not self.layout.n_numbers:
            return self.layout.design_matrix(self.source.x).double().numpy()
        pooled_x, pooled_missing, _ = self.layout.split(self.pooled.x)
        x, missing, _ = self.layout.split(self.source.x)
        present = None if self.layout.is_numbers_only else ~pooled_missing
        transform = fit(pooled_x, self.space.embed(self.pooled.u), present)
        x = transform(x, self.source_index).masked_fill(missing, 0.0)
        return self.layout.design_matrix(self.source.x, numbers=x).double().numpy()

    def rows_by_target_distance(self) -> Array:
        """Positions of the source rows, those nearest to the target first."""
        target = self.target_index[evenly_spaced(len(self.target_index), MAX_TRIAL_ROWS)]
        order = self.space.distance_to_set(self.source.u, target).argsort(stable=True)
        return np.asarray(order.numpy())


def _column_drift(space: Space, dataset: IndexedDataset, layout: RowLayout) -> float:
    """The largest share of a column's variance that lies in its mean along u, beyond chance."""
    if not layout.n_numbers:
        return 0.0
    pooled = dataset[evenly_spaced(len(dataset), MAX_COORDINATE_ROWS)]
    x, missing, _ = layout.split(pooled.x)
    index, present = space.embed(pooled.u), ~missing
    windows = WindowsLayer(layout.n_numbers, index.shape[1]).fit(x, index, present)
    mean_along_u = windows.means_at(index.float()).double()
    count = present.sum(0).clamp(min=2)
    overall = x.double().masked_fill(missing, 0).sum(0) / count
    between = ((mean_along_u - overall).square() * present).sum(0) / count
    total = ((x.double() - overall).square() * present).sum(0) / count
    share = between / total.clamp(min=1e-12) - 1 / windows.window_rows(len(x))
    return float(share.masked_fill(total <= 1e-12, 0.0).max())


def _outer_thirds(index: Tensor) -> tuple[Array, Array]:
    """The first and the last third of the rows along the direction in which they spread most."""
    centered = (index - index.mean(0)).double()
    _, _, directions = torch.linalg.svd(centered, full_matrices=False)
    order = (centered @ directions[0]).argsort(stable=True).numpy()
    third = len(order) // 3
    return order[:third], order[-third:]


def _fit_and_predict(
    predict: Callable[[Array, Array, Array], Array],
    x: Array,
    labels: Array,
    train_rows: Array,
    test_rows: Array,
) -> tuple[Array, Array]:
    """What a model that learned some rows predicts of others, and what is true of these."""
    train, test = (
        standardize_columns(x[rows], x[train_rows]).clip(-MAX_ABS_TRIAL_VALUE, MAX_ABS_TRIAL_VALUE)
        for rows in (train_rows, test_rows)
    )
    return predict(train, labels[train_rows], test), labels[test_rows]


def _predict_kernel_ridge(train: Array, labels: Array, test: Array) -> Array:
    return kernel_ridge(train, labels, test, penalty=1.0, bandwidth=max(1, train.shape[1]))


def _predict_ridge(train: Array, labels: Array, test: Array) -> Array:
    predicted = Ridge(RIDGE_PENALTY).fit(train, labels).predict(test)
    return np.asarray(predicted.reshape(len(test), -1))


def _squares(predicted: Array, truth: Array) -> Array:
    # Squared errors of classes tell small differences sooner than counts of misses do.
    return np.asarray(((predicted - truth) ** 2).sum(axis=1))


def _misses(predicted: Array, truth: Array) -> Array:
    return np.asarray(predicted.argmax(axis=1) != truth.argmax(axis=1), dtype=np.float64)


def _is_lower(errors: Array, others: Array) -> bool:
    """Whether the errors are lower than the others by more than two standard errors."""
    excess = others - errors
    return bool(excess.mean() > MAX_STANDARD_ERRORS * excess.std() / np.sqrt(len(excess)))
