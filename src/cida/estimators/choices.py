"""What an estimator chooses from the data where its user leaves a setting open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cida.batch import Rows
from cida.diagnostics.coordinates import Array, IndexMode, choose_coordinates
from cida.discriminators import Discriminator, Histogram, named_discriminator
from cida.games import named_game
from cida.space import Periodic, Space, line_space, thinned

if TYPE_CHECKING:
    from cida.estimators.base import CIDAEstimator

__all__ = ["Choices", "choose", "choose_head", "choose_space"]

MOST_BINS = 30
HIDDEN = (128, 128, 128)
NEAR_TO_FAR = 0.9  # of the steps, for a head that sees a moment or two
PERIODS = (24.0, 360.0, 365.25, 2 * torch.pi)  # hours, degrees, days of the year, radians
SLICES = 12  # of a period, to see whether its ends meet
FEWEST_IN_SLICE = 20
MOST_ROWS = 20_000


@dataclass(frozen=True)
class Choices:
    """The settings that a fit goes by, the user's or chosen (docs/defaults.md has the rules).

    ``index_mode`` is how the encoder sees u; the others are the parameters of their names.
    """

    index_mode: IndexMode
    hidden: tuple[int, ...]
    lambda_d: float
    curriculum: float


def choose(model: CIDAEstimator, rows: Rows) -> Choices:
    """The user's settings, and what the data say where there are none."""
    usual = named_game(model.game).usual_lambda
    return Choices(
        index_mode=_index_mode(model, rows),
        hidden=tuple(map(int, HIDDEN if model.hidden is None else model.hidden)),
        lambda_d=usual if model.lambda_d is None else model.lambda_d,
        curriculum=_curriculum(model, rows),
    )


def choose_space(x: Array, u: Tensor) -> Space:
    """A circle where u goes once round a known period and x meets itself there; else lines."""
    if u.shape[1] == 1:
        for period in PERIODS:
            if _ends_meet(x, u[:, 0], period):
                return Periodic(period)
    return line_space(u.shape[1])


def _ends_meet(x: Array, u: Tensor, period: float) -> bool:
    """Whether x differs no more across the seam than from slice to slice, and more further off.

    Differences are of means, in squared deviations of each column, less what chance gives.
    """
    reach = period / SLICES
    if not (0 <= float(u.min()) < reach and period - reach < float(u.max()) < period):
        return False
    rows = thinned(len(u), MOST_ROWS)
    seen = torch.from_numpy(x[rows.numpy()]).flatten(1).double()
    slices = (u[rows] / reach).long().clamp(max=SLICES - 1)
    counts = slices.bincount(minlength=SLICES)
    if int(counts.min()) < FEWEST_IN_SLICE:
        return False
    means = torch.stack([seen[slices == number].mean(0) for number in range(SLICES)])
    spread = (seen - means[slices]).var(0).clamp(min=1e-12)
    chance = (1 / counts[:, None] + 1 / counts[None, :]).double()
    apart = ((means[:, None] - means[None]).square() / spread).mean(-1) - chance
    step = torch.arange(SLICES)
    next_to = apart[step[:-1], step[1:]]
    across = apart[step, (step + SLICES // 2) % SLICES]
    limit = 2 * next_to.max().clamp(min=float(chance.max()))
    return bool(apart[0, -1] <= limit) and bool(across.median() > 3 * limit)


def _index_mode(model: CIDAEstimator, rows: Rows) -> IndexMode:
    if model.index_width_ is None:
        return False
    if model.index_in_encoder != "auto":
        return model.index_in_encoder
    # Source-Only never looks at the target; an encoder of the user's own is not second-guessed.
    adapts = model.discriminator is not None and len(rows.sources) < len(rows)
    if not adapts or model.encoder is not None or len(model._row_shape) != 1:
        return False
    return choose_coordinates(model.space_, rows)


def choose_head(model: CIDAEstimator, rows: Rows) -> Discriminator:
    """The user's head, or a histogram of as many bins as u has values, 30 at most."""
    if model.discriminator != "auto":
        return named_discriminator(model.discriminator)
    values = len(torch.unique(rows.u[thinned(len(rows), MOST_ROWS)], dim=0))
    return Histogram(bins=max(2, min(MOST_BINS, values)))


def _curriculum(model: CIDAEstimator, rows: Rows) -> float:
    game = named_game(model.game)
    if model.curriculum is not None:
        return model.curriculum or game.least_curriculum
    # A head that is blind to shapes folds far domains onto near ones unless they come in turn.
    adapts = model.discriminator is not None and game.uses_head
    folds = adapts and not choose_head(model, rows).sees_all
    return NEAR_TO_FAR if folds else game.least_curriculum
