"""What a user passes to fit, as `TrainingData`: arrays or tables, checked, encoded and scaled."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import validate_data
from torch import Tensor

from cida.data import IndexedDataset, MappedDataset, RowLayout
from cida.estimators import array_checks
from cida.estimators.array_checks import Array, Labels
from cida.estimators.labels import ClassLabels, LabelCodec, NumberLabels
from cida.estimators.scaling import Scaler
from cida.networks.builders import image_or_signal_shape

if TYPE_CHECKING:  # tables need pyarrow
    from cida.tables import TableFormat, TableSource

__all__ = ["FitArguments", "TrainingData", "dataset_training_data", "is_table", "training_data"]

MAX_CHUNK_NUMBERS = 1 << 23  # of X that are in memory at a time


@dataclass(frozen=True)
class FitArguments:
    """What `fit` was given."""

    X: Any
    y: Any = None
    domain_index: Any = None
    source: Any = None
    sample_weight: Any = None
    drop: Sequence[str] = ()


@dataclass(frozen=True)
class InputOptions:
    """What the estimator says of its inputs."""

    is_classifier: bool
    standardize: bool
    allow_nd: bool
    batch_size: int | None
    class_weight: Any = None


@dataclass(frozen=True)
class TrainingData:
    """All rows as networks take them, and how they were made so."""

    dataset: IndexedDataset
    layout: RowLayout
    scaler: Scaler
    labels: LabelCodec
    n_features_in: int
    table: TableFormat | None = None
    index_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.dataset)


def is_table(X: Any, y: Any = None) -> bool:
    """Whether X is read by the names of its columns: a path, a mapping, or a frame with texts.

    A frame is, where y names its label column or where a column is no number.
    """
    if isinstance(X, str | os.PathLike | Mapping) or isinstance(y, str):
        return True
    dtypes = getattr(X, "dtypes", None)  # of pandas and polars
    if dtypes is not None and hasattr(X, "columns"):
        return any(not _is_plain_number(dtype) for dtype in dtypes)
    return hasattr(X, "column_names") and hasattr(X, "schema")  # pyarrow


def _is_plain_number(dtype: Any) -> bool:
    if hasattr(dtype, "is_numeric"):  # polars
        return bool(dtype.is_numeric() or str(dtype) == "Boolean")
    return getattr(dtype, "kind", "O") in "biuf"


def training_data(estimator: Any, options: InputOptions, given: FitArguments) -> TrainingData:
    """Read and check the arguments of a fit.

    Parameters
    ----------
    estimator : estimator
        Whose name stands in scikit-learn's messages; a copy, since it is written to.
    options : InputOptions
        What the estimator says of its inputs.
    given : FitArguments
        The arguments of the fit.

    Returns
    -------
    TrainingData
        All rows, scaled, with the labels of the target wiped.
    """
    if is_table(given.X, given.y):
        return _table_training_data(estimator, options, given)
    return _array_training_data(estimator, options, given)


# --- arrays --------------------------------------------------------------------------------------


def _array_training_data(
    estimator: Any, options: InputOptions, given: FitArguments
) -> TrainingData:
    x = check_rows(estimator, given.X, reset=True)
    n_features_in = int(x.shape[1])
    has_index = given.domain_index is not None
    labels = read_labels(given.y, len(x), options, has_index, given.source, estimator)
    weight = array_checks.read_sample_weight(labels, given.sample_weight, x)
    if has_index:
        u = array_checks.check_domain_index(given.domain_index, len(x))
    else:
        x, labels, weight = array_checks.drop_zero_weight(x, labels, weight)
        if len(x) <= (options.batch_size or min(128, len(x))):
            x, labels, weight = array_checks.merge_duplicate_rows(x, labels, weight)
        u = torch.zeros(len(x), 1, dtype=torch.float64)
    codec = _fit_codec(options, labels, weight)
    # Where there is a target, its rows count as much as the source's for what x looks like.
    counts = np.ones(len(x)) if has_index else weight
    scaler = Scaler.fit(x, counts) if options.standardize else Scaler.identity()
    layout = _array_layout(x.shape[1:], options.allow_nd, has_index)
    if layout.kind not in ("columns", "own"):
        x = x.reshape(len(x), *layout.shape)
    weight = _class_weighted(options, codec, labels, weight)
    dataset = IndexedDataset(
        scaler.transform(x),
        torch.from_numpy(codec.encode(labels)),
        u,
        torch.from_numpy(labels.labelled),
        torch.from_numpy(weight / weight[labels.labelled].mean()).float(),
    )
    names = getattr(estimator, "feature_names_in_", None)
    return TrainingData(
        dataset,
        layout,
        scaler,
        codec,
        n_features_in=n_features_in,
        index_names=array_checks.get_index_names(given.domain_index),
        feature_names=None if names is None else tuple(str(name) for name in names),
    )


def check_rows(estimator: Any, X: Any, *, reset: bool) -> Array:
    """X as an array of finite numbers, by scikit-learn's rules."""
    if isinstance(X, Tensor):
        X = array_checks.as_array(X)
    x: Array = validate_data(
        estimator,
        X,
        reset=reset,
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
        allow_nd=True,
    )
    array_checks.check_finite("X", x)
    return x


