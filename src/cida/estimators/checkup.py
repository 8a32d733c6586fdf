"""A look at a model that was just fitted: what is known of it, what is amiss, and a warning."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cida.data import IndexedDataset
from cida.doctor.diagnose import diagnose
from cida.doctor.diagnosis import Diagnosis
from cida.doctor.fit_summary import (
    FitSummary,
    dominant_index_r2,
    knn_loss,
    marginal_label_loss,
    summarize_index,
)
from cida.estimators.inputs import CidaWarning, caller_stacklevel
from cida.games import Game, get_game_class
from cida.indexing import evenly_spaced
from cida.io.json_decode import from_dict
from cida.label_shift import measure_source_label_shift
from cida.metrics import index_r2
from cida.spaces import Space
from cida.training.round_probe import FAR_ROWS_SHARE, majority_share

if TYPE_CHECKING:
    from cida.estimators.base import CIDAEstimator

__all__ = [
    "collect_settings",
    "read_diagnoses",
    "read_summary",
    "summarize_and_diagnose",
    "summarize_fit",
]

MAX_SUMMARY_ROWS = (
    2000  # go through the networks once more, and no more than a hundredth of training
)
MIN_SUMMARY_ROWS = 64
MAX_INDEX_ROWS = 20_000  # of u, where all that is asked is how far they are
MAX_NEIGHBOR_FEATURES = 4096  # numbers a row, beyond which neighbours are not looked for
MIN_FAR_TARGET_ROWS = 15  # target rows, of which one class would be no chance
SUMMARY_CHUNK_ROWS = 256


def summarize_and_diagnose(model: CIDAEstimator, dataset: IndexedDataset) -> None:
    """Sets ``summary_`` and ``diagnoses_`` and warns of each finding.

    The shift of labels was warned of when training began.
    """
    model.summary_ = summarize_fit(model, dataset)
    model.diagnoses_ = diagnose(model.history_, model.summary_)
    for finding in model.diagnoses_:
        if finding.code != "label-shift":
            warnings.warn(str(finding), CidaWarning, stacklevel=caller_stacklevel())


def collect_settings(
    parameters: Mapping[str, Any], plan: Mapping[str, Any], has_index: bool, n_steps: int
) -> dict[str, Any]:
    """The settings that the doctor reads: of a fitted model, or of a file's header alone.

    A header does not say what a game of the user's own is.
    """
    is_custom_game = parameters["game"] is None
    game = Game if is_custom_game else get_game_class(parameters["game"])
    return {
        "game": parameters["game"] if isinstance(parameters["game"], str) else "custom",
        "has_index": has_index,
        "is_adaptive": parameters["discriminator"] is not None,
        "is_conditional": game.conditional,
        "uses_head": game.uses_head,
        "default_lambda": game.default_lambda,
        "lambda_d": float(plan["lambda_d"]),
        "discriminator_steps": int(parameters["discriminator_steps"]),
        "ceiling": bool(parameters["ceiling"]),
        "curriculum": float(plan["curriculum"]),
        "steps": n_steps,
        "learning_rate": float(parameters["learning_rate"]),
        "weight_decay": float(parameters["weight_decay"]),
        "has_custom_encoder": parameters["encoder"] is not None,
        "coordinates": str(parameters["coordinates"]),
    }


def read_summary(header: Mapping[str, Any]) -> FitSummary:
    """The summary in a model file's header; of an older file, the settings alone."""
    if header.get("summary") is not None:
        return FitSummary.from_dict(header["summary"])
    has_index = header["index_width"] is not None
    settings = collect_settings(header["parameters"], header["choices"], has_index, header["steps"])
    return from_dict(FitSummary, settings)


def read_diagnoses(header: Mapping[str, Any]) -> list[Diagnosis]:
    """The diagnoses in a model file's header."""
    return [Diagnosis.from_dict(each) for each in header.get("diagnoses") or ()]


