"""What a user passes to fit, as `TrainingData`: arrays or tables, checked, encoded and scaled."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.base import is_classifier
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight, validate_data
from torch import Tensor

from cida import array_checks
from cida.array_checks import Array, Labels
from cida.data import IndexedDataset, MappedDataset, RowLayout
from cida.errors import warn_user
from cida.estimators.labels import ClassLabels, LabelCodec, NumberLabels
from cida.estimators.scaling import Scaler, iter_chunks
from cida.networks.builders import image_or_signal_shape
from cida.training import seeded

if TYPE_CHECKING:  # tables need pyarrow
    from cida.tables import TableFormat, TableSource

__all__ = ["FitArguments", "InputFormat", "TrainingData", "dataset_training_data", "training_data"]


@dataclass(frozen=True)
class FitArguments:
    """What `fit` was given."""

    X: Any
    y: Any = None
    domain_index: Any = None
    source: Any = None
    sample_weight: Any = None
    drop: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class InputFormat:
    """How inputs and labels become what networks take.

    ``table`` says how the columns of a table are read, and is None where X was an array.
    """

    layout: RowLayout
    scaler: Scaler
    labels: LabelCodec
    n_features_in: int
    table: TableFormat | None = None
    index_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class TrainingData(InputFormat):
    """All rows as networks take them, and how they were made so."""

    dataset: IndexedDataset

    def __len__(self) -> int:
        return len(self.dataset)


def training_data(estimator: Any, given: FitArguments) -> TrainingData:
    """Read and check the arguments of a fit.

    Parameters
    ----------
    estimator : estimator
        Whose parameters say what its inputs may be; a copy, since it is written to.
    given : FitArguments
        The arguments of the fit.

    Returns
    -------
    TrainingData
        All rows, scaled, with the labels of the target wiped.
    """
    if not _is_table(given.X, given.y):
        return _array_training_data(estimator, given)
    from cida.tables import open_table

    table = open_table(given.X)
    if isinstance(given.y, str) or (given.y is None and table.default_label):
        return _columns_training_data(estimator, given, table)
    return _frame_training_data(estimator, given, table)


def _is_table(X: Any, y: Any) -> bool:
    """Whether X is read by the names of its columns: a path, a mapping, or a frame with texts.

    A frame is, where y names its label column or where a column is no number.
    """
    if isinstance(X, str | os.PathLike | Mapping) or isinstance(y, str):
        return True
    dtypes = getattr(X, "dtypes", None)  # of pandas and polars
    if dtypes is not None and hasattr(X, "columns"):
        return not all(map(_is_plain_number, dtypes))
    return hasattr(X, "column_names") and hasattr(X, "schema")  # pyarrow


def _is_plain_number(dtype: Any) -> bool:
    if hasattr(dtype, "is_numeric"):  # polars
        return bool(dtype.is_numeric() or str(dtype) == "Boolean")
    return getattr(dtype, "kind", "O") in "biuf"


def _array_training_data(estimator: Any, given: FitArguments) -> TrainingData:
    x = check_rows(estimator, given.X, reset=True)
    n_features_in = int(x.shape[1])
    has_index = given.domain_index is not None
    labels, weight, u = _read_targets(estimator, given, x)
    if not has_index:
        x, labels, weight = _take(np.flatnonzero(weight > 0), x, labels, weight)
        if len(x) <= (estimator.batch_size or 128):
            x, labels, weight = _merge_duplicate_rows(x, labels, weight)
        u = u[: len(x)]
    # Where there is a target, its rows count as much as the source's for what x looks like.
    counts = np.ones(len(x)) if has_index else weight
    scaler = Scaler.fit(x, counts) if estimator.standardize else Scaler.identity()
    layout = _array_layout(estimator, x.shape[1:], has_index)
    names = getattr(estimator, "feature_names_in_", None)
    return _make_training_data(
        estimator,
        scaler.transform(x.reshape(len(x), *layout.shape)),
        labels,
        weight,
        u,
        layout=layout,
        scaler=scaler,
        n_features_in=n_features_in,
        index_names=array_checks.get_index_names(given.domain_index),
        feature_names=None if names is None else tuple(map(str, names)),
    )


def check_rows(estimator: Any, X: Any, *, reset: bool) -> Array:
    """X as an array of finite numbers, by scikit-learn's rules."""
    X = array_checks.as_array(X) if isinstance(X, Tensor) else X
    rules = {"dtype": [np.float64, np.float32], "ensure_all_finite": False, "allow_nd": True}
    x: Array = validate_data(estimator, X, reset=reset, **rules)
    array_checks.check_finite("X", x)
    return x