def _array_layout(shape: tuple[int, ...], has_own_encoder: bool, has_index: bool) -> RowLayout:
    if len(shape) == 1:
        return RowLayout("columns", shape, has_index=has_index)
    if has_own_encoder:
        return RowLayout("own", shape, has_index=has_index)
    network_shape = image_or_signal_shape(shape)
    kind = "image" if len(network_shape) == 3 else "signal"
    return RowLayout(kind, network_shape, has_index=has_index)  # type: ignore[arg-type]


def read_labels(
    y: Any, n_rows: int, options: InputOptions, has_index: bool, source: Any, estimator: Any
) -> Labels:
    """The labels, and which of them may be read."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    labels = array_checks.read_labels(y, n_rows, has_index=has_index, source=source)
    if options.is_classifier and source is None:
        if has_index:
            return array_checks.hide_minus_one(labels)
        array_checks.warn_minus_one(labels.values)
    return labels


def _fit_codec(options: InputOptions, labels: Labels, weight: Array) -> LabelCodec:
    return ClassLabels.fit(labels) if options.is_classifier else NumberLabels.fit(labels, weight)


def _class_weighted(
    options: InputOptions, codec: LabelCodec, labels: Labels, weight: Array
) -> Array:
    if options.class_weight is None or not isinstance(codec, ClassLabels):
        return weight
    of_class = compute_class_weight(
        options.class_weight,
        classes=codec.classes,
        y=labels.source_labels,
        sample_weight=weight[labels.labelled],
    )
    weight = weight.copy()
    weight[labels.labelled] *= of_class[np.searchsorted(codec.classes, labels.source_labels)]
    return weight


def dataset_training_data(
    dataset: IndexedDataset, is_classifier: bool, has_own_encoder: bool
) -> TrainingData:
    """A data set as it is: inputs are not scaled, labels are training targets."""
    shape = array_checks.check_dataset(dataset)
    kind = "columns" if len(shape) == 1 else "own"
    if kind == "own" and not has_own_encoder:
        raise ValueError(
            f"dataset has rows of shape {shape}; give an encoder of your own for rows that are no "
            "vectors."
        )
    known = dataset.source_labels
    codec = ClassLabels.from_codes(known) if is_classifier else NumberLabels.from_targets(known)
    layout = RowLayout(kind, shape)  # type: ignore[arg-type]
    return TrainingData(dataset, layout, Scaler.identity(), codec, n_features_in=shape[0])


# --- tables --------------------------------------------------------------------------------------


def _table_training_data(
    estimator: Any, options: InputOptions, given: FitArguments
) -> TrainingData:
    from cida.tables import open_any_table

    table = open_any_table(given.X)
    if isinstance(given.y, str) or (given.y is None and table.default_label):
        return _columns_training_data(options, given, table)
    return _frame_training_data(estimator, options, given, table)


def _columns_training_data(
    options: InputOptions, given: FitArguments, table: TableSource
) -> TrainingData:
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
    roles = ColumnRoles(
        given.y or table.default_label, index, tuple(given.drop), not options.is_classifier
    )
    encoded = read_table(table, roles)
    u, labelled = torch.from_numpy(encoded.u), torch.from_numpy(encoded.labelled)
    if encoded.classes is not None:
        codec: LabelCodec = ClassLabels(encoded.classes)
        y, values = torch.from_numpy(encoded.y), encoded.classes[encoded.y]
        weight = _class_weighted(
            options, codec, Labels(values, encoded.labelled), np.ones(len(encoded))
        )
    else:
        numbers = Labels(encoded.y, encoded.labelled)
        weight = np.ones(len(encoded))
        codec = NumberLabels.fit(numbers, weight)
        y = torch.from_numpy(codec.encode(numbers))
    table_format = TableFormat(encoded.schema, roles.label, roles.index, encoded.index_kinds)
    x, layout, scaler = _encode_inputs(table, table_format, options, has_index=True)
    weights = torch.from_numpy(weight / weight[encoded.labelled].mean()).float()
    return TrainingData(
        MappedDataset(x, y, u, labelled, weights),
        layout,
        scaler,
        codec,
        n_features_in=len(encoded.schema.columns) or layout.shape[0],
        table=table_format,
        index_names=roles.index,
        feature_names=encoded.schema.names,
    )


def _frame_training_data(
    estimator: Any, options: InputOptions, given: FitArguments, table: TableSource
) -> TrainingData:
    """Inputs are columns of a frame with texts or missing values; y and the index are arrays."""
    from cida.tables import TableFormat
    from cida.tables.encoded_table import read_schema

    table_format = TableFormat(read_schema(table, given.drop))
    x, layout, scaler = _encode_inputs(
        table, table_format, options, has_index=given.domain_index is not None
    )
    labels = read_labels(given.y, len(x), options, layout.has_index, given.source, estimator)
    weight = array_checks.read_sample_weight(labels, given.sample_weight, x)
    u = torch.zeros(len(x), 1, dtype=torch.float64)
    if layout.has_index:
        u = array_checks.check_domain_index(given.domain_index, len(x))
    codec = _fit_codec(options, labels, weight)
    weight = _class_weighted(options, codec, labels, weight)
    dataset = MappedDataset(
        x,
        torch.from_numpy(codec.encode(labels)),
        u,
        torch.from_numpy(labels.labelled),
        torch.from_numpy(weight / weight[labels.labelled].mean()).float(),
    )
    return TrainingData(
        dataset,
        layout,
        scaler,
        codec,
        n_features_in=len(table_format.schema.columns),
        table=table_format,
        index_names=array_checks.get_index_names(given.domain_index),
        feature_names=table_format.schema.names,
    )


def _encode_inputs(
    table: TableSource, table_format: TableFormat, options: InputOptions, has_index: bool
) -> tuple[Array, RowLayout, Scaler]:
    """All inputs in a mapped file, as networks take them."""
    from cida.tables import map_rows
    from cida.tables.encoded_table import encode_batches

    schema = table_format.schema
    if table.input_array is None:
        layout = RowLayout(
            "columns", (schema.width,), schema.missing_indicators, schema.category_sizes, has_index
        )
        columns = schema.names or table_format.index  # the latter for the number of rows
        x = map_rows(encode_batches(table, schema, columns), schema.width)
        return x, layout, Scaler.identity()
    array = table.input_array
    layout = _array_layout(array.shape[1:], options.allow_nd, has_index)
    scaler = Scaler.fit(array, np.ones(len(array)))
    width = int(np.prod(layout.shape))
    x = map_rows(_scaled_chunks(array, scaler), width).reshape(len(array), *layout.shape)
    return x, layout, scaler


def _scaled_chunks(array: Array, scaler: Scaler) -> Iterator[Array]:
    rows = max(1, MAX_CHUNK_NUMBERS // int(np.prod(array.shape[1:])))
    for start in range(0, len(array), rows):
        yield scaler.transform(np.asarray(array[start : start + rows])).numpy()
