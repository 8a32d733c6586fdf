"""What the data of tasks share: fingerprints, scores by bin, rows to show; and synthetic data."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.metrics import r2_score

from cida.datasets import IndexedData
from cida.dependence import distance_correlation
from cida.estimators import CIDAClassifier, CidaWarning
from cida.experiments.display_rows import DisplayRows
from cida.indexing import evenly_spaced
from cida.label_shift import measure_label_shift
from cida.metrics import BinScore, accuracy, score_by_bin
from cida.runs.snapshot import MAX_SNAPSHOT_ROWS
from cida.selection.expected_score import ExpectedScore
from cida.spaces import make_line_space

__all__ = [
    "N_EXPECTED_SCORE_BINS",
    "DependenceTaskData",
    "SyntheticTaskData",
    "bin_score_to_dict",
    "estimate_expected_scores",
    "hash_arrays",
    "select_display_rows",
]

Array = np.ndarray[Any, Any]

N_EXPECTED_SCORE_BINS = 20  # along u
N_SYNTHETIC_BINS = 20
MAX_DEPENDENCE_ROWS = 2000  # distances between all of them are taken


def bin_score_to_dict(score: BinScore) -> dict[str, Any]:
    """A bin's accuracy, as results.json has it."""
    return {"lo": score.lo, "hi": score.hi, "score": score.score, "n": score.n}


def hash_arrays(*arrays: Array) -> str:
    """A short hash of the data's bytes: equal for equal data."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def select_display_rows(data: IndexedData) -> DisplayRows:
    """Points of a world, evenly from all of it."""
    row_numbers = evenly_spaced(len(data.u), MAX_SNAPSHOT_ROWS).numpy()
    width = data.u.reshape(len(data.u), -1).shape[1]
    names = ("u",) if width == 1 else tuple(f"u{k + 1}" for k in range(width))
    return DisplayRows(
        data.x[row_numbers],
        data.u[row_numbers],
        data.source[row_numbers],
        data.y[row_numbers],
        names,
    )


def estimate_expected_scores(data: IndexedData, model: CIDAClassifier) -> list[ExpectedScore]:
    """What accuracy to expect along u; labels of the source alone are read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)  # a report says which cells were not checked
        labels = data.training_labels
        return model.expected_score(data.x, labels, data.u, n_bins=N_EXPECTED_SCORE_BINS)


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
        metric = r2_score if self.regression else accuracy
        u, source = _index_columns(data), data.source
        space = make_line_space(u.shape[1]).fit(u)
        cells = score_by_bin(space, u, data.y, predicted, self.n_bins, metric)
        return {
            "source_score": float(metric(data.y[source], predicted[source])),
            "target_score": float(metric(data.y[~source], predicted[~source])),
            "all_score": float(metric(data.y, predicted)),
            "by_index": [bin_score_to_dict(cell) for cell in cells],
        }

    def fingerprint(self) -> str:
        return hash_arrays(self.data.x, self.data.u, self.data.training_labels)

    def display_rows(self) -> DisplayRows:
        return select_display_rows(self.data)

    def expected_scores(self, model: Any) -> Sequence[ExpectedScore]:
        return estimate_expected_scores(self.data, model)

    def summary(self, title: str) -> str:
        """How many rows there are, and whether the balance of labels moves along u."""
        source, u = self.data.source, _index_columns(self.data)
        y = torch.from_numpy(self.data.y[source])
        shift = measure_label_shift(make_line_space(u.shape[1]).fit(u), u[source], y)
        shift_text = "moves along u, which fit warns of" if shift.is_suspected else "holds along u"
        return (
            f"{title}: {source.sum():,} source rows, {(~source).sum():,} target rows without "
            f"labels; the balance of source labels {shift_text} ({shift.shift:.3f})."
        )


@dataclass(frozen=True)
class DependenceTaskData(SyntheticTaskData):
    """Synthetic data whose runs are also asked how much their encodings tell of u."""

    def evaluate(self, model: Any) -> dict[str, Any]:
        dependence = {"left of u": self._index_dependence(model)}
        return {**super().evaluate(model), "extra_metrics": dependence}

    def _index_dependence(self, model: Any) -> float:
        """The distance correlation, bias-corrected and squared, of the encoding and u."""
        rows = evenly_spaced(len(self.data.u), MAX_DEPENDENCE_ROWS).numpy()
        z = model.transform(self.data.x[rows], domain_index=self.data.u[rows])
        u = _index_columns(self.data)[rows].double()
        index = make_line_space(u.shape[1]).fit(u).embed(u)
        return float(distance_correlation(torch.from_numpy(z).double(), index))


def _index_columns(data: IndexedData) -> torch.Tensor:
    return torch.from_numpy(data.u.reshape(len(data.u), -1))
