"""A fitted model as one ONNX file: raw columns and the index in, labels out."""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from cida.estimators.base import CIDAEstimator
from cida.estimators.classifier import CIDAClassifier
from cida.files import replacing
from cida.report.onnx_check import largest_difference
from cida.report.onnx_inputs import CLASSES, NUMBERS, Input, inputs_of
from cida.report.onnx_modules import EstimatorGraph, Graph, TableGraph, example_u, example_x
from cida.version import __version__
from cida.words import one_line

if TYPE_CHECKING:  # it needs pyarrow, and estimators are exported without
    from cida.estimators.table import TableModel

__all__ = ["MOST", "ExportError", "export_onnx", "need_onnx"]

Array = np.ndarray[Any, Any]
Model = Any  # onnx.ModelProto: the package is there for those who ask for it

OPSET, ML_OPSET = 20, 3
METADATA = "cida"  # under which the file says what its inputs are
MOST = 1e-4  # by which a prediction may differ from torch's: far more than rounding


class ExportError(FloatingPointError):
    """A file that does not predict what the model predicts; it was not kept."""


def export_onnx(
    model: CIDAEstimator | TableModel, path: str | os.PathLike[str], check: bool = True
) -> float | None:
    """Writes encoder and predictor, with all that comes before and after them, to an ONNX file.

    A table's model has an input for each of its columns, an estimator X; then comes the index in
    the user's own units. The number of rows is free. A classifier gives ``probabilities`` and
    ``label``, a regression ``prediction`` (and ``deviation`` if its encoder is probabilistic).
    Returns the largest difference between the file's predictions and the model's own on made-up
    rows; above 1e-4 no file is left. Without ``check`` nothing is compared.
    """
    need_onnx("onnx", "onnxscript", *(["onnxruntime"] if check else []))
    inputs = inputs_of(model)
    if isinstance(model, CIDAEstimator):
        graph: Graph = EstimatorGraph(model)
        examples = [example_x(model), *([example_u(model)] if model.index_width_ else [])]
    else:
        graph = TableGraph(model)
        examples = _table_examples(model, inputs)
    made = _traced(graph, examples)
    _finish(made, inputs, _classes(model))
    _describe(made, model, inputs)
    with replacing(path) as room:
        room.write_bytes(made.SerializeToString())
        found = _compared(model, room) if check else None
        if found is not None and not found <= MOST:
            raise ExportError(
                f"the ONNX file's predictions differ from the model's by up to {found:.2g}, where "
                f"{MOST:g} is the most, so {os.fspath(path)} was not kept; deploy the folder "
                "instead (--folder)."
            )
    return found


def _compared(model: CIDAEstimator | TableModel, path: Path) -> float:
    try:
        return largest_difference(model, path)
    except Exception as error:  # onnxruntime has no common class for what it cannot run
        raise ExportError(
            f"the ONNX file does not run ({one_line(error)}), so it was not kept; deploy the "
            "folder instead (--folder)."
        ) from error


def need_onnx(*packages: str) -> None:
    """Refuses, in one sentence, where a package of the extra ``onnx`` is missing."""
    missing = next((package for package in packages if find_spec(package) is None), None)
    if missing is not None:
        raise ImportError(
            f'ONNX files need {missing}, which is not installed; pip install "cida[onnx]".'
        )


def _table_examples(model: TableModel, inputs: Sequence[Input]) -> list[Tensor]:
    u = example_u(model.estimators[0])
    examples: list[Tensor] = []
    for one in inputs[: -len(model.index)]:
        kind = {"float": torch.float32, "double": torch.float64, "string": torch.int64}[one.dtype]
        examples.append(torch.zeros(len(u), *one.shape, dtype=kind))
    return [*examples, *u.unbind(1)]


def _classes(model: CIDAEstimator | TableModel) -> Array | None:
    if isinstance(model, CIDAEstimator):
        return model.classes_ if isinstance(model, CIDAClassifier) else None
    return None if model.classes is None else np.array(model.classes, dtype=object)


# --- the graph -----------------------------------------------------------------------------------


