"""Checks on what users pass in: one sentence naming the argument, what was found, what to do."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import torch
from numpy.exceptions import ComplexWarning
from sklearn.utils.validation import column_or_1d
from torch import Tensor

from cida.array_types import Array
from cida.errors import warn_user
from cida.spaces import Space

__all__ = ["MAX_ABS_VALUE", "Array", "Labels", "check_magnitude"]

MAX_ABS_VALUE = 1e150  # its square is still a number


def check_magnitude(name: str, values: Array) -> None:
    """Refuses numbers that cannot be squared."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest > MAX_ABS_VALUE:
        raise ValueError(
            f"{name} has numbers as large as {largest:.3g}, beyond what can be computed with; "
            "give it in other units, or look for values that stand for missing ones."
        )


@dataclass(frozen=True)
class Labels:
    """The labels as an array, and which of them may be read."""

    values: Array
    labelled: Array

    @property
    def source_labels(self) -> Array:
        return self.values[self.labelled]


def check_length(name: str, values: Any, n_rows: int) -> None:
    if len(values) != n_rows:
        raise ValueError(
            f"{name} has {len(values)} rows but X has {n_rows}; give one value for each row of X."
        )


def check_finite(name: str, values: Array) -> None:
    """Refuses NaN and infinity, and says where the first one is."""
    with np.errstate(all="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):  # one pass; an overflow costs a second
            return
    flat = values.reshape(len(values), -1)
    is_bad = ~np.isfinite(flat)
    if is_bad.any():
        row, column = np.argwhere(is_bad)[0]
        raise ValueError(
            f"{name} contains {'NaN' if np.isnan(flat).any() else 'infinity'} in "
            f"{int(is_bad.any(axis=1).sum())} of {len(flat)} rows (first: row {row}, column "
            f"{column}); fill in or drop such values first."
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


def _as_label_array(y: Any) -> Array:
    """As `as_array`, but integers with gaps stay integers."""
    if hasattr(y, "null_count") and hasattr(y, "to_list") and y.null_count():  # a polars series
        return np.array(y.to_list(), dtype=object)
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
    values = _parse_numbers(raw.reshape(n_rows, -1))
    check_finite("domain_index", values)
    check_magnitude("domain_index", values)
    if width is not None and values.shape[1] != width:
        raise ValueError(
            f"domain_index has {values.shape[1]} columns but the model was fitted with {width}; "
            "give the same index columns in the same order."
        )
    return torch.from_numpy(np.ascontiguousarray(values))


def get_index_names(domain_index: Any) -> tuple[str, ...] | None:
    """The column names of an index given as a frame."""
    names = getattr(domain_index, "columns", None)
    return None if names is None else tuple(map(str, names))


def _parse_numbers(raw: Array) -> Array:
    """Numbers as floats, also those of an object array, in which some may be missing."""
    if raw.dtype.kind in "fiub":
        return raw.astype(np.float64)
    if raw.dtype.kind == "O" and not any(isinstance(value, str) for value in raw.flat):
        try:
            numbers = [np.nan if _is_missing(value) else float(value) for value in raw.flat]
            return np.array(numbers).reshape(raw.shape)
        except (TypeError, ValueError):
            pass
    others = (v for v in raw.flat if not (_is_missing(v) or isinstance(v, Real | np.bool_)))
    example = next(others, None)
    raise ValueError(
        f"domain_index holds {type(example).__name__} values such as {str(example)!r}; it must "
        "be numbers: turn dates into days or seconds, and leave names out."
    )


def read_labels(
    y: Any, n_rows: int, source: Any = None, *, has_index: bool = True, hides_minus_one: bool
) -> Labels:
    """Which labels may be read: those inside ``source``, or else those that are not missing.

    With ``hides_minus_one`` and an index an integer -1 means unlabelled, as in scikit-learn.
    """
    values = _as_label_array(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = column_or_1d(values, warn=True)
    if values.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {values.shape} instead.")
    check_length("y", values, n_rows)
    is_object = values.dtype.kind == "O"
    missing = np.array([*map(_is_missing, values)]) if is_object else values != values
    labelled = ~missing if source is None else _read_source_mask(source, n_rows)
    if (missing & labelled).any():
        raise ValueError(
            f"y has {int((missing & labelled).sum())} missing labels inside source; source must "
            "name labelled rows only."
        )
    _check_any_labelled(labelled)
    if not labelled.all() and not has_index:
        reason = "y is missing (NaN or None) in" if source is None else "source leaves out"
        raise ValueError(
            f"{reason} {int((~labelled).sum())} of {n_rows} rows but domain_index is not given; "
            "give it so that they can serve as the target, or drop them."
        )
    known = values[labelled]
    if is_object:
        if len({isinstance(value, str) for value in known}) > 1:
            raise ValueError(
                "y mixes text with numbers (str with int or float); give labels of one type."
            )
        known = np.asarray(known.tolist())
    filled = np.full(n_rows, known[0], dtype=known.dtype)  # unlabelled rows: any, never read
    filled[labelled] = known
    if hides_minus_one and has_index and filled.dtype.kind == "i":
        labelled = labelled & (filled != -1)
        _check_any_labelled(labelled)
    return Labels(filled, labelled)


def _check_any_labelled(labelled: Array) -> None:
    if not labelled.any():
        raise ValueError(
            f"y has no labelled row among its {len(labelled)}; label some rows, the others are the "
            "target."
        )


def check_finite_labels(labels: Array) -> None:
    if labels.dtype.kind == "f" and (n_infinite := int(np.isinf(labels).sum())):
        raise ValueError(
            f"Input y contains infinity in {n_infinite} rows; mark unlabelled rows with NaN and "
            "drop broken ones."
        )


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


def _is_missing(value: Any) -> bool:
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def find_far_index(space: Space, u: Tensor, training_index: Tensor) -> list[tuple[Tensor, Tensor]]:
    """For each column of u which rows are far from all values seen, and the distance of each row.

    Far is more than a tenth of the extent of the values seen.
    """
    results = []
    for number, column in enumerate(space.column_spaces):
        values, seen = u[:, number : number + 1], training_index[:, number : number + 1]
        distance = column.distance_to_set(values, seen)
        extent = 2 * float(column.distance(seen, column.mean(seen)).max())
        results.append((distance > 0.1 * extent, distance))
    return results


def warn_far_index(space: Space, u: Tensor, training_index: Tensor) -> None:
    """Warns where a column of u is farther from all values seen than a tenth of their extent."""
    for number, (far, distance) in enumerate(find_far_index(space, u, training_index)):
        if not bool(far.any()):
            continue
        column, seen = space.column_spaces[number], training_index[:, number]
        name = f"column {number} of domain_index" if space.width > 1 else "domain_index"
        span = "" if column.periods[0] else f" ({float(seen.min()):g} to {float(seen.max()):g})"
        largest = float(distance.max()) * column.raw_units_per_distance
        warn_user(
            f"{name} is far from what was fitted in {int(far.sum())} of {len(u)} rows: up to "
            f"{largest:.3g} away from the nearest index seen in training{span}; nothing was "
            "learned so far away, so do not trust predictions there."
        )
