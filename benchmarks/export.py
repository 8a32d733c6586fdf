"""How long a deployed model takes: one row at a time, and many at once, in torch and in ONNX."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from benchmarks.measure import Effort, Measurement
from cida.array_types import Array
from cida.estimators import CIDAClassifier, CidaWarning
from cida.experiments.rotating_mnist.rotating_tasks import ImageNetworks
from cida.experiments.sleep.sleep_tasks import SignalNetworks
from cida.export.onnx_check import make_synthetic_rows, open_session
from cida.export.onnx_export import export_onnx
from cida.export.onnx_graph import EstimatorGraph, TableGraph
from cida.export.signature import OnnxInput, build_onnx_inputs
from cida.networks import Convolution
from cida.spaces import Line, Periodic, Space

__all__ = [
    "EXPORT_BATCH_ROWS",
    "PredictorTime",
    "Predictors",
    "build_models",
    "build_predictors",
    "export_figures",
    "measure_predictors",
    "onnx_predictor",
    "python_predictor",
    "torch_predictor",
]

Predictors = Mapping[str, Callable[[int], object]]  # each predicts its first so many rows

EXPORT_BATCH_ROWS = 4096
N_EXPORT_ROUNDS = 5
SINGLE_ROW_CALLS_PER_ROUND = 40  # of a round
N_TRAINING_ROWS = 400  # rows; weights hardly matter to the time that they take
EXPORT_SEED = 100
# Those of `cida reproduce rotating-digits` and `sleep-intra`.
EXPORT_DIGIT_NETWORKS = ImageNetworks(
    12, (Convolution(16), Convolution(32, pool=2), Convolution(64, pool=2))
)
EXPORT_SIGNAL_NETWORKS = SignalNetworks(1 / 16, norm_follows_index=True)
SAMPLES_PER_SIGNAL = 300  # 30 s at 10 Hz


@dataclass(frozen=True)
class PredictorTime:
    """Milliseconds of one row, the median and the slowest of twenty, and rows a second at once."""

    name: str
    p50_ms: float
    p95_ms: float
    rows_per_second: float


def export_figures(effort: Effort) -> Iterator[Measurement]:
    """Rows a second of each model as Python has it, as a bare torch module, as an ONNX file."""
    for name, made in build_models().items():
        for one in measure_predictors(name, build_predictors(made())):
            beside = f"one row alone {one.p50_ms:.3f} ms, p95 {one.p95_ms:.3f} ms"
            yield Measurement(one.name, one.rows_per_second, "rows/s", note=beside)


def measure_predictors(
    name: str, predictors: Predictors, rounds: int = N_EXPORT_ROUNDS
) -> list[PredictorTime]:
    """Each way's times over interleaved rounds: a slow moment of the machine hits all alike."""
    single: dict[str, list[float]] = {predictor_name: [] for predictor_name in predictors}
    many: dict[str, list[float]] = {way: [] for way in predictors}
    for predict in predictors.values():  # what is made at the first call is not part of the others
        predict(1)
        predict(EXPORT_BATCH_ROWS)
    for _ in range(rounds):
        for way, predict in predictors.items():
            single[way] += [_seconds(predict, 1) for _ in range(SINGLE_ROW_CALLS_PER_ROUND)]
            many[way].append(_seconds(predict, EXPORT_BATCH_ROWS))
    return [
        PredictorTime(
            f"{name}, {way}",
            1000 * median(single[way]),
            1000 * float(np.quantile(single[way], 0.95)),
            EXPORT_BATCH_ROWS / median(many[way]),
        )
        for way in predictors
    ]


def _seconds(predict: Callable[[int], object], rows: int) -> float:
    started = time.perf_counter()
    predict(rows)
    return time.perf_counter() - started


