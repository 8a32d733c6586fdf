"""Fitted networks over many rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from cida.array_checks import Array
from cida.data import IndexedDataset
from cida.estimators.scaling import Scaler
from cida.games import Game
from cida.indexing import evenly_spaced
from cida.networks import fixed_draw, is_stochastic

__all__ = ["NetworkFunction", "compute_outputs", "is_probabilistic", "prediction_network"]

NetworkFunction = Callable[[Tensor, Tensor], Tensor]

# Rows that go through the networks at once. Always this many, the last chunk padded: matrix
# products round differently for different shapes, and the prediction of a row must not depend on
# which other rows it came with.
FORWARD_CHUNK_ROWS = 256
MAX_RESIDUAL_ROWS = 10_000  # enough for a variance


@torch.no_grad()
def compute_outputs(network: NetworkFunction, scaler: Scaler, x: Array, u: Tensor) -> Array:
    """What the network gives for each row; refuses outputs that are not finite."""
    parts = []
    for start in range(0, len(x), FORWARD_CHUNK_ROWS):
        rows = slice(start, start + FORWARD_CHUNK_ROWS)
        parts.append(network(_pad(scaler.transform(x[rows])), _pad(u[rows])))
    output: Array = torch.cat(parts)[: len(x)].numpy()
    if not np.isfinite(output).all():
        raise ValueError(
            f"X gives outputs that are not finite (its largest value is {np.abs(x).max():.3g}); "
            "look for values far beyond those that the model was fitted on."
        )
    return output


def is_probabilistic(game: Game) -> bool:
    """Whether a player draws, so that predictions are means over draws."""
    return is_stochastic(game.encoder) or is_stochastic(game.predictor)


def prediction_network(
    game: Game, n_draws: int, merge: Callable[[Tensor], Tensor]
) -> NetworkFunction:
    """What predicts: one pass, or one for each draw, merged, where a player is probabilistic."""
    if not is_probabilistic(game):
        return game.predict
    # Not the game: its other players must not move a layer's place, and a loaded model has none.
    players = nn.ModuleList([game.encoder, game.predictor])

    def network(x: Tensor, u: Tensor) -> Tensor:
        draw_outputs = []
        for draw in range(n_draws):
            with fixed_draw(players, draw):
                draw_outputs.append(game.predict(x, u))
        return merge(torch.stack(draw_outputs))

    return network


@torch.no_grad()
def residual_variance(network: NetworkFunction, dataset: IndexedDataset) -> float:
    """``E^s (y - F(E(x, u)))^2``: the mean squared error on source rows, weighted as in training.

    y is as it was trained on; of very many rows, evenly spaced ones count.
    """
    squares = weights = 0.0
    sample_rows = dataset.source_rows[evenly_spaced(len(dataset.source_rows), MAX_RESIDUAL_ROWS)]
    for part in torch.split(sample_rows, FORWARD_CHUNK_ROWS):
        batch = dataset[part]
        predicted = network(_pad(batch.x), _pad(batch.u))[: len(batch), :1]
        squared_errors = (predicted.double() - batch.y).square().sum(1)
        squares += float((batch.weight * squared_errors).sum())
        weights += float(batch.weight.sum())
    return squares / weights


def _pad(rows: Tensor) -> Tensor:
    n_padding = FORWARD_CHUNK_ROWS - len(rows)
    return torch.cat([rows, rows.new_zeros(n_padding, *rows.shape[1:])]) if n_padding else rows