def _traced(graph: Graph, examples: list[Tensor]) -> Model:
    """The torch module as an ONNX model, its inputs named in.0, in.1, ... and its outputs out.0."""
    rows = torch.export.Dim("rows", min=1)
    with torch.no_grad(), _quietly():
        outputs = len(graph.eval()(examples))
        try:
            program = torch.onnx.export(
                graph,
                (examples,),
                dynamo=True,
                dynamic_shapes=([{0: rows} for _ in examples],),
                input_names=[f"in.{k}" for k in range(len(examples))],
                output_names=[f"out.{k}" for k in range(outputs)],
                opset_version=OPSET,
                verbose=False,
            )
        except Exception as error:  # torch has no common class for what it cannot trace
            told = one_line(error.__cause__ or error)
            raise ValueError(
                f"the model has an operation that ONNX has not ({told}); replace it in the "
                "encoder or predictor, or deploy the folder (--folder)."
            ) from error
    assert program is not None
    return program.model_proto


def _finish(model: Model, inputs: Sequence[Input], classes: Array | None) -> None:
    """Names of the user's own, texts to codes before the network, codes to classes after it."""
    onnx = import_module("onnx")
    graph, names = model.graph, CLASSES if classes is not None else NUMBERS
    outputs = [output.name for output in graph.output]
    wanted = {f"in.{k}": one.name for k, one in enumerate(inputs) if one.kind != "category"}
    wanted |= dict(zip(outputs, names, strict=False))
    if classes is not None:
        wanted[outputs[1]] = "cida.class"
    _rename(graph, wanted, taken={one.name for one in inputs} | set(names))
    for k, one in enumerate(inputs):
        if one.kind == "category":
            _read_texts(onnx, graph, f"in.{k}", one)
    if classes is not None:
        _write_classes(onnx, graph, classes)
    used = {node.domain for node in graph.node}
    kept = [opset for opset in model.opset_import if opset.domain in (*used, "")]
    kept = [opset for opset in kept if opset.domain != "ai.onnx.ml"]
    del model.opset_import[:]
    model.opset_import.extend([*kept, onnx.helper.make_opsetid("ai.onnx.ml", ML_OPSET)])


def _rename(graph: Any, wanted: Mapping[str, str], taken: set[str]) -> None:
    """Values by their new names; those of torch's own that a new name has make room for it."""

    def named(name: str) -> str:
        if name in wanted:
            return wanted[name]
        while name in taken:
            name = f"cida.{name}"
        return name

    for node in graph.node:
        node.input[:] = [named(name) for name in node.input]
        node.output[:] = [named(name) for name in node.output]
    for part in (graph.input, graph.output, graph.initializer, graph.value_info):
        for value in part:
            value.name = named(value.name)


def _read_texts(onnx: Any, graph: Any, code: str, one: Input) -> None:
    """A text input in the place of one of codes: 0 for what is missing, rare or new."""
    place = next(k for k, value in enumerate(graph.input) if value.name == code)
    text = onnx.helper.make_tensor_value_info(one.name, onnx.TensorProto.STRING, ["rows"])
    node = onnx.helper.make_node(
        "LabelEncoder",
        [one.name],
        [code],
        domain="ai.onnx.ml",
        keys_strings=list(one.categories),
        values_int64s=list(range(1, len(one.categories) + 1)),
        default_int64=0,
    )
    graph.input[place].CopyFrom(text)
    graph.node.insert(0, node)


def _write_classes(onnx: Any, graph: Any, classes: Array) -> None:
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
    place = next(k for k, value in enumerate(graph.output) if value.name == "cida.class")
    graph.output[place].CopyFrom(onnx.helper.make_tensor_value_info("label", kind, ["rows"]))


def _describe(model: Model, of: CIDAEstimator | TableModel, inputs: Sequence[Input]) -> None:
    """What a reader of the file should know, as JSON in its metadata."""
    onnx = import_module("onnx")
    classes = _classes(of)
    words: dict[str, Any] = {
        "cida": __version__,
        "inputs": [one.words() for one in inputs],
        "classes": None if classes is None else classes.tolist(),
    }
    if isinstance(of, CIDAEstimator):
        names = getattr(of, "feature_names_in_", None)
        words["features"] = None if names is None else [str(name) for name in names]
        words["index"] = of._index_names
    else:
        words |= {"label": of.label, "index": list(of.index)}
    onnx.helper.set_model_props(model, {METADATA: json.dumps(words)})
    model.producer_name, model.producer_version = "cida", __version__


@contextmanager
def _quietly() -> Iterator[None]:
    """Without torch's notes on packages of its own that are not there."""
    loud = logging.getLogger("torch.onnx")
    level = loud.level
    loud.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        loud.setLevel(level)
