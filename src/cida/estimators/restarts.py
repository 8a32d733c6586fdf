"""One of several games, kept by a validator that sees no label of the target."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from cida.data import IndexedDataset
from cida.estimators import players, prediction
from cida.estimators.inputs import Array
from cida.estimators.scaling import Scaler
from cida.games import Game
from cida.selection.source_ranges import nearest_source_third
from cida.selection.validation_set import CandidateOutputs, ValidationSet
from cida.selection.validators import get_validator
from cida.training import Callback, Event, Trainer, TrainingConfig, seeded
from cida.training.progress import ProgressBar

if TYPE_CHECKING:
    from cida.estimators.base import CIDAEstimator

__all__ = ["CompletedGame", "Selection", "make_candidate", "train_best_of", "train_game"]


@dataclass(frozen=True)
class CompletedGame:
    """A game that was played to its end, and what happened on the way."""

    game: Game
    history: list[Event]
    training: TrainingConfig


@dataclass(frozen=True)
class Selection:
    """What a validator said of each run, and which was kept."""

    validator: str
    scores: tuple[float, ...]
    selected_index: int


def train_game(
    model: CIDAEstimator, dataset: IndexedDataset, training: TrainingConfig, has_target: bool
) -> CompletedGame:
    """One game of this estimator, from its start to its end."""
    with seeded(training.seed):
        game = players.build_game(model, dataset, has_target)
    history: list[Event] = []
    with ExitStack() as stack:
        callbacks: list[Callback] = [history.append, *(model.callbacks or ())]
        if model.verbose:
            callbacks.append(stack.enter_context(ProgressBar(type(model).__name__)))
        Trainer(training, callbacks).run(game, dataset)
    return CompletedGame(game, history, training)


def train_best_of(
    model: CIDAEstimator, dataset: IndexedDataset, training: TrainingConfig, has_target: bool
) -> tuple[CompletedGame, Selection | None]:
    """The best of the model's ``restarts`` games by its validator; each has a seed of its own.

    The first has the seed that a single game would have, and is kept unless another is better by
    more than chance. Without a target to adapt to there is
    nothing to choose by, and one game is played.
    """
    if model.n_restarts == 1 or not has_target:
        return train_game(model, dataset, training, has_target), None
    validator = get_validator(model.validator)
    games = [
        train_game(model, dataset, one, has_target)
        for one in _restart_configs(training, model.n_restarts)
    ]
    validation_set = ValidationSet.from_dataset(model.space_, dataset)
    candidates = []
    for completed in games:
        candidate = make_candidate(model, validation_set, completed.game, completed.history)
        refit = partial(_score_left_out_range, model, completed.training, dataset)
        candidates.append(replace(candidate, refit=refit))
    scores = validator(validation_set, candidates)
    best = int(np.argmax(scores))
    # Of runs that chance alone may tell apart the first is kept: no choice, no harm.
    selected_index = (
        best
        if scores[best] - scores[0]
        > validator.margin(validation_set, candidates[0], candidates[best])
        else 0
    )
    return games[selected_index], Selection(
        type(validator).__name__, tuple(scores.tolist()), selected_index
    )


def _restart_configs(training: TrainingConfig, n_restarts: int) -> list[TrainingConfig]:
    seeds = np.random.default_rng(training.seed).integers(
        np.iinfo(np.int32).max, size=n_restarts - 1
    )
    return [training, *(replace(training, seed=int(seed)) for seed in seeds)]


def make_candidate(
    model: CIDAEstimator, validation_set: ValidationSet, game: Game, history: list[Event]
) -> CandidateOutputs:
    """What a validator may know of a game of this estimator; the field's x is scaled already."""
    return CandidateOutputs(
        outputs=_predict_outputs(model, game, validation_set),
        encoding=_apply_network(game.encode, validation_set),
        loss=history[-1].losses["prediction"] if history else float("nan"),  # of a loaded model
    )


def _predict_outputs(model: CIDAEstimator, game: Game, validation_set: ValidationSet) -> Array:
    outputs = torch.from_numpy(
        _apply_network(model._prediction_network(game), validation_set)
    ).double()
    return (outputs.softmax(1) if validation_set.has_classes else outputs[:, :1]).numpy()


def _apply_network(network: prediction.NetworkFunction, validation_set: ValidationSet) -> Array:
    return prediction.compute_outputs(
        network, Scaler.identity(), validation_set.x.numpy(), validation_set.u
    )


def _score_left_out_range(
    model: CIDAEstimator, training: TrainingConfig, dataset: IndexedDataset
) -> float:
    """The score on the outermost source range of the same game played without its labels."""
    hidden = nearest_source_third(model.space_, dataset.u, dataset.labelled)
    game = train_game(model, dataset.with_hidden_labels(hidden), training, has_target=True).game
    validation_set = ValidationSet.from_dataset(
        model.space_, dataset.with_hidden_labels(dataset.labelled & ~hidden)
    )
    is_scored = validation_set.labelled.numpy()
    predictions = _predict_outputs(model, game, validation_set)[is_scored]
    truth = validation_set.y.numpy()[is_scored]
    if validation_set.has_classes:
        return float((predictions.argmax(1) == truth).mean())
    return -float(((predictions - truth) ** 2).mean())
