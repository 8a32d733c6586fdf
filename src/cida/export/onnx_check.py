"""Whether an ONNX file predicts what its model predicts: made-up rows through both."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from cida.estimators.base import CIDAEstimator
from cida.estimators.classifier import CIDAClassifier
from cida.estimators.inputs import CidaWarning
from cida.export.onnx_graph import make_synthetic_x
from cida.export.signature import OnnxInput, build_onnx_inputs

if TYPE_CHECKING:  # it needs pyarrow, and estimators are checked without
    from cida.estimators.table import TableModel

__all__ = ["make_synthetic_rows", "max_prediction_difference", "open_session", "predict_rows"]

Array = np.ndarray[Any, Any]
InputArrays = dict[str, Array]  # of each input of the file

BATCH_SIZES = (1, 200)  # rows at once: a batch of one is another path through many kernels
MISSING_SHARE = 0.2  # of the cells
UNKNOWN_CATEGORY = "a text that no table has"
MIN_TOP_TWO_MARGIN = 1e-3  # between the two most probable classes, below which either is the label
MICROSECONDS_PER_DAY = 86_400_000_000


def max_prediction_difference(
    model: CIDAEstimator | TableModel, path: str | os.PathLike[str]
) -> float:
    """The largest difference in a probability; of numbers, in deviations of the label.

    Infinite where a label differs that is sure.
    """
    onnx_session = open_session(path)
    worst = 0.0
    for size in BATCH_SIZES:
        rows = make_synthetic_rows(model, size, seed=size)
        torch_output = predict_rows(model, rows)
        onnx_outputs = dict(
            zip(
                [o.name for o in onnx_session.get_outputs()],
                onnx_session.run(None, rows),
                strict=True,
            )
        )
        if "probabilities" in onnx_outputs:
            worst = max(worst, float(np.abs(onnx_outputs["probabilities"] - torch_output).max()))
            if _has_label_mismatch(model, onnx_outputs["label"], torch_output):
                return float("inf")
        else:
            difference = np.abs(onnx_outputs["prediction"] - torch_output[:, 0]).max()
            worst = max(worst, float(difference) / _label_scale(model))
    return worst if np.isfinite(worst) else float("inf")


def open_session(path: str | os.PathLike[str]) -> Any:
    """The file in onnxruntime, on as many threads as torch has here."""
    onnxruntime, torch = import_module("onnxruntime"), import_module("torch")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(os.fspath(path), options, providers=providers)


def make_synthetic_rows(model: CIDAEstimator | TableModel, n_rows: int, seed: int) -> InputArrays:
    """Rows about those that the model was fitted on, with holes and new categories, for the file.

    The index is of values seen in training.
    """
    generator = np.random.default_rng(seed)
    inputs = build_onnx_inputs(model)
    if isinstance(model, CIDAEstimator):
        arrays = {"X": make_synthetic_x(model, n_rows, generator)}
        if len(inputs) > 1:
            arrays["u"] = _sample_index(model, n_rows, generator)
        return arrays
    columns = inputs[: -len(model.index)]
    columns_by_name = {column.name: column for column in model.schema.columns}
    arrays = {
        one.name: _sample_column(one, columns_by_name, model, n_rows, generator) for one in columns
    }
    u = _sample_index(model.estimators[0], n_rows, generator)
    return arrays | {one.name: u[:, k] for k, one in enumerate(inputs[len(columns) :])}


def predict_rows(model: CIDAEstimator | TableModel, rows: InputArrays) -> Array:
    """What Python predicts for rows of the file: probabilities, or numbers as one column."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        if isinstance(model, CIDAClassifier):
            return model.predict_proba(rows["X"], domain_index=rows.get("u"))
        if isinstance(model, CIDAEstimator):
            return model.predict(rows["X"], domain_index=rows.get("u"))[:, None]
    x, u = _encode_rows(model, build_onnx_inputs(model), rows)
    return model.predict(x, u)


def _sample_index(model: CIDAEstimator, n_rows: int, generator: np.random.Generator) -> Array:
    training_index = model._training_index.numpy()
    return np.stack(
        [generator.choice(column, n_rows) for column in training_index.T], axis=1
    ).astype(float)


def _sample_column(
    spec: OnnxInput,
    columns_by_name: Any,
    model: TableModel,
    n_rows: int,
    generator: np.random.Generator,
) -> Array:
    if spec.kind == "rows":
        centre, scale = model.x_scaling
        return (centre + scale * generator.normal(size=(n_rows, *spec.shape))).astype(np.float32)
    missing = generator.random(n_rows) < MISSING_SHARE
    if spec.kind == "category":
        texts = np.array([*spec.categories, UNKNOWN_CATEGORY], dtype=object)
        return np.where(missing, "", generator.choice(texts, n_rows))
    column = columns_by_name[spec.column]
    values = column.center + column.scale * generator.normal(size=n_rows)
    if spec.kind == "boolean":
        values = generator.integers(0, 2, n_rows).astype(float)
    if spec.kind == "date":
        values = np.round(values * MICROSECONDS_PER_DAY) / MICROSECONDS_PER_DAY
    return np.where(missing, np.nan, values)


def _encode_rows(
    model: TableModel, inputs: Sequence[OnnxInput], rows: InputArrays
) -> tuple[Array, Array]:
    """Inputs and index as `TableModel` reads them from a table with these cells."""
    pa = import_module("pyarrow")
    cells = {one.column: _to_arrow(pa, one, rows[one.name]) for one in inputs if one.kind != "rows"}
    x, u = model.read_batch(pa.record_batch(cells))
    return (model.scale_rows(rows["X"]) if len(model.shape) > 1 else x), u


def _to_arrow(pa: Any, spec: OnnxInput, values: Array) -> Any:
    if spec.kind == "category":
        return pa.array([text or None for text in values], pa.string())
    if spec.kind == "boolean":
        return pa.array([None if np.isnan(value) else bool(value) for value in values], pa.bool_())
    if spec.kind in ("date", "index date"):
        dates = np.round(np.nan_to_num(values) * MICROSECONDS_PER_DAY).astype("datetime64[us]")
        return pa.array(dates, mask=np.isnan(values))
    return pa.array(values, from_pandas=True)


def _has_label_mismatch(
    model: CIDAEstimator | TableModel, labels: Array, torch_output: Array
) -> bool:
    classes: Any = model.classes_ if isinstance(model, CIDAClassifier) else model.classes
    ordered = np.sort(torch_output, axis=1)
    is_decided = ordered[:, -1] - ordered[:, -2] > MIN_TOP_TWO_MARGIN
    pairs = zip(labels[is_decided], torch_output.argmax(1)[is_decided], strict=True)
    return any(str(label) != str(classes[code]) for label, code in pairs)


def _label_scale(model: Any) -> float:
    return float(model._y_scale if isinstance(model, CIDAEstimator) else model.scale) or 1.0
