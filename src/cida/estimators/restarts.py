"""One of several games, kept by a validator that sees no label of the target."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from cida.batch import Rows
from cida.diagnostics import Candidate, Field, named_validator, outermost
from cida.estimators import players, prediction
from cida.estimators.inputs import Array
from cida.estimators.scaling import Scaling
from cida.games import Game
from cida.training import Callback, Event, Trainer, Training, isolated
from cida.training.progress import ProgressBar

if TYPE_CHECKING:
    from cida.estimators.base import CIDAEstimator

__all__ = ["Played", "Selection", "candidate_of", "keep_best", "play"]


@dataclass(frozen=True)
class Played:
    """A game that was played to its end, and what happened on the way."""

    game: Game
    history: list[Event]
    training: Training


@dataclass(frozen=True)
class Selection:
    """What a validator said of each run, and which was kept."""

    validator: str
    scores: tuple[float, ...]
    kept: int


def play(model: CIDAEstimator, rows: Rows, training: Training, adapting: bool) -> Played:
    """One game of this estimator, from its start to its end."""
    with isolated(training.seed):
        game = players.build_game(model, rows, adapting)
    history: list[Event] = []
    with ExitStack() as stack:
        watchers: list[Callback] = [history.append, *(model.callbacks or ())]
        if model.verbose:
            watchers.append(stack.enter_context(ProgressBar(type(model).__name__)))
        Trainer(training, watchers).run(game, rows)
    return Played(game, history, training)


def keep_best(
    model: CIDAEstimator, rows: Rows, training: Training, adapting: bool
) -> tuple[Played, Selection | None]:
    """The best of the model's ``restarts`` games by its validator; each has a seed of its own.

    The first has the seed that a single game would have, and is kept unless another is better by
    more than chance. Without a target to adapt to there is
    nothing to choose by, and one game is played.
    """
    if model.restarts == 1 or not adapting:
        return play(model, rows, training, adapting), None
    validator = named_validator(model.validator)
    games = [play(model, rows, one, adapting) for one in _starts(training, model.restarts)]
    field = Field.of(model.space_, rows)
    found = []
    for played in games:
        known = candidate_of(model, field, played.game, played.history)
        refit = partial(_left_out, model, played.training, rows)
        found.append(replace(known, refit=refit))
    scores = validator(field, found)
    best = int(np.argmax(scores))
    # Of runs that chance alone may tell apart the first is kept: no choice, no harm.
    kept = best if scores[best] - scores[0] > validator.margin(field, found[0], found[best]) else 0
    return games[kept], Selection(type(validator).__name__, tuple(scores.tolist()), kept)


def _starts(training: Training, count: int) -> list[Training]:
    draws = np.random.default_rng(training.seed).integers(np.iinfo(np.int32).max, size=count - 1)
    return [training, *(replace(training, seed=int(seed)) for seed in draws)]


def candidate_of(model: CIDAEstimator, field: Field, game: Game, history: list[Event]) -> Candidate:
    """What a validator may know of a game of this estimator; the field's x is scaled already."""
    return Candidate(
        outputs=_predicted(model, game, field),
        encoding=_over(game.encode, field),
        loss=history[-1].losses["prediction"] if history else float("nan"),  # of a loaded model
    )


def _predicted(model: CIDAEstimator, game: Game, field: Field) -> Array:
    outputs = torch.from_numpy(_over(model._network(game), field)).double()
    return (outputs.softmax(1) if field.has_classes else outputs[:, :1]).numpy()


def _over(network: prediction.Network, field: Field) -> Array:
    return prediction.outputs(network, Scaling.none(), field.x.numpy(), field.u)


def _left_out(model: CIDAEstimator, training: Training, rows: Rows) -> float:
    """The score on the outermost source range of the same game played without its labels."""
    hidden = outermost(model.space_, rows.u, rows.labelled)
    game = play(model, rows.hiding(hidden), training, adapting=True).game
    field = Field.of(model.space_, rows.hiding(rows.labelled & ~hidden))
    asked = field.labelled.numpy()
    found = _predicted(model, game, field)[asked]
    truth = field.y.numpy()[asked]
    if field.has_classes:
        return float((found.argmax(1) == truth).mean())
    return -float(((found - truth) ** 2).mean())
