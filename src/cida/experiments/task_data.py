"""What the data of tasks share: fingerprints, scores by bin, rows to show; and synthetic data."""

from __future__ import annotations

import hashlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.metrics import r2_score
from torch import Tensor

from cida.data import IndexedDataset
from cida.datasets import IndexedData
from cida.dependence import distance_correlation
from cida.estimators import CIDAClassifier, CidaWarning
from cida.experiments.display_rows import DisplayRows
from cida.indexing import evenly_spaced
from cida.label_shift import measure_label_shift
from cida.metrics import BinScore, accuracy, score_by_bin
from cida.runs.snapshot import MAX_SNAPSHOT_ROWS
from cida.selection.expected_score import ExpectedScore
from cida.spaces import Space, make_line_space

N_EXPECTED_SCORE_BINS = 20  # along u
N_SYNTHETIC_BINS = 20
MAX_DEPENDENCE_ROWS = 2000  # distances between all of them are taken
PREDICTION_CHUNK_ROWS = 4096


def bin_score_to_dict(score: BinScore) -> dict[str, Any]:
    """A bin's accuracy, as results.json has it."""
    return {"lo": score.lo, "hi": score.hi, "score": score.score, "n": score.n}


def score_predictions(
    space: Space,
    u: Tensor,
    source: np.ndarray,
    truth: np.ndarray,
    predicted: np.ndarray,
    n_bins: int,
    metric: Any,
) -> dict[str, Any]:
    """The scores of a `RunResult`: of the source rows, the others, all of them, and along u."""
    cells = score_by_bin(space, u, truth, predicted, n_bins, metric)
    return {
        "source_score": float(metric(truth[source], predicted[source])),
        "target_score": float(metric(truth[~source], predicted[~source])),
        "all_score": float(metric(truth, predicted)),
        "by_index": [bin_score_to_dict(cell) for cell in cells],
    }


def hash_arrays(*arrays: np.ndarray) -> str:
    """A short hash of the data's bytes: equal for equal data."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def predict_rows(model: CIDAClassifier, dataset: IndexedDataset, rows: Tensor) -> np.ndarray:
    """The predictions for these rows, dealt in parts; who is far from the trained on is meant."""
    predictions = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        for part in torch.split(rows, PREDICTION_CHUNK_ROWS):
            batch = dataset[part]
            predictions.append(model.predict(batch.x.numpy(), domain_index=batch.u.numpy()))
    return np.concatenate(predictions)


@dataclass(frozen=True)
class ScoredRows:
    """Target rows with their truth, which serves for scoring alone."""

    x: np.ndarray
    y: np.ndarray
    u: np.ndarray


class DatasetTaskData(ABC):
    """Data that come as a dataset to train on."""

    @property
    def is_simulated(self) -> bool:
        """Whether it stands for real data that is not there."""
        return False

    @abstractmethod
    def training_dataset(self, oracle: bool = False) -> IndexedDataset:
        """What is trained on; an oracle has labels of the target too."""

    def train(self, model: Any, oracle: bool) -> None:
        """Fits the model."""
        model.fit_dataset(self.training_dataset(oracle))

    def expected_scores(self, model: Any) -> list[ExpectedScore]:
        """The accuracy to expect along u by a second training."""
        dataset, n_bins = self.training_dataset(), N_EXPECTED_SCORE_BINS
        return list(model.expected_dataset_score(dataset, n_bins))


def select_display_rows(data: IndexedData) -> DisplayRows:
    """Points of a world, evenly from all of it."""
    rows = evenly_spaced(len(data.u), MAX_SNAPSHOT_ROWS).numpy()
    width = _index_columns(data).shape[1]
    names = ("u",) if width == 1 else tuple(f"u{k + 1}" for k in range(width))
    return DisplayRows(data.x[rows], data.u[rows], data.source[rows], data.y[rows], names)


def measure_shift(space: Space, u: Tensor, source: np.ndarray, y: np.ndarray) -> tuple[float, bool]:
    """How far the balance of source labels moves along u, and whether that is suspicious."""
    shift = measure_label_shift(space.fit(u), u[source], torch.from_numpy(y[source]))
    return shift.shift, shift.is_suspected


@dataclass(frozen=True)
class SyntheticTaskData:
    """Synthetic data to train and to score on: labels of the target are there for scoring alone.

    ``fresh_data`` is a second draw of the same domains, to score on only. ``n_bins`` are along u.
    """

    data: IndexedData
    task: str = ""
    regression: bool = False
    fresh_data: IndexedData | None = None
    n_bins: int = N_SYNTHETIC_BINS

    is_simulated = False

    @property
    def name(self) -> str:
        return self.data.name

    def train(self, model: Any, oracle: bool) -> None:
        labels = self.data.y if oracle else self.data.training_labels
        model.fit(self.data.x, labels, domain_index=self.data.u)

    def evaluate(self, model: Any) -> dict[str, Any]:
        fresh = None if self.fresh_data is None else self._score(self.fresh_data, model)
        return {**self._score(self.data, model), "fresh": fresh, "task": self.task}

    def _score(self, data: IndexedData, model: Any) -> dict[str, Any]:
        predicted = model.predict(data.x, domain_index=data.u)
        metric: Callable[..., float] = r2_score if self.regression else accuracy
        u = _index_columns(data)
        space = make_line_space(u.shape[1]).fit(u)
        return score_predictions(space, u, data.source, data.y, predicted, self.n_bins, metric)

    def fingerprint(self) -> str:
        return hash_arrays(self.data.x, self.data.u, self.data.training_labels)

    def display_rows(self) -> DisplayRows:
        return select_display_rows(self.data)

    def expected_scores(self, model: CIDAClassifier) -> Sequence[ExpectedScore]:
        data = self.data
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CidaWarning)  # a report says which were not checked
            rows = (data.x, data.training_labels, data.u)
            return model.expected_score(*rows, n_bins=N_EXPECTED_SCORE_BINS)

    def summary(self, title: str) -> str:
        """How many rows there are, and whether the balance of labels moves along u."""
        source, u = self.data.source, _index_columns(self.data)
        shift, suspected = measure_shift(make_line_space(u.shape[1]), u, source, self.data.y)
        shift_text = "moves along u, which fit warns of" if suspected else "holds along u"
        return (
            f"{title}: {source.sum():,} source rows, {(~source).sum():,} target rows without "
            f"labels; the balance of source labels {shift_text} ({shift:.3f})."
        )


@dataclass(frozen=True)
class DependenceTaskData(SyntheticTaskData):
    """Synthetic data whose runs are also asked how much their encodings tell of u."""

    def evaluate(self, model: Any) -> dict[str, Any]:
        """Also the distance correlation, bias-corrected and squared, of the encoding and u."""
        rows = evenly_spaced(len(self.data.u), MAX_DEPENDENCE_ROWS).numpy()
        z = model.transform(self.data.x[rows], domain_index=self.data.u[rows])
        u = _index_columns(self.data)[rows].double()
        index = make_line_space(u.shape[1]).fit(u).embed(u)
        dependence = float(distance_correlation(torch.from_numpy(z).double(), index))
        return {**super().evaluate(model), "extra_metrics": {"left of u": dependence}}


def _index_columns(data: IndexedData) -> Tensor:
    return torch.from_numpy(data.u.reshape(len(data.u), -1))
