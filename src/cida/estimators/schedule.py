"""How long and on how much at once an estimator trains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cida.training import TrainingConfig

if TYPE_CHECKING:
    from cida.estimators.base import CIDAEstimator

__all__ = ["make_training_config", "resolve_batch_size"]

MAX_SHORT_FIT_ROWS = 20_000


def make_training_config(
    model: CIDAEstimator, n_rows: int, has_target: bool, seed: int
) -> TrainingConfig:
    """The estimator's settings of training for so many rows."""
    has_index = model.index_width_ is not None
    batch = resolve_batch_size(model, n_rows)
    return TrainingConfig(
        steps=model.steps or _default_steps(model, n_rows, batch),
        batch_size=batch,
        source_batch_size=model.source_batch_size or (max(1, batch // 2) if has_index else batch),
        learning_rate=model.learning_rate,
        schedule=model.schedule,
        weight_decay=model.weight_decay,
        ema_decay=model.ema_decay,
        curriculum=model.plan_.curriculum if has_target else 0.0,
        curriculum_stages=model.curriculum_stages,
        n_balance_bins=model.n_balance_bins if has_target else 1,
        seed=seed,
        device=model.device,
        precision=model.precision,
        compile=model.compile,
    )


def resolve_batch_size(model: CIDAEstimator, n_rows: int) -> int:
    """The rows of a batch: 128 where the user names none and there are so many."""
    return min(128, n_rows) if model.batch_size is None else model.batch_size


def _default_steps(model: CIDAEstimator, n_rows: int, batch: int) -> int:
    """6,000 with an index, 2,000 where coordinates were chosen that leave the game little to do.

    Without an index 100 passes, between 300 and 6,000 steps.
    """
    if model.index_width_ is None:
        return min(6000, max(300, 100 * n_rows // batch))
    has_chosen_coordinates = model.coordinates == "auto" and model.plan_.coordinates != "raw"
    return 2000 if has_chosen_coordinates and n_rows <= MAX_SHORT_FIT_ROWS else 6000
