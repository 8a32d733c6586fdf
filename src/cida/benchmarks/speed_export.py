"""How long a deployed model takes: one row at a time, and many at once, in torch and in ONNX."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from cida.benchmarks.networks import ImageNetworks, SignalNetworks
from cida.estimators import CIDAClassifier, CidaWarning
from cida.estimators.table import TableModel, hold_out, read_rows
from cida.estimators.table_predictor import TablePredictor
from cida.networks import Convolution
from cida.space import Line, Periodic, Space
from cida.tables import Question, open_table, read_table, writing

__all__ = [
    "BATCH",
    "DeployedTime",
    "Ways",
    "deployed_models",
    "deployed_times",
    "network_way",
    "onnx_way",
    "python_way",
]

Array = np.ndarray[Any, Any]
Ways = Mapping[str, Callable[[int], object]]  # each predicts its first so many rows

BATCH = 4096
ROUNDS = 5
SINGLE_ROWS = 40  # of a round
TRAINED_ON = 400  # rows; weights hardly matter to the time that they take
SEED = 100
# Those of `cida reproduce rotating-digits` and `sleep-intra`.
DIGITS = ImageNetworks(12, (Convolution(16), Convolution(32, pool=2), Convolution(64, pool=2)))
SIGNALS = SignalNetworks(1 / 16, follow=True)
SAMPLES = 300  # 30 s at 10 Hz


@dataclass(frozen=True)
class DeployedTime:
    """Milliseconds of one row, the median and the slowest of twenty, and rows a second at once."""

    name: str
    p50_ms: float
    p95_ms: float
    rows_per_second: float


def deployed_times(name: str, ways: Ways, rounds: int = ROUNDS) -> list[DeployedTime]:
    """Each way's times over interleaved rounds: a slow moment of the machine hits all alike."""
    single: dict[str, list[float]] = {way: [] for way in ways}
    many: dict[str, list[float]] = {way: [] for way in ways}
    for predict in ways.values():  # what is made at the first call is not part of the others
        predict(1)
        predict(BATCH)
    for _ in range(rounds):
        for way, predict in ways.items():
            single[way] += [_seconds(predict, 1) for _ in range(SINGLE_ROWS)]
            many[way].append(_seconds(predict, BATCH))
    return [
        DeployedTime(
            f"{name}, {way}",
            1000 * median(single[way]),
            1000 * float(np.quantile(single[way], 0.95)),
            BATCH / median(many[way]),
        )
        for way in ways
    ]


def _seconds(predict: Callable[[int], object], rows: int) -> float:
    started = time.perf_counter()
    predict(rows)
    return time.perf_counter() - started


def deployed_models() -> dict[str, Callable[[], Any]]:
    """A table's model, one of digits and one of signals, after a step or two of training."""
    rng = np.random.default_rng(SEED)
    images = rng.uniform(size=(TRAINED_ON, 1, DIGITS.size, DIGITS.size))
    signals = rng.normal(size=(TRAINED_ON, 1, SAMPLES))
    return {
        "table of 10 columns": lambda: _table_model(rng),
        "digits of 12 x 12": lambda: _estimator(images, Periodic(360), DIGITS, rng),
        "signals of 300 samples": lambda: _estimator(signals, Line(), SIGNALS, rng),
    }


def python_way(model: Any, rows: Mapping[str, Array]) -> Callable[[int], object]:
    """What a user calls, with all that it checks."""
    if isinstance(model, TableModel):
        predictor = TablePredictor(model)
        return lambda count: predictor.predict_proba({k: v[:count] for k, v in rows.items()})
    return lambda count: model.predict_proba(rows["X"][:count], domain_index=rows["u"][:count])


def network_way(graph: torch.nn.Module, rows: Mapping[str, Array]) -> Callable[[int], object]:
    """The bare torch module that is in the file, from numbers and codes."""
    tensors = [torch.from_numpy(np.ascontiguousarray(values)) for values in rows.values()]

    @torch.inference_mode()
    def predict(count: int) -> object:
        return graph([tensor[:count] for tensor in tensors])

    return predict


def onnx_way(session: Any, rows: Mapping[str, Array]) -> Callable[[int], object]:
    """The file in onnxruntime."""
    return lambda count: session.run(None, {name: v[:count] for name, v in rows.items()})


def _estimator(x: Array, space: Space, networks: Any, rng: np.random.Generator) -> CIDAClassifier:
    u = rng.uniform(0, 360, len(x))
    y = np.where(u > 180, -1, rng.integers(0, 10, len(x)))
    model = CIDAClassifier(
        encoder=networks.encoder(space, SEED),
        space=space,
        index_in_encoder=True,
        steps=1,
        random_state=SEED,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        return model.fit(x.astype(np.float32), y, domain_index=u)


def _table_model(rng: np.random.Generator) -> TableModel:
    u = rng.uniform(0, 100, TRAINED_ON)
    numbers = rng.normal(size=(TRAINED_ON, 7))
    y = np.where(numbers[:, 0] > 0, "yes", "no").astype(object)
    columns: dict[str, Any] = {"u": u, "y": np.where(u > 50, "", y)}
    columns |= {f"x{k}": column for k, column in enumerate(numbers.T)}
    columns["x0"] = np.where(rng.random(TRAINED_ON) < 0.1, np.nan, columns["x0"])
    columns |= {name: rng.choice(["a", "b", "c"], TRAINED_ON) for name in ("kind", "place")}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with writing(folder / "table.parquet") as write:
            write(columns)
        data = read_table(open_table(folder / "table.parquet"), Question("y", ("u",)))
        x = np.array(read_rows(data, folder / "rows"))
    settings = {"discriminator": "histogram", "steps": 2}
    return TableModel.fit(data, x, hold_out(data, SEED), settings, (SEED,), _unwatched)


class _Unwatched:
    def __enter__(self) -> tuple[()]:
        return ()

    def __exit__(self, *error: object) -> None:
        return None


def _unwatched(seed: int) -> Any:
    return _Unwatched()
