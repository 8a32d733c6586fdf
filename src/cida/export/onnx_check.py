"""Whether an ONNX file predicts what its model predicts: made-up rows through both."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import torch

from cida.errors import CidaWarning
from cida.estimators.base import CIDAEstimator
from cida.estimators.fitted_state import FittedState
from cida.estimators.labels import ClassLabels, NumberLabels
from cida.export.onnx_graph import make_synthetic_x
from cida.export.signature import OnnxInput, build_onnx_inputs

__all__ = ["make_synthetic_rows", "max_prediction_difference", "open_session", "predict_rows"]

Array = np.ndarray[Any, Any]
InputArrays = dict[str, Array]  # of each input of the file

BATCH_SIZES = (1, 200)  # rows at once: a batch of one is another path through many kernels
MISSING_SHARE = 0.2  # of the cells
UNKNOWN_CATEGORY = "a text that no table has"
MIN_TOP_TWO_MARGIN = 1e-3  # between the two most probable classes, below which either is the label
MICROSECONDS_PER_DAY = 86_400_000_000


def max_prediction_difference(model: CIDAEstimator, path: str | os.PathLike[str]) -> float:
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
    onnxruntime = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(os.fspath(path), options, providers=providers)


def make_synthetic_rows(model: CIDAEstimator, n_rows: int, seed: int) -> InputArrays:
    """Rows about those that the model was fitted on, with holes and new categories, for the file.

    The index is of values seen in training.
    """
    generator = np.random.default_rng(seed)
    state: FittedState = model.state_
    inputs = build_onnx_inputs(state)
    if state.table is None or not state.table.index:
        arrays = {"X": make_synthetic_x(state, n_rows, generator)}
        if len(inputs) > 1:
            arrays["u"] = _sample_index(state, n_rows, generator)
        return arrays
    columns = inputs[: -len(state.table.index)]
    arrays = {one.name: _sample_column(one, state, n_rows, generator) for one in columns}
    u = _sample_index(state, n_rows, generator)
    return arrays | {one.name: u[:, k] for k, one in enumerate(inputs[len(columns) :])}


def predict_rows(model: CIDAEstimator, rows: InputArrays) -> Array:
    """What Python predicts for rows of the file: probabilities, or numbers as one column."""
    state: FittedState = model.state_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        if state.table is None or not state.table.index:
            x, u = rows["X"], rows.get("u")
            index = torch.zeros(len(x), 1) if u is None else torch.from_numpy(u)
        else:
            x, index = _encode_rows(state, build_onnx_inputs(state), rows)
        outputs = state.outputs(x, index, model.n_draws)
    codec = state.labels
    if isinstance(codec, ClassLabels):
        return codec.probabilities(outputs)
    return codec.decode(outputs)[:, None]


def _sample_index(state: FittedState, n_rows: int, generator: np.random.Generator) -> Array:
    values = state.index_values.numpy()
    columns = [generator.choice(column, n_rows) for column in values.T]
    return np.stack(columns, axis=1).astype(float)


def _sample_column(
    spec: OnnxInput, state: FittedState, n_rows: int, generator: np.random.Generator
) -> Array:
    if spec.kind == "rows":
        return make_synthetic_x(state, n_rows, generator)
    missing = generator.random(n_rows) < MISSING_SHARE
    if spec.kind == "category":
        texts = np.array([*spec.categories, UNKNOWN_CATEGORY], dtype=object)
        return np.where(missing, "", generator.choice(texts, n_rows))
    assert state.table is not None
    column = next(c for c in state.table.schema.columns if c.name == spec.column)
    values = column.center + column.scale * generator.normal(size=n_rows)
    if spec.kind == "boolean":
        values = generator.integers(0, 2, n_rows).astype(float)
    if spec.kind == "date":
        values = np.round(values * MICROSECONDS_PER_DAY) / MICROSECONDS_PER_DAY
    return np.where(missing, np.nan, values)


def _encode_rows(
    state: FittedState, inputs: Sequence[OnnxInput], rows: InputArrays
) -> tuple[Array, torch.Tensor]:
    """Inputs and index as the model reads them from a table with these cells."""
    from cida.tables.encoded_table import read_index

    pa, table = import_module("pyarrow"), state.table
    assert table is not None
    cells = {one.column: _to_arrow(pa, one, rows[one.name]) for one in inputs if one.kind != "rows"}
    batch = pa.record_batch(cells)
    x = table.schema.encode(batch) if state.layout.kind == "columns" else rows["X"]
    return x, torch.from_numpy(read_index(batch, table.index, table.index_kinds))


def _to_arrow(pa: Any, spec: OnnxInput, values: Array) -> Any:
    if spec.kind == "category":
        return pa.array([text or None for text in values], pa.string())
    if spec.kind == "boolean":
        return pa.array([None if np.isnan(value) else bool(value) for value in values], pa.bool_())
    if spec.kind in ("date", "index date"):
        dates = np.round(np.nan_to_num(values) * MICROSECONDS_PER_DAY).astype("datetime64[us]")
        return pa.array(dates, mask=np.isnan(values))
    return pa.array(values, from_pandas=True)


def _has_label_mismatch(model: CIDAEstimator, labels: Array, torch_output: Array) -> bool:
    codec = model.state_.labels
    assert isinstance(codec, ClassLabels)
    ordered = np.sort(torch_output, axis=1)
    is_decided = ordered[:, -1] - ordered[:, -2] > MIN_TOP_TWO_MARGIN
    pairs = zip(labels[is_decided], torch_output.argmax(1)[is_decided], strict=True)
    return any(str(label) != str(codec.classes[code]) for label, code in pairs)


def _label_scale(model: CIDAEstimator) -> float:
    codec = model.state_.labels
    return codec.scale if isinstance(codec, NumberLabels) else 1.0
