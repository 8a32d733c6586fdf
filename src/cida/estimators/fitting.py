"""A fit: plan, data and seed to the fitted state. Pure: no estimator is read or written."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from cida.array_checks import Array
from cida.coordinates import SupportsFitIndex
from cida.data import IndexedDataset, RowLayout
from cida.doctor import diagnose
from cida.errors import warn_user
from cida.estimators import parameters, prediction
from cida.estimators.fitted_state import FittedState, Selection
from cida.estimators.labels import LabelCodec, NumberLabels
from cida.estimators.scaling import Scaler
from cida.estimators.summarize import summarize_fit
from cida.estimators.validation import InputFormat, TrainingData
from cida.games import Game, GameParts, SourceOnly, get_game_class
from cida.indexing import evenly_spaced, subsample
from cida.networks.builders import build_encoder, build_predictor
from cida.policy import FitRequest, Plan
from cida.selection import CandidateOutputs, ValidationSet, get_validator, nearest_source_third
from cida.spaces import Space
from cida.training import Callback, Event, Trainer, TrainingConfig, proximity_weights, seeded
from cida.training.progress import ProgressBar

__all__ = ["CompletedGame", "Fitter", "fit_state", "make_candidate", "sample_index_values"]

MAX_ENCODER_FIT_ROWS = 50_000  # enough to see how x moves along u
MAX_INDEX_VALUES = 4096  # kept with the model


@dataclass(frozen=True)
class CompletedGame:
    """A game that was played to its end, and what happened on the way."""

    game: Game
    history: list[Event]
    training: TrainingConfig


def fit_state(plan: Plan, data: TrainingData, options: FitRequest, seed: int) -> FittedState:
    """Train the networks of a plan.

    Parameters
    ----------
    plan : Plan
        Every decision, from `cida.policy.resolve`.
    data : TrainingData
        All rows, as networks take them.
    options : FitRequest
        What else the user has set.
    seed : int
        Decides all that is drawn.

    Returns
    -------
    FittedState
        What predicts, is saved and is examined.
    """
    dataset = data.dataset
    if plan.proximity < 1 and plan.has_index and 0 < len(dataset.source_rows) < len(dataset):
        dataset = _weight_by_proximity(plan.space, dataset, plan.proximity)
    fitter = Fitter(plan, options, data.layout, data.labels)
    seeds = (seed, *_further_seeds([seed, 1], options.n_members - 1))
    members = [fitter.train_best_of(dataset, each) for each in seeds]
    (first, *_), (selection, *_) = zip(*members, strict=True)
    input_format = {f.name: getattr(data, f.name) for f in fields(InputFormat)}
    with seeded(seed):  # rows may be drawn as they are looked up
        if isinstance(data.labels, NumberLabels) and prediction.is_probabilistic(first.game):
            variance = prediction.residual_variance(fitter.network(first.game), dataset)
            input_format["labels"] = replace(data.labels, residual_variance=variance)
        summary = summarize_fit(plan, options, dataset, first.game, data.labels)
    diagnoses = tuple(diagnose(first.history, summary))
    for diagnosis in diagnoses:
        if diagnosis.code != "label-shift":  # it was told of before training
            warn_user(str(diagnosis))
    modules = {"encoder": options.encoder, "predictor": options.predictor}
    return FittedState(
        plan=plan,
        members=tuple(each.game for each, _ in members),
        index_values=sample_index_values(dataset),
        encoding_width=fitter.measure_encoding_width(first.game.encoder, dataset),
        summary=summary,
        diagnoses=diagnoses,
        histories=tuple(tuple(each.history) for each, _ in members),
        selection=selection,
        custom_modules=tuple(name for name, module in modules.items() if module is not None),
        **input_format,
    )


def sample_index_values(dataset: IndexedDataset) -> torch.Tensor:
    """Index values to keep with a model, in order, column by column."""
    u = np.sort(subsample(dataset.u).numpy(), axis=0)
    return torch.from_numpy(u)[evenly_spaced(len(u), MAX_INDEX_VALUES)]


def _further_seeds(seed: int | list[int], count: int) -> list[int]:
    seeds = np.random.default_rng(seed).integers(np.iinfo(np.int32).max, size=count)
    return [int(each) for each in seeds]


def _weight_by_proximity(space: Space, dataset: IndexedDataset, share: float) -> IndexedDataset:
    """The rows, source rows weighted by how near to the target they are."""
    target_index = dataset.u[subsample(dataset.target_rows)]
    distance = space.distance_to_set(dataset.source_index, target_index)
    weight = dataset.weight.clone()
    weight[dataset.source_rows] *= proximity_weights(distance, share).float()
    return dataset.with_weights(weight)


@dataclass(frozen=True)
class Fitter:
    """Trains games of one plan; each call starts afresh from its seed."""

    plan: Plan
    options: FitRequest
    layout: RowLayout
    labels: LabelCodec

    def build_game(self, dataset: IndexedDataset) -> Game:
        """The game for these rows; Source-Only where there is nothing to adapt to."""
        encoder = self.build_encoder()
        if isinstance(encoder, SupportsFitIndex):
            sample = dataset[evenly_spaced(len(dataset), MAX_ENCODER_FIT_ROWS)]
            encoder.fit_index(sample.x, self.plan.space.embed(sample.u))
        width = self.measure_encoding_width(encoder, dataset)
        predictor = self.build_predictor(width)
        outputs = self.labels.output_width
        parameters.check_predictor(predictor.eval(), width, outputs)
        if not self.plan.is_adapting:
            return self.source_only(encoder, predictor)
        head = copy.deepcopy(self.plan.head)
        assert head is not None
        head.batch_norm = self.options.batch_norm
        parts = GameParts(
            encoder=encoder,
            predictor=predictor,
            space=self.plan.space,
            u=subsample(dataset.u),
            encoding_width=width,
            output_width=outputs,
            discriminator=head,
            prediction_loss=type(self.labels).loss,
            index_in_encoder=self.plan.has_index_input,
            lambda_d=self.plan.lambda_d,
            discriminator_steps=self.plan.discriminator_steps,
            ceiling=self.options.ceiling,
        )
        return get_game_class(self.options.game).assemble(parts)

    def build_encoder(self) -> nn.Module:
        """The user's encoder, or one for rows of this layout."""
        if self.options.encoder is not None:
            return copy.deepcopy(self.options.encoder)
        plan, width = self.plan, self.options.encoding_width
        kind = (plan.space, plan.coordinates, plan.capacity, plan.encoder_hidden)
        return build_encoder(self.layout, *kind, width, self.options.stochastic)

    def build_predictor(self, width: int) -> nn.Module:
        """The user's predictor, or one for encodings of this width."""
        if self.options.predictor is not None:
            return copy.deepcopy(self.options.predictor)
        hidden, outputs = self.plan.predictor_hidden, self.labels.output_width
        return build_predictor(width, hidden, outputs, self.options.batch_norm)

    def source_only(self, encoder: nn.Module, predictor: nn.Module) -> Game:
        """The game without an adversary: also what a loaded model predicts with."""
        loss, has_index_input = type(self.labels).loss, self.plan.has_index_input
        return SourceOnly(encoder, predictor, self.plan.space, loss, has_index_input)

    def measure_encoding_width(self, encoder: nn.Module, dataset: IndexedDataset) -> int:
        """The width of z, from the first rows; refuses an encoder that does not give vectors."""
        game = self.source_only(encoder.eval(), nn.Identity())
        first = dataset[torch.arange(min(2, len(dataset)))]
        with torch.no_grad(), parameters.name_argument_in_errors("encoder", first.x.shape):
            z = game.encode(first.x, first.u)
        if z.dim() != 2:
            raise ValueError(
                f"encoder gives an output of shape {tuple(z.shape)} for {len(first)} rows; it "
                "must give one vector for each row: flatten it."
            )
        return int(z.shape[1])

    def config(self, seed: int) -> TrainingConfig:
        """The plan's training with this seed."""
        values = vars(self.options) | vars(self.plan)
        if not self.plan.is_adapting:
            values |= {"curriculum": 0.0, "n_balance_bins": 1}
        names = {f.name for f in fields(TrainingConfig)} & values.keys()
        return TrainingConfig(seed=seed, **{name: values[name] for name in names})

    def train_game(self, dataset: IndexedDataset, training: TrainingConfig) -> CompletedGame:
        """One game, from its start to its end."""
        with seeded(training.seed):
            game = self.build_game(dataset)
        history: list[Event] = []
        with ExitStack() as stack:
            callbacks: list[Callback] = [history.append, *(self.options.callbacks or ())]
            if self.options.verbose:
                callbacks.append(stack.enter_context(ProgressBar(type(self.options).__name__)))
            Trainer(training, callbacks).run(game, dataset)
        return CompletedGame(game, history, training)

    def train_best_of(
        self, dataset: IndexedDataset, seed: int
    ) -> tuple[CompletedGame, Selection | None]:
        """The best of the restarts by the validator; each has a seed of its own.

        The first has the seed that a single game would have, and is kept unless another is better
        by more than chance. Without a target there is nothing to choose by, and one game is played.
        """
        training = self.config(seed)
        if self.options.n_restarts == 1 or not self.plan.is_adapting:
            return self.train_game(dataset, training), None
        validator = get_validator(self.options.validator)
        seeds = (seed, *_further_seeds(seed, self.options.n_restarts - 1))
        games = [self.train_game(dataset, replace(training, seed=seed)) for seed in seeds]
        validation_set = ValidationSet.from_dataset(self.plan.space, dataset)
        candidates = []
        for each in games:
            network = self.network(each.game)
            candidate = make_candidate(validation_set, each.game, network, each.history)
            refit = partial(self._score_left_out_range, each.training, dataset)
            candidates.append(replace(candidate, refit=refit))
        scores = validator(validation_set, candidates)
        best = int(np.argmax(scores))
        # Of runs that chance alone may tell apart the first is kept: no choice, no harm.
        margin = validator.margin(validation_set, candidates[0], candidates[best])
        kept = best if scores[best] - scores[0] > margin else 0
        return games[kept], Selection(validator.name, tuple(scores.tolist()), kept)

    def network(self, game: Game) -> prediction.NetworkFunction:
        """What predicts with a game."""
        return prediction.prediction_network(game, self.options.n_draws, self.labels.merge_draws)

    def _score_left_out_range(self, training: TrainingConfig, dataset: IndexedDataset) -> float:
        """The score on the nearest source third of the same game played without its labels."""
        hidden = nearest_source_third(self.plan.space, dataset.u, dataset.labelled)
        game = self.train_game(dataset.with_hidden_labels(hidden), training).game
        scored = dataset.with_hidden_labels(dataset.labelled & ~hidden)
        validation_set = ValidationSet.from_dataset(self.plan.space, scored)
        is_scored = validation_set.labelled.numpy()
        predicted = _predict_outputs(validation_set, self.network(game))[is_scored]
        truth = validation_set.y.numpy()[is_scored]
        if validation_set.has_classes:
            return float((predicted.argmax(1) == truth).mean())
        return -float(((predicted - truth) ** 2).mean())


def make_candidate(
    validation_set: ValidationSet,
    game: Game,
    network: prediction.NetworkFunction,
    history: Sequence[Event],
) -> CandidateOutputs:
    """What a validator may know of a game; the validation set's x is scaled already."""
    return CandidateOutputs(
        outputs=_predict_outputs(validation_set, network),
        encoding=_apply(game.encode, validation_set),
        loss=history[-1].losses["prediction"] if history else float("nan"),  # of a loaded model
    )


def _predict_outputs(validation_set: ValidationSet, network: prediction.NetworkFunction) -> Array:
    outputs = torch.from_numpy(_apply(network, validation_set)).double()
    return (outputs.softmax(1) if validation_set.has_classes else outputs[:, :1]).numpy()


def _apply(network: Callable[..., Any], validation_set: ValidationSet) -> Array:
    x, u = validation_set.x.numpy(), validation_set.u
    return prediction.compute_outputs(network, Scaler.identity(), x, u)
