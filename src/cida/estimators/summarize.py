"""A look at a game that was just trained: what is known of its rows, networks and predictions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from cida.data import IndexedDataset
from cida.doctor.fit_summary import (
    FitSummary,
    dominant_index_r2,
    knn_loss,
    marginal_label_loss,
    summarize_index,
)
from cida.errors import warn_user
from cida.estimators.labels import LabelCodec
from cida.games import Game, get_game_class
from cida.indexing import evenly_spaced
from cida.label_shift import measure_source_label_shift
from cida.metrics import index_r2
from cida.policy import FitRequest, Plan
from cida.spaces import Space
from cida.training.round_probe import FAR_ROWS_SHARE, majority_share

__all__ = ["summarize_fit", "warn_label_shift"]

MAX_SUMMARY_ROWS = 2000  # go through the networks once more, and at most 1 % of training
MIN_SUMMARY_ROWS = 64
MAX_INDEX_ROWS = 20_000  # of u, where all that is asked is how far they are
MAX_NEIGHBOR_FEATURES = 4096  # numbers a row, beyond which neighbours are not looked for
MIN_FAR_TARGET_ROWS = 15  # target rows, of which one class would be no chance
SUMMARY_CHUNK_ROWS = 256


@torch.no_grad()
def summarize_fit(
    plan: Plan, options: FitRequest, dataset: IndexedDataset, game: Game, labels: LabelCodec
) -> FitSummary:
    """What is known of the rows and of the end of training, from at most a few thousand rows."""
    settings = _collect_settings(plan, options)
    if not plan.has_index:
        return FitSummary(**settings)
    source = dataset[_subsample(dataset.source_rows, MAX_SUMMARY_ROWS // 2)]
    has_neighbors = len(source) >= MIN_SUMMARY_ROWS
    has_neighbors = has_neighbors and 0 < source.x[0].numel() <= MAX_NEIGHBOR_FEATURES
    figures: dict[str, Any] = {
        "n_source_rows": len(dataset.source_rows),
        "n_target_rows": len(dataset.target_rows),
        "n_classes": labels.output_width if source.has_classes else None,
        "index_columns": summarize_index(plan.space, dataset.u),
        "label_shift": measure_source_label_shift(plan.space, dataset),
        "marginal_label_loss": marginal_label_loss(source.y, source.weight),
        "knn_loss": knn_loss(source.x, source.y) if has_neighbors else None,
    }
    max_rows = min(MAX_SUMMARY_ROWS, max(MIN_SUMMARY_ROWS, plan.steps * SUMMARY_CHUNK_ROWS // 100))
    return FitSummary(
        **settings,
        **figures,
        **_encoding_statistics(plan.space, game, dataset, max_rows),
        **_majority_shares(plan.space, game, dataset, max_rows),
    )


def _collect_settings(plan: Plan, options: FitRequest) -> dict[str, Any]:
    """The settings that the doctor reads."""
    game = get_game_class(options.game)
    is_set_by_user = plan.reasons["coordinates"].rule == "user"
    shared = {f.name for f in fields(FitSummary)} & {f.name for f in fields(plan)}
    return {
        **{name: getattr(plan, name) for name in shared},
        "game": options.game if isinstance(options.game, str) else "custom",
        "is_adaptive": plan.is_adapting,
        "is_conditional": game.conditional,
        "uses_head": game.uses_head,
        "default_lambda": game.default_lambda,
        "ceiling": options.ceiling,
        "coordinates": plan.coordinates if is_set_by_user else "auto",
        "has_custom_encoder": options.encoder is not None,
    }


def _subsample(rows: Tensor, max_rows: int) -> Tensor:
    return rows[evenly_spaced(len(rows), max_rows)]


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
    space: Space, game: Game, dataset: IndexedDataset, max_rows: int
) -> dict[str, Any]:
    z, u = _run_network(game.encode, dataset, evenly_spaced(len(dataset), max_rows))
    z = z.double()
    if not bool(z.isfinite().all()):
        return {}
    statistics = {
        "encoding_std": float(z.var(0, correction=0).mean().sqrt()),
        "encoding_rms": float(z.square().mean().sqrt()),
    }
    if len(z) >= MIN_SUMMARY_ROWS:
        encoding, index = z.numpy(), space.embed(u).double().numpy()
        share = index_r2(encoding, index)
        statistics["index_r2"] = share if math.isfinite(share) else 0.0
        statistics["dominant_index_r2"] = dominant_index_r2(encoding, index)
    return statistics


def _majority_shares(
    space: Space, game: Game, dataset: IndexedDataset, max_rows: int
) -> dict[str, Any]:
    """How much of the source, and of the far target, is predicted as one class."""
    targets = _subsample(dataset.target_rows, MAX_INDEX_ROWS)
    n_far = int(FAR_ROWS_SHARE * len(targets))
    if dataset.y.is_floating_point() or n_far < MIN_FAR_TARGET_ROWS:
        return {}
    source = dataset.u[_subsample(dataset.source_rows, MAX_INDEX_ROWS)]
    distance = space.distance_to_set(dataset.u[targets], source)
    far = targets[distance.topk(n_far).indices.sort().values]
    shares = {}
    for name, rows in {"source": dataset.source_rows, "far": far}.items():
        outputs, _ = _run_network(game.predict, dataset, _subsample(rows, max_rows // 2))
        shares[f"majority_share_{name}"] = majority_share(outputs.argmax(1))
    return shares


def warn_label_shift(space: Space, dataset: IndexedDataset) -> None:
    """Warn where the balance of source labels moves along u: invariance may hurt there."""
    shift = measure_source_label_shift(space, dataset)
    if shift is not None and shift.is_suspected:
        warn_user(
            f"y itself seems to depend on domain_index ({shift.summary()}): an encoding that hides "
            "the index may hide y with it, and be worse than no adaptation; compare with "
            "discriminator=None, or use game='conditional' with coordinates='raw'."
        )
