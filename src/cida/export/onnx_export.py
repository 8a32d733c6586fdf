"""A fitted model as one ONNX file: raw columns and the index in, labels out."""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from cida.array_types import Array
from cida.errors import error_summary
from cida.estimators.base import CIDAEstimator
from cida.estimators.fitted_state import FittedState
from cida.export.onnx_check import make_synthetic_rows, max_prediction_difference
from cida.export.onnx_graph import EstimatorGraph, TableGraph
from cida.export.signature import OUTPUTS, OnnxInput, build_onnx_inputs, indexed_table
from cida.io.files import atomic_replace
from cida.version import __version__

OnnxModel = Any  # onnx.ModelProto: the package is there for those who ask for it

ONNX_OPSET, ONNX_ML_OPSET = 20, 3
METADATA_KEY = "cida"  # under which the file says what its inputs are
MAX_PREDICTION_DIFFERENCE = 1e-4  # to torch's prediction: far more than rounding
N_EXAMPLE_ROWS = 3  # to trace with: neither 0 nor 1, which torch takes for constants


class ExportError(FloatingPointError):
    """A file that does not predict what the model predicts; it was not kept."""


def export_onnx(
    model: CIDAEstimator, path: str | os.PathLike[str], check: bool = True
) -> float | None:
    """Writes encoder and predictor, with all that comes before and after them, to an ONNX file.

    A table's model has an input for each of its columns, an estimator X; then comes the index in
    the user's own units. The number of rows is free. A classifier gives ``probabilities`` and
    ``label``, a regression ``prediction`` (and ``deviation`` if its encoder is probabilistic).
    Returns the largest difference between the file's predictions and the model's own on made-up
    rows; above 1e-4 no file is left. Without ``check`` nothing is compared.
    """
    check_onnx_installed("onnx", "onnxscript", *(["onnxruntime"] if check else []))
    check_is_fitted(model)
    state = model.state_
    inputs, classes = build_onnx_inputs(state), getattr(state.labels, "classes", None)
    rows = make_synthetic_rows(model, N_EXAMPLE_ROWS, seed=0)
    no_codes = np.zeros(N_EXAMPLE_ROWS, dtype=np.int64)
    arrays = [no_codes if one.kind == "category" else rows[one.name] for one in inputs]
    examples = [torch.from_numpy(np.ascontiguousarray(array)) for array in arrays]
    graph_class = EstimatorGraph if indexed_table(state) is None else TableGraph
    onnx_model = _trace(graph_class(state, model.n_draws), examples)
    _finalize_graph(onnx_model, inputs, classes)
    _add_metadata(onnx_model, state, inputs, classes)
    with atomic_replace(path) as temp_path:
        temp_path.write_bytes(onnx_model.SerializeToString())
        difference = _compare(model, temp_path) if check else None
        if difference is not None and not difference <= MAX_PREDICTION_DIFFERENCE:
            raise ExportError(
                f"the ONNX file's predictions differ from the model's by up to {difference:.2g}, "
                f"where {MAX_PREDICTION_DIFFERENCE:g} is the most, so {os.fspath(path)} was not "
                "kept; deploy the folder instead (--folder)."
            )
    return difference


def _compare(model: CIDAEstimator, path: Path) -> float:
    try:
        return max_prediction_difference(model, path)
    except Exception as error:  # onnxruntime has no common class for what it cannot run
        raise ExportError(
            f"the ONNX file does not run ({error_summary(error)}), so it was not kept; deploy the "
            "folder instead (--folder)."
        ) from error


def check_onnx_installed(*packages: str) -> None:
    """Refuses, in one sentence, where a package of the extra ``onnx`` is missing."""
    missing = next((package for package in packages if find_spec(package) is None), None)
    if missing is not None:
        raise ImportError(
            f'ONNX files need {missing}, which is not installed; pip install "cida[onnx]".'
        )


def _trace(graph: EstimatorGraph, examples: list[Tensor]) -> OnnxModel:
    """The torch module as an ONNX model, its inputs named in.0, in.1, ... and its outputs out.0."""
    rows = torch.export.Dim("rows", min=1)
    with torch.no_grad(), _silence_torch_onnx():
        outputs = len(graph.eval()(examples))
        try:
            program = torch.onnx.export(
                graph,
                (examples,),
                dynamo=True,
                dynamic_shapes=([{0: rows} for _ in examples],),
                input_names=[f"in.{k}" for k in range(len(examples))],
                output_names=[f"out.{k}" for k in range(outputs)],
                opset_version=ONNX_OPSET,
                verbose=False,
            )
        except Exception as error:  # torch has no common class for what it cannot trace
            cause = error_summary(error.__cause__ or error)
            raise ValueError(
                f"the model has an operation that ONNX has not ({cause}); replace it in the "
                "encoder or predictor, or deploy the folder (--folder)."
            ) from error
    assert program is not None
    return program.model_proto


