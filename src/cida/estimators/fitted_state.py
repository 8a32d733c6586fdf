"""The result of a fit: one frozen record that is saved, predicted with, certified and exported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from cida.array_checks import Array, find_far_index
from cida.committee.decision import Decision
from cida.doctor import Diagnosis, FitSummary
from cida.estimators import prediction
from cida.estimators.validation import InputFormat
from cida.games import Game
from cida.policy import Plan
from cida.training import Event

__all__ = ["FITTED_ATTRIBUTES", "FittedState", "Selection"]


@dataclass(frozen=True)
class Selection:
    """What a validator said of each restart, and which was kept."""

    validator: str
    scores: tuple[float, ...]
    kept: int


@dataclass(frozen=True, kw_only=True)
class FittedState(InputFormat):
    """Everything that a fit found; several members predict their mean.

    ``index_values`` are index values seen in training, in order, column by column.
    """

    plan: Plan
    members: tuple[Game, ...]
    index_values: Tensor
    encoding_width: int
    summary: FitSummary
    diagnoses: tuple[Diagnosis, ...] = ()
    histories: tuple[tuple[Event, ...], ...] = ()
    selection: Selection | None = None
    custom_modules: tuple[str, ...] = ()
    decision: Decision | None = None

    @property
    def game(self) -> Game:
        """The first member."""
        return self.members[0]

    @property
    def index_width(self) -> int | None:
        """The number of index columns; None of a model without an index."""
        return self.plan.space.width if self.plan.has_index else None

    def network(self, game: Game, n_draws: int) -> prediction.NetworkFunction:
        """What predicts with a member."""
        return prediction.prediction_network(game, n_draws, self.labels.merge_draws)

    def outputs(self, x: Array, u: Tensor, n_draws: int) -> Array:
        """The mean outputs of all members for rows as the scaler takes them."""
        outputs = [
            prediction.compute_outputs(self.network(game, n_draws), self.scaler, x, u)
            for game in self.members
        ]
        return outputs[0] if len(outputs) == 1 else self.labels.merge_members(outputs)

    def encodings(self, x: Array, u: Tensor) -> Array:
        """The encoding z of each row by the first member."""
        return prediction.compute_outputs(self.game.encode, self.scaler, x, u)

    def is_extrapolated(self, u: Tensor) -> Array:
        """Which rows have an index farther than a tenth of its range from all seen in training."""
        if not self.plan.has_index:
            return np.zeros(len(u), dtype=bool)
        far = find_far_index(self.plan.space, u, self.index_values)
        extrapolated: Array = np.any([is_far.numpy() for is_far, _ in far], axis=0)
        return extrapolated


# What estimators show of their state, by the name of the attribute.
FITTED_ATTRIBUTES: dict[str, Callable[[Any], Any]] = {
    "plan_": lambda state: state.plan,
    "space_": lambda state: state.plan.space,
    "summary_": lambda state: state.summary,
    "diagnoses_": lambda state: list(state.diagnoses),
    "history_": lambda state: list(state.histories[0]) if state.histories else [],
    "selection_": lambda state: state.selection,
    "decision_": lambda state: state.decision,  # of an adaptive estimator
    "game_": lambda state: state.game,
    "n_steps_": lambda state: state.plan.steps,
    "index_width_": lambda state: state.index_width,
    "n_features_in_": lambda state: state.n_features_in,
    "classes_": lambda state: state.labels.classes,  # of a classifier
    "_n_features_out": lambda state: state.encoding_width,
}
