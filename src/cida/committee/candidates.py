"""The candidates: which models in which coordinates, and how one is tried and fitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import sklearn
import torch
from sklearn.base import clone
from sklearn.utils.metadata_routing import get_routing_for_object
from torch import Tensor, nn

from cida.array_types import Array
from cida.committee.members import CommitteeMember, FeatureMode, Features, NetworkModel
from cida.committee.models import fit_boosting, fit_linear
from cida.committee.trials import HiddenRange, checked_index_limits, row_losses
from cida.coordinates import can_use_moving_frame
from cida.data import IndexedDataset, RowLayout
from cida.spaces import Space
from cida.threads import single_threaded

__all__ = ["Candidate", "CandidateTask", "TriedCandidate", "default_candidates", "try_candidate"]

ModelKind = Literal["linear", "boosting", "network", "game", "custom"]
CHUNK_ROWS = 4096
# It alone takes more from the target's rows than their coordinates. Set on ten development tables.
GAME_PRIOR = 3.0
MODE_NAMES: dict[FeatureMode, str] = {
    "raw": "",
    "index": " with u as a feature",
    "centered": " centered along u",
    "windows": " in windows along u",
    "moving-frame": " in the moving frame",
    "principal-axes": " in the principal axes",
}


@dataclass(frozen=True)
class Candidate:
    """A model in its coordinates; ``estimator`` is a user's own."""

    name: str
    model: ModelKind
    mode: FeatureMode = "raw"
    estimator: Any = None

    @property
    def mixes_columns(self) -> bool:
        """Whether its coordinates turn columns into each other."""
        return self.mode in ("moving-frame", "principal-axes")

    @property
    def prior(self) -> float:
        """What it is worth before any trial, in proportion."""
        return GAME_PRIOR if self.model == "game" else 1.0

    @property
    def is_adaptive(self) -> bool:
        """Whether it uses unlabelled rows along the index."""
        return self.model == "game" or self.mode not in ("raw", "index")


@dataclass(frozen=True)
class CandidateTask:
    """All that a candidate is fitted to; rows are in their random order.

    ``fit_network`` trains the network of a plan on some rows: it is the estimators' part.
    """

    dataset: IndexedDataset
    layout: RowLayout
    space: Space
    n_outputs: int
    ranges: tuple[HiddenRange, ...]
    fit_network: Callable[[ModelKind, Tensor], NetworkModel]


@dataclass(frozen=True)
class TriedCandidate:
    """A candidate that was fitted: its module, and its outputs and losses on each hidden range."""

    candidate: Candidate
    module: nn.Module
    outputs: tuple[Array, ...]
    losses: tuple[Array, ...]


class EstimatorModel(nn.Module):
    """A user's own scikit-learn estimator as a module; no file can hold it."""

    def __init__(self, estimator: Any, n_columns: int, n_outputs: int) -> None:
        super().__init__()
        self.estimator, self.n_columns, self.n_outputs = estimator, n_columns, n_outputs

    def forward(self, columns: Tensor) -> Tensor:
        x, index = np.split(columns.double().numpy(), [self.n_columns], axis=1)
        with sklearn.config_context(enable_metadata_routing=True):
            method = "predict" if self.n_outputs == 1 else "predict_proba"
            routed = {"domain_index": index} if takes_index(self.estimator, method) else {}
            predicted = np.asarray(getattr(self.estimator, method)(x, **routed), dtype=np.float64)
        if self.n_outputs == 1:
            return torch.from_numpy(predicted.reshape(-1, 1))
        probability = np.zeros((len(x), self.n_outputs))
        probability[:, self.estimator.classes_] = predicted
        return torch.from_numpy(probability.clip(1e-12)).log()


def takes_index(estimator: Any, method: str) -> bool:
    """Whether an estimator asks for ``domain_index`` in a method."""
    return bool(get_routing_for_object(estimator).consumes(method, ["domain_index"]))


def default_candidates(layout: RowLayout, space: Space, has_target: bool) -> list[Candidate]:
    """Linear and boosted models in all coordinates that there are, and networks.

    Those that a budget should keep come first.
    """
    modes: list[FeatureMode] = ["raw"]
    if layout.has_index:
        modes.append("index")
        if has_target and layout.n_numbers:
            modes += ["centered", "windows"]
    kinds: tuple[tuple[str, ModelKind], ...] = (("linear", "linear"), ("boosting", "boosting"))
    candidates = [
        Candidate(f"{name}{MODE_NAMES[mode]}", kind, mode) for mode in modes for name, kind in kinds
    ]
    candidates.append(Candidate("network", "network"))
    if layout.has_index and has_target:
        candidates.append(Candidate("network with the game", "game"))
        if layout.is_numbers_only and can_use_moving_frame(space, layout.n_numbers):
            frames: tuple[FeatureMode, ...] = ("moving-frame", "principal-axes")
            candidates += [
                Candidate(f"{name}{MODE_NAMES[mode]}", kind, mode)
                for mode in frames
                for name, kind in kinds
            ]
    return candidates


