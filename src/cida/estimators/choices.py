"""What an estimator chooses from the data where its user leaves a setting open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cida.coordinates.trial import Array, CoordinateMode, select_coordinates
from cida.data import IndexedDataset
from cida.discriminators import Discriminator, Histogram, make_discriminator
from cida.games import get_game_class
from cida.indexing import evenly_spaced
from cida.spaces import Periodic, Space, make_line_space

if TYPE_CHECKING:
    from cida.estimators.base import CIDAEstimator

__all__ = ["Plan", "choose_head", "choose_space", "resolve_plan"]

MAX_HISTOGRAM_BINS = 30
DEFAULT_ENCODER_HIDDEN = (128, 128, 128)
MOMENT_HEAD_CURRICULUM = 0.9  # of the steps, for a head that sees a moment or two
COMMON_PERIODS = (24.0, 360.0, 365.25, 2 * torch.pi)  # hours, degrees, days of the year, radians
N_PERIOD_SLICES = 12  # of a period, to see whether its ends meet
MIN_ROWS_PER_SLICE = 20
MAX_PLAN_ROWS = 20_000


@dataclass(frozen=True)
class Plan:
    """The settings that a fit goes by, the user's or chosen (docs/defaults.md has the rules).

    ``index_mode`` is how the encoder sees u; the others are the parameters of their names.
    """

    coordinates: CoordinateMode
    encoder_hidden: tuple[int, ...]
    lambda_d: float
    curriculum: float


def resolve_plan(model: CIDAEstimator, dataset: IndexedDataset) -> Plan:
    """The user's settings, and what the data say where there are none."""
    default_lambda = get_game_class(model.game).default_lambda
    return Plan(
        coordinates=_resolve_coordinates(model, dataset),
        encoder_hidden=tuple(
            map(
                int,
                DEFAULT_ENCODER_HIDDEN if model.encoder_hidden is None else model.encoder_hidden,
            )
        ),
        lambda_d=default_lambda if model.lambda_d is None else model.lambda_d,
        curriculum=_resolve_curriculum(model, dataset),
    )


def choose_space(x: Array, u: Tensor) -> Space:
    """A circle where u goes once round a known period and x meets itself there; else lines."""
    if u.shape[1] == 1:
        for period in COMMON_PERIODS:
            if _is_periodic(x, u[:, 0], period):
                return Periodic(period)
    return make_line_space(u.shape[1])


def _is_periodic(x: Array, u: Tensor, period: float) -> bool:
    """Whether x differs no more across the seam than from slice to slice, and more further off.

    Differences are of means, in squared deviations of each column, less what chance gives.
    """
    slice_width = period / N_PERIOD_SLICES
    if not (0 <= float(u.min()) < slice_width and period - slice_width < float(u.max()) < period):
        return False
    rows = evenly_spaced(len(u), MAX_PLAN_ROWS)
    sample = torch.from_numpy(x[rows.numpy()]).flatten(1).double()
    slices = (u[rows] / slice_width).long().clamp(max=N_PERIOD_SLICES - 1)
    counts = slices.bincount(minlength=N_PERIOD_SLICES)
    if int(counts.min()) < MIN_ROWS_PER_SLICE:
        return False
    means = torch.stack([sample[slices == number].mean(0) for number in range(N_PERIOD_SLICES)])
    variance = (sample - means[slices]).var(0).clamp(min=1e-12)
    expected_by_chance = (1 / counts[:, None] + 1 / counts[None, :]).double()
    distances = ((means[:, None] - means[None]).square() / variance).mean(-1) - expected_by_chance
    step = torch.arange(N_PERIOD_SLICES)
    adjacent_distances = distances[step[:-1], step[1:]]
    opposite_distances = distances[step, (step + N_PERIOD_SLICES // 2) % N_PERIOD_SLICES]
    limit = 2 * adjacent_distances.max().clamp(min=float(expected_by_chance.max()))
    return bool(distances[0, -1] <= limit) and bool(opposite_distances.median() > 3 * limit)


def _resolve_coordinates(model: CIDAEstimator, dataset: IndexedDataset) -> CoordinateMode:
    if model.index_width_ is None:
        return "raw"
    if model.coordinates != "auto":
        return model.coordinates
    # Source-Only never looks at the target; an encoder of the user's own is not second-guessed.
    has_target = model.discriminator is not None and len(dataset.source_rows) < len(dataset)
    if not has_target or model.encoder is not None or len(model._row_shape) != 1:
        return "raw"
    return select_coordinates(model.space_, dataset)


def choose_head(model: CIDAEstimator, dataset: IndexedDataset) -> Discriminator:
    """The user's head, or a histogram of as many bins as u has values, 30 at most."""
    if model.discriminator != "auto":
        return make_discriminator(model.discriminator)
    n_values = len(torch.unique(dataset.u[evenly_spaced(len(dataset), MAX_PLAN_ROWS)], dim=0))
    return Histogram(bins=max(2, min(MAX_HISTOGRAM_BINS, n_values)))


def _resolve_curriculum(model: CIDAEstimator, dataset: IndexedDataset) -> float:
    game = get_game_class(model.game)
    if model.curriculum is not None:
        return model.curriculum or game.min_curriculum
    # A head that is blind to shapes folds far domains onto near ones unless they come in turn.
    adapts = model.discriminator is not None and game.uses_head
    needs_curriculum = adapts and not choose_head(model, dataset).aligns_all_moments
    return MOMENT_HEAD_CURRICULUM if needs_curriculum else game.min_curriculum
