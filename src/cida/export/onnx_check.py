"""Whether an ONNX file predicts what its model predicts: made-up rows through both."""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from typing import Any

import numpy as np
import torch

from cida.array_types import Array
from cida.errors import CidaWarning
from cida.estimators.base import CIDAEstimator
from cida.estimators.fitted_state import FittedState
from cida.estimators.labels import ClassLabels, NumberLabels
from cida.export.signature import OnnxInput, build_onnx_inputs, indexed_table
from cida.networks import TabularEncoder

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
    onnx_session, codec = open_session(path), model.state_.labels
    scale = codec.scale if isinstance(codec, NumberLabels) else 1.0
    worst = 0.0
    for size in BATCH_SIZES:
        rows = make_synthetic_rows(model, size, seed=size)
        torch_output = predict_rows(model, rows)
        first, *others = onnx_session.run(None, rows)  # probabilities and label, or a prediction
        difference = float(np.abs(first.reshape(torch_output.shape) - torch_output).max()) / scale
        if not np.isfinite(difference):
            return float("inf")
        worst = max(worst, difference)
        if isinstance(codec, ClassLabels):
            ordered = np.sort(torch_output, axis=1)
            is_decided = ordered[:, -1] - ordered[:, -2] > MIN_TOP_TWO_MARGIN
            expected = codec.classes[torch_output.argmax(1)]
            if (others[0].astype(str) != expected.astype(str))[is_decided].any():
                return float("inf")
    return worst


def open_session(path: str | os.PathLike[str]) -> Any:
    """The file in onnxruntime, on as many threads as torch has here."""
    onnxruntime = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(os.fspath(path), options, providers=providers)


def make_synthetic_rows(model: CIDAEstimator, n_rows: int, seed: int) -> InputArrays:
    """Rows for the file about those of the fit, with missing values and new categories.

    The index is of values seen in training.
    """
    generator = np.random.default_rng(seed)
    state: FittedState = model.state_
    inputs = build_onnx_inputs(state)
    columns = [one for one in inputs if not one.is_index]
    arrays = {one.name: _sample_column(one, state, n_rows, generator) for one in columns}
    if state.index_width is None:
        return arrays
    values = [generator.choice(column, n_rows) for column in state.index_values.numpy().T]
    u = np.stack(values, axis=1).astype(float)
    if indexed_table(state) is None:
        return {**arrays, "u": u}
    return arrays | {one.name: u[:, k] for k, one in enumerate(inputs[len(columns) :])}


def predict_rows(model: CIDAEstimator, rows: InputArrays) -> Array:
    """What Python predicts for rows of the file: probabilities, or numbers as one column."""
    state: FittedState = model.state_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        outputs = state.outputs(*_read_rows(state, rows), model.n_draws)
    codec = state.labels
    if isinstance(codec, ClassLabels):
        return codec.probabilities(outputs)
    return codec.decode(outputs)[:, None]


def _sample_column(
    spec: OnnxInput, state: FittedState, n_rows: int, generator: np.random.Generator
) -> Array:
    table = state.table
    if spec.kind == "rows" or table is None:
        return _sample_x(state, n_rows, generator)
    missing = generator.random(n_rows) < MISSING_SHARE
    if spec.kind == "category":
        texts = np.array([*spec.categories, UNKNOWN_CATEGORY], dtype=object)
        return np.where(missing, "", generator.choice(texts, n_rows))
    column = next(c for c in table.schema.columns if c.name == spec.column)
    values = column.center + column.scale * generator.normal(size=n_rows)
    if spec.kind == "boolean":
        values = generator.integers(0, 2, n_rows).astype(float)
    if spec.kind == "date":
        values = np.round(values * MICROSECONDS_PER_DAY) / MICROSECONDS_PER_DAY
    return np.where(missing, np.nan, values)


def _sample_x(state: FittedState, n_rows: int, generator: np.random.Generator) -> Array:
    """Rows about the mean of those fitted on, as the scaler takes them; codes are known ones."""
    layout = state.layout
    noise = generator.normal(size=(n_rows, *layout.shape))
    n_numbers, n_indicators = layout.n_numbers, len(layout.missing_indicators)
    sizes = list(layout.category_sizes)
    encoder = next((m for m in state.members[0].modules() if isinstance(m, TabularEncoder)), None)
    if encoder is not None and layout.shape == (sum(encoder.split_sizes),):
        # Of an array the encoder alone knows which columns are codes.
        n_numbers, n_indicators, _ = encoder.split_sizes
        sizes = [table.num_embeddings for table in encoder.embedding_tables()]
    sizes = [2] * n_indicators + sizes
    if sizes:
        noise[:, n_numbers:] = generator.integers(0, sizes, (n_rows, len(sizes)))
    x: Array = state.scaler.mean + state.scaler.scale * noise
    return x if len(layout.shape) == 1 else x.astype(np.float32)


def _read_rows(state: FittedState, rows: InputArrays) -> tuple[Array, torch.Tensor]:
    """Inputs and index as the model reads them from arrays, or from a table with these cells."""
    table = indexed_table(state)
    if table is None:
        return rows["X"], torch.from_numpy(rows.get("u", np.zeros((len(rows["X"]), 1))))
    from cida.tables.encoded_table import read_index

    pa, inputs = import_module("pyarrow"), build_onnx_inputs(state)
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
