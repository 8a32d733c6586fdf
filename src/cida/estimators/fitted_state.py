"""The result of a fit: one frozen record that is saved, predicted with, certified and exported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from cida.data import RowLayout
from cida.doctor import Diagnosis, FitSummary
from cida.estimators import prediction
from cida.estimators.array_checks import Array, find_far_index
from cida.estimators.labels import LabelCodec
from cida.estimators.scaling import Scaler
from cida.games import Game
from cida.networks import is_stochastic
from cida.policy import Plan
from cida.training import Event

if TYPE_CHECKING:  # it needs pyarrow, which models of arrays do without
    from cida.tables.table_format import TableFormat

__all__ = ["FITTED_ATTRIBUTES", "FittedState", "Selection"]


@dataclass(frozen=True)
class Selection:
    """What a validator said of each restart, and which was kept."""

    validator: str
    scores: tuple[float, ...]
    kept: int


@dataclass(frozen=True)
class FittedState:
    """Everything that a fit found; several members predict their mean.

    ``table`` says how the columns of a table are read, and is None where X was an array.
    ``index_values`` are index values seen in training, in order, column by column.
    """

    plan: Plan
    layout: RowLayout
    scaler: Scaler
    labels: LabelCodec
    members: tuple[Game, ...]
    index_values: Tensor
    n_features_in: int
    encoding_width: int
    summary: FitSummary
    diagnoses: tuple[Diagnosis, ...] = ()
    histories: tuple[tuple[Event, ...], ...] = ()
    selection: Selection | None = None
    table: TableFormat | None = None
    index_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    custom_modules: tuple[str, ...] = field(default=())

    @property
    def game(self) -> Game:
        """The first member."""
        return self.members[0]

    @property
    def index_width(self) -> int | None:
        """The number of index columns; None of a model without an index."""
        return self.plan.space.width if self.plan.has_index else None

    @property
    def is_stochastic(self) -> bool:
        """Whether predictions are means over draws."""
        return is_stochastic(self.game.encoder) or is_stochastic(self.game.predictor)

    def network(self, game: Game, n_draws: int) -> prediction.NetworkFunction:
        """What predicts: one pass, or one for each draw where a player is probabilistic."""
        if not (is_stochastic(game.encoder) or is_stochastic(game.predictor)):
            return game.predict
        return prediction.merge_over_draws(game, n_draws, self.labels.merge_draws)

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
FITTED_ATTRIBUTES: dict[str, Callable[[FittedState], Any]] = {
    "plan_": lambda state: state.plan,
    "space_": lambda state: state.plan.space,
    "summary_": lambda state: state.summary,
    "diagnoses_": lambda state: list(state.diagnoses),
    "history_": lambda state: list(state.histories[0]) if state.histories else [],
    "selection_": lambda state: state.selection,
    "game_": lambda state: state.game,
    "n_steps_": lambda state: state.plan.steps,
    "index_width_": lambda state: state.index_width,
    "n_features_in_": lambda state: state.n_features_in,
    "_n_features_out": lambda state: state.encoding_width,
}
