"""Fitted networks over many rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from cida.batch import Rows
from cida.estimators.inputs import Array
from cida.estimators.scaling import Scaling
from cida.games import Game
from cida.networks import drawing
from cida.space import thinned

__all__ = ["Network", "outputs", "over_draws", "residual_variance"]

Network = Callable[[Tensor, Tensor], Tensor]

# Rows that go through the networks at once. Always this many, the last chunk padded: matrix
# products round differently for different shapes, and the prediction of a row must not depend on
# which other rows it came with.
ROWS = 256
MOST_RESIDUALS = 10_000  # enough for a variance


@torch.no_grad()
def outputs(network: Network, scaling: Scaling, x: Array, u: Tensor) -> Array:
    """What the network gives for each row; refuses outputs that are not finite."""
    parts = []
    for start in range(0, len(x), ROWS):
        rows = slice(start, start + ROWS)
        parts.append(network(_padded(scaling.apply(x[rows])), _padded(u[rows])))
    output: Array = torch.cat(parts)[: len(x)].numpy()
    if not np.isfinite(output).all():
        raise ValueError(
            f"X gives outputs that are not finite (its largest value is {np.abs(x).max():.3g}); "
            "look for values far beyond those that the model was fitted on."
        )
    return output


def over_draws(game: Game, draws: int, merged: Callable[[Tensor], Tensor]) -> Network:
    """The network that predicts with each draw of the players and merges what they give."""
    # Not the game: its other players must not move a layer's place, and a loaded model has none.
    drawn = nn.ModuleList([game.encoder, game.predictor])

    def network(x: Tensor, u: Tensor) -> Tensor:
        found = []
        for draw in range(draws):
            with drawing(drawn, draw):
                found.append(game.predict(x, u))
        return merged(torch.stack(found))

    return network


@torch.no_grad()
def residual_variance(network: Network, rows: Rows) -> float:
    """``E^s (y - F(E(x, u)))^2``: the mean squared error on source rows, weighted as in training.

    y is as it was trained on; of very many rows, evenly spaced ones count.
    """
    squares = weights = 0.0
    some = rows.sources[thinned(len(rows.sources), MOST_RESIDUALS)]
    for part in torch.split(some, ROWS):
        batch = rows[part]
        predicted = network(_padded(batch.x), _padded(batch.u))[: len(batch), :1]
        missed = (predicted.double() - batch.y).square().sum(1)
        squares += float((batch.weight * missed).sum())
        weights += float(batch.weight.sum())
    return squares / weights


def _padded(rows: Tensor) -> Tensor:
    missing = ROWS - len(rows)
    return torch.cat([rows, rows.new_zeros(missing, *rows.shape[1:])]) if missing else rows
