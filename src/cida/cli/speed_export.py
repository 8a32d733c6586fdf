"""``cida speed``: models in torch, and the ONNX files that ``cida export`` makes of them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cida.benchmarks.speed import Effort, Figure
from cida.benchmarks.speed_export import (
    BATCH,
    Ways,
    deployed_models,
    deployed_times,
    network_way,
    onnx_way,
    python_way,
)
from cida.estimators.base import CIDAEstimator
from cida.report.export import export_onnx
from cida.report.onnx_check import made_up_rows, session
from cida.report.onnx_inputs import Input, inputs_of
from cida.report.onnx_modules import EstimatorGraph, TableGraph

__all__ = ["export_figures"]

Array = np.ndarray[Any, Any]


def export_figures(effort: Effort) -> Iterator[Figure]:
    """Rows a second of each model as Python has it, as a bare torch module, as an ONNX file."""
    for name, made in deployed_models().items():
        for one in deployed_times(name, _ways(made())):
            beside = f"one row alone {one.p50_ms:.3f} ms, p95 {one.p95_ms:.3f} ms"
            yield Figure(one.name, one.rows_per_second, "rows/s", beside=beside)


def _ways(model: Any) -> Ways:
    rows = made_up_rows(model, BATCH, seed=100)
    graph = EstimatorGraph(model) if isinstance(model, CIDAEstimator) else TableGraph(model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        export_onnx(model, path)
        running = session(path)
    return {
        "Python": python_way(model, rows),
        "torch module": network_way(graph.eval(), _coded(rows, inputs_of(model))),
        "ONNX": onnx_way(running, rows),
    }


def _coded(rows: Mapping[str, Array], inputs: tuple[Input, ...]) -> dict[str, Array]:
    """Texts as the numbers of their categories, as the bare module takes them."""
    found = dict(rows)
    for one in inputs:
        if one.kind == "category":
            codes = {text: code for code, text in enumerate(one.categories, 1)}
            found[one.name] = np.array([codes.get(text, 0) for text in rows[one.name]])
    return found