@torch.no_grad()
def summarize_fit(model: CIDAEstimator, dataset: IndexedDataset) -> FitSummary:
    """What is known of the rows and of the end of training, from at most a few thousand rows."""
    parameters, has_index = model.get_params(deep=False), model.index_width_ is not None
    settings = collect_settings(parameters, vars(model.plan_), has_index, model.n_steps_)
    sources, targets = dataset.source_rows, dataset.target_rows
    settings["is_adaptive"] = settings["is_adaptive"] and 0 < len(sources) < len(dataset)
    if not has_index:
        return FitSummary(**settings)
    source = dataset[_subsample(sources, MAX_SUMMARY_ROWS // 2)]
    figures: dict[str, Any] = {
        "n_source_rows": len(sources),
        "n_target_rows": len(targets),
        "n_classes": model._output_width() if source.has_classes else None,
        "index_columns": summarize_index(model.space_, dataset.u),
        "label_shift": measure_source_label_shift(model.space_, dataset),
        "marginal_label_loss": marginal_label_loss(source.y, source.weight),
        "knn_loss": _neighbor_loss(source.x, source.y),
    }
    max_rows = min(
        MAX_SUMMARY_ROWS, max(MIN_SUMMARY_ROWS, model.n_steps_ * SUMMARY_CHUNK_ROWS // 100)
    )
    return FitSummary(
        **settings,
        **figures,
        **_encoding_statistics(model, dataset, max_rows),
        **_majority_shares(model, dataset, targets, max_rows),
    )


def _subsample(rows: Tensor, max_rows: int) -> Tensor:
    return rows[evenly_spaced(len(rows), max_rows)] if len(rows) else rows


def _neighbor_loss(x: Tensor, y: Tensor) -> float | None:
    if len(x) < MIN_SUMMARY_ROWS or not 0 < x[0].numel() <= MAX_NEIGHBOR_FEATURES:
        return None
    return knn_loss(x, y)


def _run_network(
    network: Callable[[Tensor, Tensor], Tensor], dataset: IndexedDataset, row_numbers: Tensor
) -> tuple[Tensor, Tensor]:
    """What the network gives for these rows, and their index as it was dealt."""
    outputs, index = [], []
    for part in torch.split(row_numbers, SUMMARY_CHUNK_ROWS):
        batch = dataset[part]
        outputs.append(network(batch.x, batch.u))
        index.append(batch.u)
    return torch.cat(outputs), torch.cat(index)


def _encoding_statistics(
    model: CIDAEstimator, dataset: IndexedDataset, max_rows: int
) -> dict[str, Any]:
    z, u = _run_network(model.game_.encode, dataset, evenly_spaced(len(dataset), max_rows))
    z = z.double()
    if not bool(z.isfinite().all()):
        return {}
    statistics = {
        "encoding_std": float(z.var(0, correction=0).mean().sqrt()),
        "encoding_rms": float(z.square().mean().sqrt()),
    }
    if len(z) >= MIN_SUMMARY_ROWS:
        encoding, index = z.numpy(), model.space_.embed(u).double().numpy()
        share = index_r2(encoding, index)
        statistics["index_r2"] = share if math.isfinite(share) else 0.0
        statistics["dominant_index_r2"] = dominant_index_r2(encoding, index)
    return statistics


def _majority_shares(
    model: CIDAEstimator, dataset: IndexedDataset, targets: Tensor, max_rows: int
) -> dict[str, Any]:
    """How much of the source, and of the far target, is predicted as one class."""
    if dataset.y.is_floating_point() or not len(targets):
        return {}
    far_rows = _farthest_targets(model.space_, dataset, _subsample(targets, MAX_INDEX_ROWS))
    if len(far_rows) < MIN_FAR_TARGET_ROWS:
        return {}
    source_classes, far_classes = (
        _run_network(model.game_.predict, dataset, _subsample(part, max_rows // 2))[0].argmax(1)
        for part in (dataset.source_rows, far_rows)
    )
    return {
        "majority_share_source": majority_share(source_classes),
        "majority_share_far": majority_share(far_classes),
    }


def _farthest_targets(space: Space, dataset: IndexedDataset, targets: Tensor) -> Tensor:
    """The quarter of these rows that is farthest from the source."""
    source = dataset.u[_subsample(dataset.source_rows, MAX_INDEX_ROWS)]
    distance = space.distance_to_set(dataset.u[targets], source)
    return targets[distance.topk(max(1, int(FAR_ROWS_SHARE * len(targets)))).indices.sort().values]
