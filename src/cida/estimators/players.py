"""The players of an estimator's game, made for its data."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import nn

from cida.coordinates import SupportsFitIndex
from cida.data import IndexedDataset
from cida.discriminators import Discriminator
from cida.estimators import parameters
from cida.estimators.choices import choose_head
from cida.games import Game, GameParts, SourceOnly, get_game_class
from cida.indexing import evenly_spaced, subsample
from cida.networks import (
    MLP,
    FramedEncoder,
    GaussianEncoder,
    IndexedEncoder,
    PlainEncoder,
    TabularEncoder,
    convert_dropout,
)

if TYPE_CHECKING:
    from cida.estimators.base import CIDAEstimator

__all__ = ["build_game", "make_encoder", "make_predictor", "make_source_only_game"]


MAX_ENCODER_FIT_ROWS = 50_000  # enough to see how x moves along u
ENCODER_DROPOUT = 0.1  # the share dropped in a probabilistic encoder: that of `TabularEncoder`


def build_game(model: CIDAEstimator, dataset: IndexedDataset, has_target: bool) -> Game:
    """The game of this estimator for these rows; Source-Only where there is nothing to adapt to."""
    encoder = make_encoder(model, model._row_shape)
    if isinstance(encoder, SupportsFitIndex):
        sample = dataset[evenly_spaced(len(dataset), MAX_ENCODER_FIT_ROWS)]
        encoder.fit_index(sample.x, model.space_.embed(sample.u))
    width = _measure_encoding_width(model, encoder, dataset)
    predictor = make_predictor(model, width)
    model._n_features_out = width
    outputs = model._output_width()
    parameters.check_predictor(predictor.eval(), width, outputs)
    if not has_target:
        return make_source_only_game(model, encoder, predictor)
    parts = GameParts(
        encoder=encoder,
        predictor=predictor,
        space=model.space_,
        u=subsample(dataset.u),
        encoding_width=width,
        output_width=outputs,
        discriminator=_make_discriminator(model, dataset),
        prediction_loss=model._prediction_loss(),
        index_in_encoder=model._has_index_input,
        lambda_d=model.plan_.lambda_d,
        discriminator_steps=model.discriminator_steps,
        ceiling=model.ceiling,
    )
    return get_game_class(model.game).assemble(parts)


def make_source_only_game(model: CIDAEstimator, encoder: nn.Module, predictor: nn.Module) -> Game:
    """The game without an adversary: also what a loaded model predicts with."""
    loss = model._prediction_loss()
    return SourceOnly(encoder, predictor, model.space_, loss, model._has_index_input)


def make_encoder(model: CIDAEstimator, shape: Sequence[int]) -> nn.Module:
    """The user's encoder, or one for rows of this shape."""
    if model.encoder is not None:
        return copy.deepcopy(model.encoder)
    features = int(np.prod(shape))
    if model.stochastic == "gaussian":
        return GaussianEncoder(_make_built_in_encoder(model, features, 2 * model.encoding_width))
    if model.stochastic == "dropout":
        return convert_dropout(
            _make_built_in_encoder(model, features, model.encoding_width, ENCODER_DROPOUT)
        )
    return _make_built_in_encoder(model, features, model.encoding_width)


def _make_built_in_encoder(
    model: CIDAEstimator, features: int, outputs: int, dropout: float = 0.0
) -> nn.Module:
    hidden, mode = model.plan_.encoder_hidden, model.plan_.coordinates
    if mode in ("moving-frame", "principal-axes"):
        parameters.check_moving_frame(mode, model.space_, features)
        follow: Literal["path", "axes"] = "axes" if mode == "principal-axes" else "path"
        return FramedEncoder(features, hidden, outputs, dropout, follow)
    index_width = model.space_.embedding_width
    if mode == "windows":  # it has dropout of its own, probabilistic or not
        return TabularEncoder(features, (), (), index_width, hidden, outputs)
    if model._has_index_input:
        return IndexedEncoder(features, index_width, hidden, outputs, dropout=dropout)
    return PlainEncoder(features, hidden, outputs, dropout)


def make_predictor(model: CIDAEstimator, width: int) -> nn.Module:
    """The user's predictor, or one for encodings of this width."""
    if model.predictor is not None:
        return copy.deepcopy(model.predictor)
    return MLP(width, model.predictor_hidden, model._output_width(), model.batch_norm)


def _make_discriminator(model: CIDAEstimator, dataset: IndexedDataset) -> Discriminator:
    discriminator = choose_head(model, dataset)
    discriminator.batch_norm = model.batch_norm
    return discriminator


def _measure_encoding_width(
    model: CIDAEstimator, encoder: nn.Module, dataset: IndexedDataset
) -> int:
    """The width of z, from the first rows; refuses an encoder that does not give vectors."""
    game = make_source_only_game(model, encoder.eval(), nn.Identity())
    first_rows = dataset[torch.arange(min(2, len(dataset)))]
    with torch.no_grad(), parameters.name_argument_in_errors("encoder", first_rows.x.shape):
        z = game.encode(first_rows.x, first_rows.u)
    if z.dim() != 2:
        raise ValueError(
            f"encoder gives an output of shape {tuple(z.shape)} for {len(first_rows)} rows; it "
            "must give one vector for each row: flatten it."
        )
    return int(z.shape[1])
