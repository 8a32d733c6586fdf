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
from cida.report.onnx_inputs import Input, inputs_of
from cida.report.onnx_modules import made_up_x

if TYPE_CHECKING:  # it needs pyarrow, and estimators are checked without
    from cida.estimators.table import TableModel

__all__ = ["largest_difference", "made_up_rows", "predictions", "session"]

Array = np.ndarray[Any, Any]
Rows = dict[str, Array]  # of each input of the file

SIZES = (1, 200)  # rows at once: a batch of one is another path through many kernels
MISSING = 0.2  # of the cells
NEW = "a text that no table has"
SURE = 1e-3  # between the two most probable classes, below which either is the label
DAY_MICROSECONDS = 86_400_000_000


def largest_difference(model: CIDAEstimator | TableModel, path: str | os.PathLike[str]) -> float:
    """The largest difference in a probability; of numbers, in deviations of the label.

    Infinite where a label differs that is sure.
    """
    running = session(path)
    worst = 0.0
    for size in SIZES:
        rows = made_up_rows(model, size, seed=size)
        want = predictions(model, rows)
        found = dict(zip([o.name for o in running.get_outputs()], running.run(None, rows),
                         strict=True))  # fmt: skip
        if "probabilities" in found:
            worst = max(worst, float(np.abs(found["probabilities"] - want).max()))
            if _labels_differ(model, found["label"], want):
                return float("inf")
        else:
            off = np.abs(found["prediction"] - want[:, 0]).max()
            worst = max(worst, float(off) / _deviation(model))
    return worst if np.isfinite(worst) else float("inf")


def session(path: str | os.PathLike[str]) -> Any:
    """The file in onnxruntime, on as many threads as torch has here."""
    onnxruntime, torch = import_module("onnxruntime"), import_module("torch")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(os.fspath(path), options, providers=providers)


def made_up_rows(model: CIDAEstimator | TableModel, rows: int, seed: int) -> Rows:
    """Rows about those that the model was fitted on, with holes and new categories, for the file.

    The index is of values seen in training.
    """
    generator = np.random.default_rng(seed)
    inputs = inputs_of(model)
    if isinstance(model, CIDAEstimator):
        found = {"X": made_up_x(model, rows, generator)}
        if len(inputs) > 1:
            found["u"] = _seen(model, rows, generator)
        return found
    columns = inputs[: -len(model.index)]
    known = {column.name: column for column in model.schema.columns}
    found = {one.name: _cells(one, known, model, rows, generator) for one in columns}
    u = _seen(model.estimators[0], rows, generator)
    return found | {one.name: u[:, k] for k, one in enumerate(inputs[len(columns) :])}


def predictions(model: CIDAEstimator | TableModel, rows: Rows) -> Array:
    """What Python predicts for rows of the file: probabilities, or numbers as one column."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        if isinstance(model, CIDAClassifier):
            return model.predict_proba(rows["X"], domain_index=rows.get("u"))
        if isinstance(model, CIDAEstimator):
            return model.predict(rows["X"], domain_index=rows.get("u"))[:, None]
    x, u = _read(model, inputs_of(model), rows)
    return model.predict(x, u)


def _seen(model: CIDAEstimator, rows: int, generator: np.random.Generator) -> Array:
    seen = model._seen.numpy()
    return np.stack([generator.choice(column, rows) for column in seen.T], axis=1).astype(float)


def _cells(
    one: Input, known: Any, model: TableModel, rows: int, generator: np.random.Generator
) -> Array:
    if one.kind == "rows":
        centre, scale = model.x_scaling
        return (centre + scale * generator.normal(size=(rows, *one.shape))).astype(np.float32)
    missing = generator.random(rows) < MISSING
    if one.kind == "category":
        texts = np.array([*one.categories, NEW], dtype=object)
        return np.where(missing, "", generator.choice(texts, rows))
    column = known[one.column]
    values = column.centre + column.scale * generator.normal(size=rows)
    if one.kind == "boolean":
        values = generator.integers(0, 2, rows).astype(float)
    if one.kind == "date":
        values = np.round(values * DAY_MICROSECONDS) / DAY_MICROSECONDS
    return np.where(missing, np.nan, values)


def _read(model: TableModel, inputs: Sequence[Input], rows: Rows) -> tuple[Array, Array]:
    """Inputs and index as `TableModel` reads them from a table with these cells."""
    pa = import_module("pyarrow")
    cells = {one.column: _arrow(pa, one, rows[one.name]) for one in inputs if one.kind != "rows"}
    x, u = model.read(pa.record_batch(cells))
    return (model.scaled(rows["X"]) if len(model.shape) > 1 else x), u


def _arrow(pa: Any, one: Input, values: Array) -> Any:
    if one.kind == "category":
        return pa.array([text or None for text in values], pa.string())
    if one.kind == "boolean":
        return pa.array([None if np.isnan(value) else bool(value) for value in values], pa.bool_())
    if one.kind in ("date", "index date"):
        whole = np.round(np.nan_to_num(values) * DAY_MICROSECONDS).astype("datetime64[us]")
        return pa.array(whole, mask=np.isnan(values))
    return pa.array(values, from_pandas=True)


def _labels_differ(model: CIDAEstimator | TableModel, labels: Array, want: Array) -> bool:
    classes: Any = model.classes_ if isinstance(model, CIDAClassifier) else model.classes
    ordered = np.sort(want, axis=1)
    sure = ordered[:, -1] - ordered[:, -2] > SURE
    pairs = zip(labels[sure], want.argmax(1)[sure], strict=True)
    return any(str(label) != str(classes[code]) for label, code in pairs)


def _deviation(model: Any) -> float:
    return float(model._y_scale if isinstance(model, CIDAEstimator) else model.scale) or 1.0