def _finalize_graph(model: OnnxModel, inputs: Sequence[OnnxInput], classes: Array | None) -> None:
    """Names of the user's own, texts to codes before the network, codes to classes after it."""
    onnx = import_module("onnx")
    graph, names = model.graph, OUTPUTS["regressor" if classes is None else "classifier"]
    outputs = [output.name for output in graph.output]
    new_names = {f"in.{k}": one.name for k, one in enumerate(inputs) if one.kind != "category"}
    new_names |= dict(zip(outputs, names, strict=False))
    if classes is not None:
        new_names[outputs[1]] = "cida.class"
    _rename_values(graph, new_names, reserved={one.name for one in inputs} | set(names))
    for k, one in enumerate(inputs):
        if one.kind == "category":
            _insert_label_encoder(onnx, graph, f"in.{k}", one)
    if classes is not None:
        _insert_class_lookup(onnx, graph, classes)
    domains = {"", *(node.domain for node in graph.node)} - {"ai.onnx.ml"}
    opsets = [opset for opset in model.opset_import if opset.domain in domains]
    del model.opset_import[:]
    model.opset_import.extend([*opsets, onnx.helper.make_opsetid("ai.onnx.ml", ONNX_ML_OPSET)])


def _rename_values(graph: Any, new_names: dict[str, str], reserved: set[str]) -> None:
    """Values by their new names; those of torch's own that a new name has make room for it."""

    def new_name(name: str) -> str:
        if name in new_names:
            return new_names[name]
        while name in reserved:
            name = f"cida.{name}"
        return name

    for node in graph.node:
        node.input[:] = [new_name(name) for name in node.input]
        node.output[:] = [new_name(name) for name in node.output]
    for part in (graph.input, graph.output, graph.initializer, graph.value_info):
        for value in part:
            value.name = new_name(value.name)


def _insert_label_encoder(onnx: Any, graph: Any, code: str, spec: OnnxInput) -> None:
    """A text input in the place of one of codes: 0 for what is missing, rare or new."""
    position = next(k for k, value in enumerate(graph.input) if value.name == code)
    text = onnx.helper.make_tensor_value_info(spec.name, onnx.TensorProto.STRING, ["rows"])
    node = onnx.helper.make_node(
        "LabelEncoder",
        [spec.name],
        [code],
        domain="ai.onnx.ml",
        keys_strings=list(spec.categories),
        values_int64s=list(range(1, len(spec.categories) + 1)),
        default_int64=0,
    )
    graph.input[position].CopyFrom(text)
    graph.node.insert(0, node)


def _insert_class_lookup(onnx: Any, graph: Any, classes: Array) -> None:
    """The class itself for its number."""
    if classes.dtype.kind in "OUS":
        values: Any = [str(name).encode() for name in classes]
        kind = onnx.TensorProto.STRING
    else:
        values = classes.astype({"b": bool, "f": np.float64}.get(classes.dtype.kind, np.int64))
        kind = onnx.helper.np_dtype_to_tensor_dtype(values.dtype)
    name = "cida.classes"
    graph.initializer.append(onnx.helper.make_tensor(name, kind, [len(classes)], values))
    graph.node.append(onnx.helper.make_node("Gather", [name, "cida.class"], ["label"]))
    position = next(k for k, value in enumerate(graph.output) if value.name == "cida.class")
    graph.output[position].CopyFrom(onnx.helper.make_tensor_value_info("label", kind, ["rows"]))


def _add_metadata(
    model: OnnxModel, state: FittedState, inputs: Sequence[OnnxInput], classes: Array | None
) -> None:
    """What a reader of the file should know, as JSON in its metadata."""
    metadata: dict[str, Any] = {
        "cida": __version__,
        "inputs": [one.to_dict() for one in inputs],
        "classes": None if classes is None else classes.tolist(),
    }
    if state.table is not None:
        metadata |= {"label": state.table.label, "index": state.table.index}
    else:
        metadata |= {"features": state.feature_names, "index": state.index_names}
    props = {METADATA_KEY: json.dumps(metadata)}
    import_module("onnx").helper.set_model_props(model, props)
    model.producer_name, model.producer_version = "cida", __version__


@contextmanager
def _silence_torch_onnx() -> Iterator[None]:
    """Without torch's notes on packages of its own that are not there."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    with warnings.catch_warnings(action="ignore"):
        try:
            yield
        finally:
            logger.setLevel(level)