def build_models() -> dict[str, Callable[[], Any]]:
    """A table's model, one of digits and one of signals, after a step or two of training."""
    rng = np.random.default_rng(EXPORT_SEED)
    images = rng.uniform(
        size=(N_TRAINING_ROWS, 1, EXPORT_DIGIT_NETWORKS.size, EXPORT_DIGIT_NETWORKS.size)
    )
    signals = rng.normal(size=(N_TRAINING_ROWS, 1, SAMPLES_PER_SIGNAL))
    return {
        "table of 10 columns": lambda: _table_model(rng),
        "digits of 12 x 12": lambda: _estimator(images, Periodic(360), EXPORT_DIGIT_NETWORKS, rng),
        "signals of 300 samples": lambda: _estimator(signals, Line(), EXPORT_SIGNAL_NETWORKS, rng),
    }


def build_predictors(model: Any) -> Predictors:
    """The model as Python has it, as a bare torch module, and as an ONNX file."""
    rows = make_synthetic_rows(model, EXPORT_BATCH_ROWS, seed=100)
    graph_class = EstimatorGraph if model.state_.table is None else TableGraph
    graph = graph_class(model.state_, model.n_draws)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        export_onnx(model, path)
        running = open_session(path)
    codes = _encode_categories(rows, build_onnx_inputs(model.state_))
    return {
        "Python": python_predictor(model, rows),
        "torch module": torch_predictor(graph.eval(), codes),
        "ONNX": onnx_predictor(running, rows),
    }


def _encode_categories(
    rows: Mapping[str, Array], inputs: tuple[OnnxInput, ...]
) -> dict[str, Array]:
    """Texts as the numbers of their categories, as the bare module takes them."""
    found = dict(rows)
    for one in inputs:
        if one.kind == "category":
            codes = {text: code for code, text in enumerate(one.categories, 1)}
            found[one.name] = np.array([codes.get(text, 0) for text in rows[one.name]])
    return found


def python_predictor(model: Any, rows: Mapping[str, Array]) -> Callable[[int], object]:
    """What a user calls, with all that it checks."""
    if model.state_.table is not None:
        return lambda count: model.predict_proba({k: v[:count] for k, v in rows.items()})
    return lambda count: model.predict_proba(rows["X"][:count], domain_index=rows["u"][:count])


def torch_predictor(graph: torch.nn.Module, rows: Mapping[str, Array]) -> Callable[[int], object]:
    """The bare torch module that is in the file, from numbers and codes."""
    tensors = [torch.from_numpy(np.ascontiguousarray(values)) for values in rows.values()]

    @torch.inference_mode()
    def predict(count: int) -> object:
        return graph([tensor[:count] for tensor in tensors])

    return predict


def onnx_predictor(session: Any, rows: Mapping[str, Array]) -> Callable[[int], object]:
    """The file in onnxruntime."""
    return lambda count: session.run(None, {name: v[:count] for name, v in rows.items()})


def _estimator(x: Array, space: Space, networks: Any, rng: np.random.Generator) -> CIDAClassifier:
    u = rng.uniform(0, 360, len(x))
    y = np.where(u > 180, -1, rng.integers(0, 10, len(x)))
    model = CIDAClassifier(
        encoder=networks.encoder(space, EXPORT_SEED),
        space=space,
        coordinates="learned",
        steps=1,
        random_state=EXPORT_SEED,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        return model.fit(x.astype(np.float32), y, domain_index=u)


def _table_model(rng: np.random.Generator) -> CIDAClassifier:
    u = rng.uniform(0, 100, N_TRAINING_ROWS)
    numbers = rng.normal(size=(N_TRAINING_ROWS, 7))
    y = np.where(numbers[:, 0] > 0, "yes", "no").astype(object)
    columns: dict[str, Any] = {"u": u, "y": np.where(u > 50, "", y)}
    columns |= {f"x{k}": column for k, column in enumerate(numbers.T)}
    columns["x0"] = np.where(rng.random(N_TRAINING_ROWS) < 0.1, np.nan, columns["x0"])
    columns |= {name: rng.choice(["a", "b", "c"], N_TRAINING_ROWS) for name in ("kind", "place")}
    model = CIDAClassifier("histogram", steps=2, random_state=EXPORT_SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        return model.fit(columns, "y", domain_index="u")
