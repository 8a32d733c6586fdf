"""The players of an estimator's game, made for its data."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import nn

from cida.batch import Rows
from cida.discriminators import Discriminator
from cida.estimators import parameters
from cida.estimators.choices import choose_head
from cida.games import Game, Parts, SourceOnly, named_game
from cida.networks import (
    MLP,
    FollowsIndex,
    FramedEncoder,
    GaussianEncoder,
    IndexedEncoder,
    PlainEncoder,
    TabularEncoder,
    monte_carlo,
)
from cida.scratch import few
from cida.space import thinned

if TYPE_CHECKING:
    from cida.estimators.base import CIDAEstimator

__all__ = ["build_game", "make_encoder", "make_predictor", "source_only"]


ROWS_TO_FOLLOW = 50_000  # enough to see how x moves along u
DROPOUT = 0.1  # the share dropped in a probabilistic encoder: that of `TabularEncoder`


def build_game(model: CIDAEstimator, rows: Rows, adapting: bool) -> Game:
    """The game of this estimator for these rows; Source-Only where there is nothing to adapt to."""
    encoder = make_encoder(model, model._row_shape)
    if isinstance(encoder, FollowsIndex):
        some = rows[thinned(len(rows), ROWS_TO_FOLLOW)]
        encoder.fit_index(some.x, model.space_.embed(some.u))
    width = _probe(model, encoder, rows)
    predictor = make_predictor(model, width)
    model._n_features_out = width
    outputs = model._output_width()
    parameters.check_predictor(predictor.eval(), width, outputs)
    if not adapting:
        return source_only(model, encoder, predictor)
    parts = Parts(
        encoder=encoder,
        predictor=predictor,
        space=model.space_,
        u=few(rows.u),
        encoding_width=width,
        output_width=outputs,
        discriminator=_make_discriminator(model, rows),
        prediction_loss=model._prediction_loss(),
        index_in_encoder=model._index_is_input,
        lambda_d=model.choices_.lambda_d,
        discriminator_steps=model.discriminator_steps,
        ceiling=model.ceiling,
    )
    return named_game(model.game).assemble(parts)


def source_only(model: CIDAEstimator, encoder: nn.Module, predictor: nn.Module) -> Game:
    """The game without an adversary: also what a loaded model predicts with."""
    loss = model._prediction_loss()
    return SourceOnly(encoder, predictor, model.space_, loss, model._index_is_input)


def make_encoder(model: CIDAEstimator, shape: Sequence[int]) -> nn.Module:
    """The user's encoder, or one for rows of this shape."""
    if model.encoder is not None:
        return copy.deepcopy(model.encoder)
    features = int(np.prod(shape))
    if model.stochastic == "gaussian":
        return GaussianEncoder(_built_in(model, features, 2 * model.encoding_width))
    if model.stochastic == "dropout":
        return monte_carlo(_built_in(model, features, model.encoding_width, DROPOUT))
    return _built_in(model, features, model.encoding_width)


def _built_in(model: CIDAEstimator, features: int, outputs: int, dropout: float = 0.0) -> nn.Module:
    hidden, mode = model.choices_.hidden, model.choices_.index_mode
    if mode in ("frame", "axes"):
        parameters.check_frame(mode, model.space_, features)
        follow: Literal["path", "axes"] = "axes" if mode == "axes" else "path"
        return FramedEncoder(features, hidden, outputs, dropout, follow)
    index_width = model.space_.embedding_width
    if mode == "windows":  # it has dropout of its own, probabilistic or not
        return TabularEncoder(features, (), (), index_width, hidden, outputs)
    if model._index_is_input:
        return IndexedEncoder(features, index_width, hidden, outputs, dropout=dropout)
    return PlainEncoder(features, hidden, outputs, dropout)


def make_predictor(model: CIDAEstimator, width: int) -> nn.Module:
    """The user's predictor, or one for encodings of this width."""
    if model.predictor is not None:
        return copy.deepcopy(model.predictor)
    return MLP(width, model.predictor_hidden, model._output_width(), model.batch_norm)


def _make_discriminator(model: CIDAEstimator, rows: Rows) -> Discriminator:
    discriminator = choose_head(model, rows)
    discriminator.batch_norm = model.batch_norm
    return discriminator


def _probe(model: CIDAEstimator, encoder: nn.Module, rows: Rows) -> int:
    """The width of z, from the first rows; refuses an encoder that does not give vectors."""
    game = source_only(model, encoder.eval(), nn.Identity())
    first = rows[torch.arange(min(2, len(rows)))]
    with torch.no_grad(), parameters.naming("encoder", first.x.shape):
        z = game.encode(first.x, first.u)
    if z.dim() != 2:
        raise ValueError(
            f"encoder gives an output of shape {tuple(z.shape)} for {len(first)} rows; it "
            "must give one vector for each row: flatten it."
        )
    return int(z.shape[1])
