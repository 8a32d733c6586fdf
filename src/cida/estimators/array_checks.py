"""Checks on what users pass in: one sentence naming the argument, what was found, what to do."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import torch
from numpy.exceptions import ComplexWarning
from sklearn.utils.validation import _check_sample_weight, column_or_1d
from torch import Tensor

from cida.data import IndexedDataset
from cida.errors import CidaWarning
from cida.estimators.scaling import check_magnitude
from cida.indexing import evenly_spaced, subsample
from cida.spaces import Space
from cida.training import seeded

__all__ = ["CidaWarning", "Labels"]

Array = np.ndarray[Any, Any]


_NO_LABEL_MESSAGE = (
    "y has no labelled row among its {rows}; label some rows, the others are the target."
)


def caller_stacklevel() -> int:
    """The ``stacklevel`` of the first caller outside this package and scikit-learn."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in ("cida", "sklearn"):
        frame, level = frame.f_back, level + 1
    return level


@dataclass(frozen=True)
class Labels:
    """The labels as an array, and which of them may be read."""

    values: Array
    labelled: Array

    @property
    def source_labels(self) -> Array:
        return self.values[self.labelled]


def check_length(name: str, values: Any, n_rows: int) -> None:
    n_values = len(values)
    if n_values != n_rows:
        raise ValueError(
            f"{name} has {n_values} rows but X has {n_rows}; give one value for each row of X."
        )


def check_finite(name: str, values: Array) -> None:
    """Refuses NaN and infinity, and says where the first one is."""
    with np.errstate(all="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):  # one pass; an overflow costs a second
            return
    flat = values.reshape(len(values), -1)
    is_bad = ~np.isfinite(flat)
    if not is_bad.any():
        return
    row, column = (int(k) for k in np.argwhere(is_bad)[0])
    kind = "NaN" if np.isnan(flat).any() else "infinity"
    raise ValueError(
        f"{name} contains {kind} in {int(is_bad.any(axis=1).sum())} of {len(flat)} rows (first: "
        "row "
        f"{row}, column {column}); fill in or drop such values first."
    )


def as_array(values: Any) -> Array:
    """A numpy array from a list, numpy, pandas, polars or torch object."""
    if isinstance(values, Tensor):
        values = values.float() if values.dtype == torch.bfloat16 else values  # numpy has none
        return np.asarray(values.detach().cpu().numpy())
    if hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy())
    array = np.asarray(values)
    if array.dtype.kind in "US":  # numpy turns NaN, None and numbers beside text into text
        array = np.asarray(values, dtype=object)
    return array


def as_label_array(y: Any) -> Array:
    """As `as_array`, but integers with gaps stay integers."""
    if not isinstance(y, Tensor) and hasattr(y, "to_numpy"):
        if hasattr(y, "null_count") and hasattr(y, "to_list"):  # a polars series
            return np.array(y.to_list(), dtype=object) if y.null_count() else as_array(y)
        if hasattr(getattr(y, "dtype", None), "na_value"):  # a pandas extension type
            return np.asarray(y.to_numpy(dtype=object))
    return as_array(y)


def check_domain_index(domain_index: Any, n_rows: int, width: int | None = None) -> Tensor:
    """u as a float64 tensor of shape ``(rows, width)``."""
    raw = as_array(domain_index)
    if raw.ndim not in (1, 2):
        raise ValueError(
            f"domain_index has {raw.ndim} dimensions; give one number, or one row of numbers, "
            "for each row of X."
        )
    check_length("domain_index", raw, n_rows)
    raw = raw.reshape(n_rows, -1)
    if raw.dtype.kind not in "fiub":
        raw = _parse_numbers(raw)
    values = raw.astype(np.float64)
    check_finite("domain_index", values)
    check_magnitude("domain_index", values)
    if width is not None and values.shape[1] != width:
        raise ValueError(
            f"domain_index has {values.shape[1]} columns but the model was fitted with {width}; "
            "give the same index columns in the same order."
        )
    return torch.from_numpy(np.ascontiguousarray(values))


def check_dataset(dataset: IndexedDataset) -> tuple[int, ...]:
    """The shape of a row as it is dealt; refuses what the players cannot take."""
    if not len(dataset.source_rows):
        raise ValueError(f"rows has no labelled row among its {len(dataset)}; label some.")
    check_finite("rows.u", dataset.u.numpy())
    with seeded(0):  # a look-up may draw, and that must not be felt outside
        first_row = dataset[torch.arange(1)].x
    if first_row.dim() < 2 or first_row.dtype != torch.float32:
        raise ValueError(
            f"rows deals x of shape {tuple(first_row.shape)} and type {first_row.dtype} for one "
            "row; it "
            "must deal float32 numbers, at least one a row."
        )
    return tuple(first_row.shape[1:])