def try_candidate(candidate: Candidate, task: CandidateTask) -> TriedCandidate:
    """Fit a candidate to all source rows, and without each hidden range to look at its losses."""
    with single_threaded():  # the same numbers on any machine, side by side or in turn
        if candidate.model in ("network", "game"):
            return _try_network(candidate, task)
        return _try_columns(candidate, task)


def _try_columns(candidate: Candidate, task: CandidateTask) -> TriedCandidate:
    dataset = task.dataset
    features = Features(
        task.layout.n_numbers,
        task.layout.missing_indicators,
        task.layout.category_sizes,
        task.space.embedding_width,
        candidate.mode,
        for_trees=candidate.model == "boosting",
    )
    batch = dataset[torch.arange(len(dataset))]
    features.fit(batch.x, task.space.embed(batch.u))
    limits = checked_index_limits(task.space, dataset, task.ranges)
    if candidate.mode == "index" and task.n_outputs == 1 and limits is not None:
        features.limit_index(*limits)  # a probability has bounds of its own
    source = dataset[dataset.source_rows]
    columns = apply_in_chunks(features, source.x, task.space.embed(source.u).float())
    if candidate.model == "custom":
        columns = torch.cat([columns, task.space.embed(source.u).float()], dim=1)
    place = torch.full((len(dataset),), -1)
    place[dataset.source_rows] = torch.arange(len(source))

    def fit(rows: Tensor) -> nn.Module:
        own = place[rows]
        y = source.y[own].numpy()
        parts = (columns[own].double().numpy(), y.ravel(), source.weight[own].double().numpy())
        if candidate.model == "custom":
            return _fit_estimator(candidate.estimator, parts, features.width, task.n_outputs)
        fit_model = fit_linear if candidate.model == "linear" else fit_boosting
        return fit_model(*parts, task.n_outputs)

    outputs = []
    for part in task.ranges:
        with torch.no_grad():
            outputs.append(fit(part.train_rows)(columns[place[part.test_rows]]).numpy())
    member = _Routed if candidate.model == "custom" else CommitteeMember
    return _tried(candidate, member(features, fit(dataset.source_rows)), outputs, task)


class _Routed(CommitteeMember):
    """A user's own estimator, which gets the index beside its columns."""

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        outputs: Tensor = self.model(torch.cat([self.features(x, index), index], dim=1))
        return outputs


def _try_network(candidate: Candidate, task: CandidateTask) -> TriedCandidate:
    outputs = []
    for part in task.ranges:
        network = task.fit_network(candidate.model, part.train_rows)
        test = task.dataset[part.test_rows]
        index = task.space.embed(test.u).float()
        outputs.append(apply_in_chunks(network, test.x, index).numpy())
    network = task.fit_network(candidate.model, task.dataset.source_rows)
    return _tried(candidate, network, outputs, task)


def _tried(
    candidate: Candidate, module: nn.Module, outputs: Sequence[Array], task: CandidateTask
) -> TriedCandidate:
    pairs = zip(outputs, task.ranges, strict=True)
    losses = tuple(row_losses(each, task.dataset.y[part.test_rows]) for each, part in pairs)
    return TriedCandidate(candidate, module.eval(), tuple(outputs), losses)


def _fit_estimator(
    estimator: Any, parts: tuple[Array, Array, Array], n_columns: int, n_outputs: int
) -> EstimatorModel:
    columns, y, _ = parts
    x, index = np.split(columns, [n_columns], axis=1)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = {"domain_index": index} if takes_index(estimator, "fit") else {}
        fitted = clone(estimator).fit(x, y, **routed)
    return EstimatorModel(fitted, n_columns, n_outputs)


@torch.no_grad()
def apply_in_chunks(module: nn.Module, x: Tensor, index: Tensor) -> Tensor:
    """What a module of rows and their index gives for all of them."""
    parts = zip(torch.split(x, CHUNK_ROWS), torch.split(index, CHUNK_ROWS), strict=True)
    return torch.cat([module(part, e) for part, e in parts])