def read_labels(
    estimator: Any, y: Any, n_rows: int, source: Any = None, has_index: bool = True
) -> Labels:
    """The labels, and which of them may be read."""
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    hides = is_classifier(estimator) and source is None
    labels = array_checks.read_labels(y, n_rows, source, has_index=has_index, hides_minus_one=hides)
    is_whole = labels.values.dtype.kind == "i"
    classes = np.unique(labels.values) if hides and not has_index and is_whole else ()
    if len(classes) > 2 and -1 in classes:  # -1 beside 1 alone is a common coding of two classes
        warn_user(
            f"y has -1 in {int((labels.values == -1).sum())} of {n_rows} rows beside "
            f"{len(classes) - 1} other classes, and without domain_index -1 is a class too: if it "
            "marks unlabelled rows, pass domain_index so that they serve as the target, or drop "
            "them; if it is a class, there is nothing to do."
        )
    return labels


def _read_targets(estimator: Any, given: FitArguments, x: Array) -> tuple[Labels, Array, Tensor]:
    """Labels, weights and index that were given apart from the rows."""
    has_index = given.domain_index is not None
    labels = read_labels(estimator, given.y, len(x), given.source, has_index)
    weight = _check_sample_weight(given.sample_weight, x, dtype=float, ensure_non_negative=True)
    if not weight[labels.labelled].any():
        raise ValueError(
            "sample_weight is zero on every labelled row; at least one must be positive."
        )
    if not has_index:
        return labels, weight, torch.zeros(len(x), 1, dtype=torch.float64)
    return labels, weight, array_checks.check_domain_index(given.domain_index, len(x))


def _take(rows: Array, x: Array, labels: Labels, weight: Array) -> tuple[Array, Labels, Array]:
    return x[rows], Labels(labels.values[rows], labels.labelled[rows]), weight[rows]


def _merge_duplicate_rows(x: Array, labels: Labels, weight: Array) -> tuple[Array, Labels, Array]:
    """Equal rows once, with their weights added up, in an order that depends on content alone.

    So a weight of 2 is exactly a row given twice.
    """
    _, codes = np.unique(labels.values, return_inverse=True)
    table = np.column_stack([x.reshape(len(x), -1), codes])
    _, first, group = np.unique(table, axis=0, return_index=True, return_inverse=True)
    x, labels, _ = _take(first, x, labels, weight)
    return x, labels, np.bincount(group.ravel(), weights=weight)


def _array_layout(estimator: Any, shape: tuple[int, ...], has_index: bool) -> RowLayout:
    if len(shape) == 1:
        return RowLayout("columns", shape, has_index=has_index)
    if estimator.encoder is not None:
        return RowLayout("own", shape, has_index=has_index)
    shape = image_or_signal_shape(shape)
    return RowLayout("image" if len(shape) == 3 else "signal", shape, has_index=has_index)


def _make_training_data(
    estimator: Any,
    x: Any,
    labels: Labels,
    weight: Array,
    u: Tensor,
    codec: LabelCodec | None = None,
    **input_format: Any,
) -> TrainingData:
    """Rows with their labels encoded and weighted; an array's are read as they are needed."""
    if codec is None:
        fits_classes = is_classifier(estimator)
        codec = ClassLabels.fit(labels) if fits_classes else NumberLabels.fit(labels, weight)
    rows, y = labels.labelled, codec.encode(labels)
    class_weight = getattr(estimator, "class_weight", None)
    if class_weight is not None and isinstance(codec, ClassLabels):
        known = {"y": labels.source_labels, "sample_weight": weight[rows]}
        weight_of_class = compute_class_weight(class_weight, classes=codec.classes, **known)
        weight = weight.copy()
        weight[rows] *= weight_of_class[y[rows]]
    weights = torch.from_numpy(weight / weight[rows].mean()).float()
    targets = (torch.from_numpy(y), u, torch.from_numpy(rows), weights)
    is_tensor = isinstance(x, Tensor)
    dataset = IndexedDataset(x, *targets) if is_tensor else MappedDataset(x, *targets)
    return TrainingData(dataset=dataset, labels=codec, **input_format)