def get_index_names(domain_index: Any) -> tuple[str, ...] | None:
    """The column names of an index given as a frame."""
    names = getattr(domain_index, "columns", None)
    return None if names is None else tuple(str(name) for name in names)


def check_index_names(domain_index: Any, fitted_names: tuple[str, ...] | None) -> None:
    """Refuses a frame whose index columns are others, or in another order, than in fit."""
    names = get_index_names(domain_index)
    if names is not None and fitted_names is not None and names != fitted_names:
        raise ValueError(
            f"domain_index has the columns {', '.join(names)} but the model was fitted with "
            f"{', '.join(fitted_names)}; give the same index columns in the same order."
        )


def _parse_numbers(raw: Array) -> Array:
    """An object array that holds only numbers (or missing ones) as floats."""
    if raw.dtype.kind == "O" and not any(isinstance(value, str) for value in raw.flat):
        try:
            return np.array(
                [np.nan if _is_missing_value(v) else float(v) for v in raw.flat]
            ).reshape(raw.shape)
        except (TypeError, ValueError):
            pass
    numbers = Real, np.bool_
    example = next(
        (v for v in raw.flat if not (_is_missing_value(v) or isinstance(v, numbers))), None
    )
    raise ValueError(
        f"domain_index holds {type(example).__name__} values such as {str(example)!r}; it must "
        "be numbers: turn dates into days or seconds, and leave names out."
    )


