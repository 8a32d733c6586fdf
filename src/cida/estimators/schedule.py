"""How long and on how much at once an estimator trains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cida.training import Training

if TYPE_CHECKING:
    from cida.estimators.base import CIDAEstimator

__all__ = ["batch_size", "make_training"]

FEW_ROWS = 20_000


def make_training(model: CIDAEstimator, rows: int, adapting: bool, seed: int) -> Training:
    """The estimator's settings of training for so many rows."""
    indexed = model.index_width_ is not None
    batch = batch_size(model, rows)
    return Training(
        steps=model.steps or _default_steps(model, rows, batch),
        batch_size=batch,
        source_batch_size=model.source_batch_size or (max(1, batch // 2) if indexed else batch),
        learning_rate=model.learning_rate,
        schedule=model.schedule,
        weight_decay=model.weight_decay,
        averaging=model.averaging,
        curriculum=model.choices_.curriculum if adapting else 0.0,
        stages=model.stages,
        balance_bins=model.balance_bins if adapting else 1,
        seed=seed,
        device=model.device,
        precision=model.precision,
        compile=model.compile,
    )


def batch_size(model: CIDAEstimator, rows: int) -> int:
    """The rows of a batch: 128 where the user names none and there are so many."""
    return min(128, rows) if model.batch_size is None else model.batch_size


def _default_steps(model: CIDAEstimator, rows: int, batch: int) -> int:
    """6,000 with an index, 2,000 where coordinates were chosen that leave the game little to do.

    Without an index 100 passes, between 300 and 6,000 steps.
    """
    if model.index_width_ is None:
        return min(6000, max(300, 100 * rows // batch))
    easier = model.index_in_encoder == "auto" and model.choices_.index_mode is not False
    return 2000 if easier and rows <= FEW_ROWS else 6000