def dataset_training_data(estimator: Any, dataset: IndexedDataset) -> TrainingData:
    """A data set as it is: inputs are not scaled, labels are training targets."""
    if not len(dataset.source_rows):
        raise ValueError(f"rows has no labelled row among its {len(dataset)}; label some.")
    array_checks.check_finite("rows.u", dataset.u.numpy())
    with seeded(0):  # a look-up may draw, and that must not be felt outside
        first = dataset[torch.arange(1)].x
    if first.dim() < 2 or first.dtype != torch.float32:
        raise ValueError(
            f"rows deals x of shape {tuple(first.shape)} and type {first.dtype} for one row; it "
            "must deal float32 numbers, at least one a row."
        )
    shape = tuple(first.shape[1:])
    if len(shape) > 1 and estimator.encoder is None:
        raise ValueError(
            f"dataset has rows of shape {shape}; give an encoder of your own for rows that are no "
            "vectors."
        )
    fit_codec = ClassLabels.from_codes if is_classifier(estimator) else NumberLabels.from_targets
    return TrainingData(
        dataset=dataset,
        layout=RowLayout("columns" if len(shape) == 1 else "own", shape),
        scaler=Scaler.identity(),
        labels=fit_codec(dataset.source_labels),
        n_features_in=shape[0],
    )


def _columns_training_data(estimator: Any, given: FitArguments, table: TableSource) -> TrainingData:
    """Label and index are columns of the table."""
    from cida.tables import ColumnRoles, TableFormat, read_table

    for name in ("source", "sample_weight"):
        if getattr(given, name) is not None:
            raise ValueError(
                f"{name} is given, and y names a column of the table; pass y and domain_index as "
                f"arrays to use {name}."
            )
    index = given.domain_index
    index = (index,) if isinstance(index, str) else tuple(index or table.default_index)
    if not index:
        raise ValueError("domain_index is missing; name the column along which labels end.")
    label = given.y or table.default_label
    roles = ColumnRoles(label, index, tuple(given.drop), not is_classifier(estimator))
    encoded = read_table(table, roles)
    values, codec = encoded.y, None
    if encoded.classes is not None:
        values, codec = encoded.classes[encoded.y], ClassLabels(encoded.classes)
    table_format = TableFormat(encoded.schema, label, index, encoded.index_kinds)
    x, input_format = _encode_inputs(estimator, table, table_format, has_index=True)
    labels, weight = Labels(values, encoded.labelled), np.ones(len(encoded))
    u = torch.from_numpy(encoded.u)
    return _make_training_data(
        estimator, x, labels, weight, u, codec, index_names=index, **input_format
    )


def _frame_training_data(estimator: Any, given: FitArguments, table: TableSource) -> TrainingData:
    """Inputs are columns of a frame with texts or missing values; y and the index are arrays."""
    from cida.tables import TableFormat
    from cida.tables.encoded_table import read_schema

    table_format = TableFormat(read_schema(table, given.drop))
    has_index = given.domain_index is not None
    x, input_format = _encode_inputs(estimator, table, table_format, has_index)
    input_format["index_names"] = array_checks.get_index_names(given.domain_index)
    targets = _read_targets(estimator, given, x)
    return _make_training_data(estimator, x, *targets, **input_format)


def _encode_inputs(
    estimator: Any, table: TableSource, table_format: TableFormat, has_index: bool
) -> tuple[Array, dict[str, Any]]:
    """All inputs in a mapped file, as networks take them, and how they were made so."""
    from cida.tables import map_rows

    schema, array = table_format.schema, table.input_array
    if array is None:
        indicators, sizes = schema.missing_indicators, schema.category_sizes
        layout = RowLayout("columns", (schema.width,), indicators, sizes, has_index)
        scaler = Scaler.identity()
        columns = schema.names or table_format.index  # the latter for the number of rows
        rows = (schema.encode(batch) for batch in table.iter_batches(columns))
    else:
        layout = _array_layout(estimator, array.shape[1:], has_index)
        scaler = Scaler.fit(array, np.ones(len(array)))
        rows = (scaler.transform(np.asarray(array[part])).numpy() for part in iter_chunks(array))
    x = map_rows(rows, math.prod(layout.shape))
    return x.reshape(len(x), *layout.shape), {
        "layout": layout,
        "scaler": scaler,
        "n_features_in": len(schema.columns) or layout.shape[0],
        "table": table_format,
        "feature_names": schema.names,
    }
