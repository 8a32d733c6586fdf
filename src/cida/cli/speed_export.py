"""``cida speed``: models in torch, and the ONNX files that ``cida export`` makes of them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cida.benchmarks.speed import Effort, Measurement
from cida.benchmarks.speed_export import (
    EXPORT_BATCH_ROWS,
    Predictors,
    build_models,
    measure_predictors,
    onnx_predictor,
    python_predictor,
    torch_predictor,
)
from cida.estimators.base import CIDAEstimator
from cida.export.onnx_check import make_synthetic_rows, open_session
from cida.export.onnx_export import export_onnx
from cida.export.onnx_graph import EstimatorGraph, TableGraph
from cida.export.signature import OnnxInput, build_onnx_inputs

__all__ = ["export_figures"]

Array = np.ndarray[Any, Any]


def export_figures(effort: Effort) -> Iterator[Measurement]:
    """Rows a second of each model as Python has it, as a bare torch module, as an ONNX file."""
    for name, made in build_models().items():
        for one in measure_predictors(name, _ways(made())):
            beside = f"one row alone {one.p50_ms:.3f} ms, p95 {one.p95_ms:.3f} ms"
            yield Measurement(one.name, one.rows_per_second, "rows/s", note=beside)


def _ways(model: Any) -> Predictors:
    rows = make_synthetic_rows(model, EXPORT_BATCH_ROWS, seed=100)
    graph = EstimatorGraph(model) if isinstance(model, CIDAEstimator) else TableGraph(model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        export_onnx(model, path)
        running = open_session(path)
    return {
        "Python": python_predictor(model, rows),
        "torch module": torch_predictor(graph.eval(), _coded(rows, build_onnx_inputs(model))),
        "ONNX": onnx_predictor(running, rows),
    }


def _coded(rows: Mapping[str, Array], inputs: tuple[OnnxInput, ...]) -> dict[str, Array]:
    """Texts as the numbers of their categories, as the bare module takes them."""
    found = dict(rows)
    for one in inputs:
        if one.kind == "category":
            codes = {text: code for code, text in enumerate(one.categories, 1)}
            found[one.name] = np.array([codes.get(text, 0) for text in rows[one.name]])
    return found