def read_labels(y: Any, n_rows: int, *, has_index: bool, source: Any) -> Labels:
    """Which labels may be read: those inside ``source``, or else those that are not missing."""
    values = as_label_array(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = column_or_1d(values, warn=True)
    if values.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {values.shape} instead.")
    check_length("y", values, n_rows)
    missing = _missing_mask(values)
    labelled = ~missing if source is None else _read_source_mask(source, n_rows)
    if (missing & labelled).any():
        raise ValueError(
            f"y has {int((missing & labelled).sum())} missing labels inside source; source must "
            "name labelled rows only."
        )
    if not labelled.any():
        raise ValueError(_NO_LABEL_MESSAGE.format(rows=n_rows))
    if not labelled.all() and not has_index:
        if source is not None:
            raise ValueError(
                f"source leaves out {int((~labelled).sum())} of {n_rows} rows but domain_index is "
                "not given; give it so that they can serve as the target, or drop them."
            )
        raise ValueError(
            f"y is missing (NaN or None) in {int((~labelled).sum())} of {n_rows} rows but "
            "domain_index is not given; give it so that they can serve as the target, or drop them."
        )
    return Labels(_to_plain_dtype(values, labelled), labelled)


def hide_minus_one(labels: Labels) -> Labels:
    """-1 in integer labels means unlabelled, as elsewhere in scikit-learn."""
    if labels.values.dtype.kind != "i":
        return labels
    labelled = labels.labelled & (labels.values != -1)
    if not labelled.any():
        raise ValueError(_NO_LABEL_MESSAGE.format(rows=len(labelled)))
    return Labels(labels.values, labelled)


def warn_minus_one(values: Array) -> None:
    """Warns where -1 stands beside two classes or more: there it may mean unlabelled.

    -1 beside 1 alone is a common coding of two classes.
    """
    classes = np.unique(values).tolist() if values.dtype.kind == "i" else []
    if -1 in classes and len(classes) > 2:
        warnings.warn(
            f"y has -1 in {int((values == -1).sum())} of {len(values)} rows beside "
            f"{len(classes) - 1} other classes, and without domain_index -1 is a class too: if it "
            "marks unlabelled rows, pass domain_index so that they serve as the target, or drop "
            "them; if it is a class, there is nothing to do.",
            CidaWarning,
            stacklevel=caller_stacklevel(),
        )


def check_finite_labels(labels: Array) -> None:
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise ValueError(
            f"Input y contains infinity in {int(np.isinf(labels).sum())} rows; mark unlabelled "
            "rows "
            "with NaN and drop broken ones."
        )


def read_sample_weight(labels: Labels, sample_weight: Any, x: Array) -> Array:
    """The weight of each row in the prediction loss."""
    if sample_weight is None:
        return np.ones(len(x))
    weight: Array = _check_sample_weight(
        sample_weight, x, dtype=np.float64, ensure_non_negative=True
    )
    if not weight[labels.labelled].any():
        raise ValueError(
            "sample_weight is zero on every labelled row; at least one must be positive."
        )
    return weight


def read_score_weight(sample_weight: Any, labelled: Array) -> Array | None:
    """The weights of the labelled rows."""
    if sample_weight is None:
        return None
    weight = as_array(sample_weight)
    check_length("sample_weight", weight, len(labelled))
    return weight[labelled]


def parse_number_labels(labels: Array) -> Array:
    """The labels of a regression as floats."""
    try:
        with warnings.catch_warnings(action="error", category=ComplexWarning):
            return labels.astype(np.float64)
    except (TypeError, ValueError, ComplexWarning):
        raise ValueError(
            f"y holds {str(labels[0])!r}, which is not a number; a regressor needs numbers: use "
            "CIDAClassifier for classes."
        ) from None


def drop_zero_weight(x: Array, labels: Labels, weight: Array) -> tuple[Array, Labels, Array]:
    """The rows that have a weight: a weight of 0 is a row left out."""
    keep = weight > 0
    if keep.all():
        return x, labels, weight
    return x[keep], Labels(labels.values[keep], labels.labelled[keep]), weight[keep]


def merge_duplicate_rows(x: Array, labels: Labels, weight: Array) -> tuple[Array, Labels, Array]:
    """Equal rows once, with their weights added up, in an order that depends on content alone.

    So a weight of 2 is exactly a row given twice.
    """
    values = labels.values
    _, codes = np.unique(values, return_inverse=True)
    table = np.column_stack([x.reshape(len(x), -1), codes])
    _, first, group = np.unique(table, axis=0, return_index=True, return_inverse=True)
    total = np.bincount(group.ravel(), weights=weight)
    return x[first], Labels(values[first], np.ones(len(first), dtype=bool)), total


def sample_index(u: Tensor, max_rows: int = 4096) -> Tensor:
    """The index values seen in training, column by column in order, thinned out evenly."""
    u = subsample(u)
    return torch.from_numpy(np.sort(u.numpy(), axis=0))[evenly_spaced(len(u), max_rows)]


def _to_plain_dtype(values: Array, labelled: Array) -> Array:
    """Known labels in a plain dtype; unlabelled places get any known label, never read."""
    source_labels = values[labelled]
    if values.dtype.kind == "O":
        kinds = {str if isinstance(v, str) else Real for v in source_labels}
        if len(kinds) > 1:
            raise ValueError(
                "y mixes text with numbers (str with int or float); give labels of one type."
            )
        source_labels = np.asarray(source_labels.tolist())
    filled = np.full(len(values), source_labels[0], dtype=source_labels.dtype)
    filled[labelled] = source_labels
    return filled


def _read_source_mask(source: Any, n_rows: int) -> Array:
    mask = as_array(source).copy()  # pandas hands out read-only memory
    if mask.ndim != 1:
        raise ValueError(f"source has {mask.ndim} dimensions; give one boolean for each row of X.")
    check_length("source", mask, n_rows)
    if mask.dtype != np.bool_:
        raise ValueError(
            f"source holds {mask.dtype} values; give booleans, true where the label may be read."
        )
    return mask


def _missing_mask(values: Array) -> Array:
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "O":
        return np.array([_is_missing_value(value) for value in values], dtype=bool)
    return np.zeros(len(values), dtype=bool)


def _is_missing_value(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def find_far_index(space: Space, u: Tensor, training_index: Tensor) -> list[tuple[Tensor, Tensor]]:
    """For each column of u which rows are far from all values seen, and the distance of each row.

    Far is more than a tenth of the extent of the values seen.
    """
    results = []
    for number, column in enumerate(space.column_spaces):
        values, training_values = u[:, number : number + 1], training_index[:, number : number + 1]
        distance = column.distance_to_set(values, training_values)
        extent = 2 * float(column.distance(training_values, column.mean(training_values)).max())
        results.append((distance > 0.1 * extent, distance))
    return results


def warn_far_index(space: Space, u: Tensor, training_index: Tensor) -> None:
    """Warns where a column of u is farther from all values seen than a tenth of their extent."""
    for number, (far, distance) in enumerate(find_far_index(space, u, training_index)):
        if not bool(far.any()):
            continue
        column, training_values = space.column_spaces[number], training_index[:, number]
        name = f"column {number} of domain_index" if space.width > 1 else "domain_index"
        span = (
            ""
            if column.periods[0]
            else f" ({float(training_values.min()):g} to {float(training_values.max()):g})"
        )
        warnings.warn(
            f"{name} is far from what was fitted in {int(far.sum())} of {len(u)} rows: up to "
            f"{float(distance.max()) * column.raw_units_per_distance:.3g} away from the nearest "
            "index seen in "
            f"training{span}; nothing was learned so far away, so do not trust predictions there.",
            CidaWarning,
            stacklevel=caller_stacklevel(),
        )
