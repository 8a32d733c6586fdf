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

from cida.batch import Rows
from cida.estimators.scaling import LARGEST, check_size
from cida.scratch import few
from cida.space import Space, thinned
from cida.training import isolated
from cida.words import CidaWarning

__all__ = ["CidaWarning", "Labels"]

Array = np.ndarray[Any, Any]


_NO_LABEL = "y has no labelled row among its {rows}; label some rows, the others are the target."


def outside() -> int:
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
    def known(self) -> Array:
        return self.values[self.labelled]


def check_length(name: str, values: Any, rows: int) -> None:
    found = len(values)
    if found != rows:
        raise ValueError(
            f"{name} has {found} rows but X has {rows}; give one value for each row of X."
        )


def check_finite(name: str, values: Array) -> None:
    """Refuses NaN and infinity, and says where the first one is."""
    with np.errstate(all="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):  # one pass; an overflow costs a second
            return
    flat = values.reshape(len(values), -1)
    bad = ~np.isfinite(flat)
    if not bad.any():
        return
    row, column = (int(k) for k in np.argwhere(bad)[0])
    kind = "NaN" if np.isnan(flat).any() else "infinity"
    raise ValueError(
        f"{name} contains {kind} in {int(bad.any(axis=1).sum())} of {len(flat)} rows (first: row "
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


def label_array(y: Any) -> Array:
    """As `as_array`, but integers with gaps stay integers."""
    if not isinstance(y, Tensor) and hasattr(y, "to_numpy"):
        if hasattr(y, "null_count") and hasattr(y, "to_list"):  # a polars series
            return np.array(y.to_list(), dtype=object) if y.null_count() else as_array(y)
        if hasattr(getattr(y, "dtype", None), "na_value"):  # a pandas extension type
            return np.asarray(y.to_numpy(dtype=object))
    return as_array(y)


def check_index(domain_index: Any, rows: int, width: int | None = None) -> Tensor:
    """u as a float64 tensor of shape ``(rows, width)``."""
    raw = as_array(domain_index)
    if raw.ndim not in (1, 2):
        raise ValueError(
            f"domain_index has {raw.ndim} dimensions; give one number, or one row of numbers, "
            "for each row of X."
        )
    check_length("domain_index", raw, rows)
    raw = raw.reshape(rows, -1)
    if raw.dtype.kind not in "fiub":
        raw = _numbers(raw)
    values = raw.astype(np.float64)
    check_finite("domain_index", values)
    check_size("domain_index", values)
    if width is not None and values.shape[1] != width:
        raise ValueError(
            f"domain_index has {values.shape[1]} columns but the model was fitted with {width}; "
            "give the same index columns in the same order."
        )
    return torch.from_numpy(np.ascontiguousarray(values))


def check_rows(rows: Rows) -> tuple[int, ...]:
    """The shape of a row as it is dealt; refuses what the players cannot take."""
    if not len(rows.sources):
        raise ValueError(f"rows has no labelled row among its {len(rows)}; label some.")
    check_finite("rows.u", rows.u.numpy())
    with isolated(0):  # a look-up may draw, and that must not be felt outside
        first = rows[torch.arange(1)].x
    if first.dim() < 2 or first.dtype != torch.float32:
        raise ValueError(
            f"rows deals x of shape {tuple(first.shape)} and type {first.dtype} for one row; it "
            "must deal float32 numbers, at least one a row."
        )
    return tuple(first.shape[1:])


def index_names(domain_index: Any) -> list[str] | None:
    """The column names of an index given as a frame."""
    names = getattr(domain_index, "columns", None)
    return None if names is None else [str(name) for name in names]


def check_index_names(domain_index: Any, fitted: list[str] | None) -> None:
    """Refuses a frame whose index columns are others, or in another order, than in fit."""
    found = index_names(domain_index)
    if found is not None and fitted is not None and found != fitted:
        raise ValueError(
            f"domain_index has the columns {', '.join(found)} but the model was fitted with "
            f"{', '.join(fitted)}; give the same index columns in the same order."
        )


def _numbers(raw: Array) -> Array:
    """An object array that holds only numbers (or missing ones) as floats."""
    if raw.dtype.kind == "O" and not any(isinstance(value, str) for value in raw.flat):
        try:
            return np.array([np.nan if _missing(v) else float(v) for v in raw.flat]).reshape(
                raw.shape
            )
        except (TypeError, ValueError):
            pass
    numbers = Real, np.bool_
    example = next((v for v in raw.flat if not (_missing(v) or isinstance(v, numbers))), None)
    raise ValueError(
        f"domain_index holds {type(example).__name__} values such as {str(example)!r}; it must "
        "be numbers: turn dates into days or seconds, and leave names out."
    )


def fit_space(space: Space, u: Tensor) -> Space:
    """The space scaled to u; refuses a column that never changes or a width that does not fit."""
    if not isinstance(space, Space):
        raise TypeError(
            f"space is {space!r}; give an instance such as cida.Line(), cida.Periodic(24) or "
            "cida.Product([cida.Line(), cida.Periodic(24)])."
        )
    if space.width != u.shape[1]:
        raise ValueError(
            f"domain_index has {u.shape[1]} columns but space={space!r} is for {space.width}; "
            "give one Line or Periodic for each column, in a Product."
        )
    u = few(u)
    for number, column in enumerate(space.columns):
        mine = u[:, number : number + 1]
        spread = float(column.distance(mine, mine[:1]).max())
        if 0 < spread < 1 / LARGEST:
            raise ValueError(f"domain_index spans {spread:.3g} in all; give it in other units.")
        if spread <= (1e-9 if column.turns[0] else 0.0):  # whole turns round a little
            where = f" in column {number}" if space.width > 1 else ""
            raise ValueError(
                f"domain_index is constant{where} (every row has {float(mine[0]):g}); "
                "without different index values there is nothing to adapt to: leave it out."
            )
    return space.fit(u)


def read_labels(y: Any, rows: int, *, indexed: bool, source: Any) -> Labels:
    """Which labels may be read: those inside ``source``, or else those that are not missing."""
    values = label_array(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = column_or_1d(values, warn=True)
    if values.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {values.shape} instead.")
    check_length("y", values, rows)
    missing = _is_missing(values)
    labelled = ~missing if source is None else _mask(source, rows)
    if (missing & labelled).any():
        raise ValueError(
            f"y has {int((missing & labelled).sum())} missing labels inside source; source must "
            "name labelled rows only."
        )
    if not labelled.any():
        raise ValueError(_NO_LABEL.format(rows=rows))
    if not labelled.all() and not indexed:
        if source is not None:
            raise ValueError(
                f"source leaves out {int((~labelled).sum())} of {rows} rows but domain_index is "
                "not given; give it so that they can serve as the target, or drop them."
            )
        raise ValueError(
            f"y is missing (NaN or None) in {int((~labelled).sum())} of {rows} rows but "
            "domain_index is not given; give it so that they can serve as the target, or drop them."
        )
    return Labels(_natural(values, labelled), labelled)


def without_minus_one(labels: Labels) -> Labels:
    """-1 in integer labels means unlabelled, as elsewhere in scikit-learn."""
    if labels.values.dtype.kind != "i":
        return labels
    labelled = labels.labelled & (labels.values != -1)
    if not labelled.any():
        raise ValueError(_NO_LABEL.format(rows=len(labelled)))
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
            stacklevel=outside(),
        )


def check_finite_labels(known: Array) -> None:
    if known.dtype.kind == "f" and np.isinf(known).any():
        raise ValueError(
            f"Input y contains infinity in {int(np.isinf(known).sum())} rows; mark unlabelled rows "
            "with NaN and drop broken ones."
        )


def read_weight(labels: Labels, sample_weight: Any, x: Array) -> Array:
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


def score_weight(sample_weight: Any, labelled: Array) -> Array | None:
    """The weights of the labelled rows."""
    if sample_weight is None:
        return None
    weight = as_array(sample_weight)
    check_length("sample_weight", weight, len(labelled))
    return weight[labelled]


def as_numbers(known: Array) -> Array:
    """The labels of a regression as floats."""
    try:
        with warnings.catch_warnings(action="error", category=ComplexWarning):
            return known.astype(np.float64)
    except (TypeError, ValueError, ComplexWarning):
        raise ValueError(
            f"y holds {str(known[0])!r}, which is not a number; a regressor needs numbers: use "
            "CIDAClassifier for classes."
        ) from None


def weighted_rows(x: Array, labels: Labels, weight: Array) -> tuple[Array, Labels, Array]:
    """The rows that have a weight: a weight of 0 is a row left out."""
    kept = weight > 0
    if kept.all():
        return x, labels, weight
    return x[kept], Labels(labels.values[kept], labels.labelled[kept]), weight[kept]


def merge_repeats(x: Array, labels: Labels, weight: Array) -> tuple[Array, Labels, Array]:
    """Equal rows once, with their weights added up, in an order that depends on content alone.

    So a weight of 2 is exactly a row given twice.
    """
    values = labels.values
    _, codes = np.unique(values, return_inverse=True)
    table = np.column_stack([x.reshape(len(x), -1), codes])
    _, first, group = np.unique(table, axis=0, return_index=True, return_inverse=True)
    total = np.bincount(group.ravel(), weights=weight)
    return x[first], Labels(values[first], np.ones(len(first), dtype=bool)), total


def seen_index(u: Tensor, most: int = 4096) -> Tensor:
    """The index values seen in training, column by column in order, thinned out evenly."""
    u = few(u)
    return torch.from_numpy(np.sort(u.numpy(), axis=0))[thinned(len(u), most)]


def _natural(values: Array, labelled: Array) -> Array:
    """Known labels in a plain dtype; unlabelled places get any known label, never read."""
    known = values[labelled]
    if values.dtype.kind == "O":
        kinds = {str if isinstance(v, str) else Real for v in known}
        if len(kinds) > 1:
            raise ValueError(
                "y mixes text with numbers (str with int or float); give labels of one type."
            )
        known = np.asarray(known.tolist())
    filled = np.full(len(values), known[0], dtype=known.dtype)
    filled[labelled] = known
    return filled


def _mask(source: Any, rows: int) -> Array:
    mask = as_array(source).copy()  # pandas hands out read-only memory
    if mask.ndim != 1:
        raise ValueError(f"source has {mask.ndim} dimensions; give one boolean for each row of X.")
    check_length("source", mask, rows)
    if mask.dtype != np.bool_:
        raise ValueError(
            f"source holds {mask.dtype} values; give booleans, true where the label may be read."
        )
    return mask


def _is_missing(values: Array) -> Array:
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "O":
        return np.array([_missing(value) for value in values], dtype=bool)
    return np.zeros(len(values), dtype=bool)


def _missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def far_index(space: Space, u: Tensor, seen: Tensor) -> list[tuple[Tensor, Tensor]]:
    """For each column of u which rows are far from all values seen, and the distance of each row.

    Far is more than a tenth of the extent of the values seen.
    """
    found = []
    for number, column in enumerate(space.columns):
        mine, known = u[:, number : number + 1], seen[:, number : number + 1]
        distance = column.distance_to_set(mine, known)
        extent = 2 * float(column.distance(known, column.mean(known)).max())
        found.append((distance > 0.1 * extent, distance))
    return found


def warn_far_index(space: Space, u: Tensor, seen: Tensor) -> None:
    """Warns where a column of u is farther from all values seen than a tenth of their extent."""
    for number, (far, distance) in enumerate(far_index(space, u, seen)):
        if not bool(far.any()):
            continue
        column, known = space.columns[number], seen[:, number]
        name = f"column {number} of domain_index" if space.width > 1 else "domain_index"
        span = "" if column.turns[0] else f" ({float(known.min()):g} to {float(known.max()):g})"
        warnings.warn(
            f"{name} is far from what was fitted in {int(far.sum())} of {len(u)} rows: up to "
            f"{float(distance.max()) * column.unit:.3g} away from the nearest index seen in "
            f"training{span}; nothing was learned so far away, so do not trust predictions there.",
            CidaWarning,
            stacklevel=outside(),
        )
