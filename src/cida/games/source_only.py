"""Source-Only: a model that never sees the target."""

from __future__ import annotations

from collections.abc import Iterator

from cida.data import Batch
from cida.games.base import Game, Move

__all__ = ["SourceOnly"]


class SourceOnly(Game):
    """``min_{E,F} V_p(E, F)``: eq. 1 with lambda_d = 0, the baseline of every table.

    Only what was done to x before, such as scaling it over all rows, has seen the target.

    Parameters
    ----------
    encoder : torch.nn.Module
        E, from x (and the embedded index) to z.
    predictor : torch.nn.Module
        F, from z to the output.
    space : Space
        The fitted space of the index.
    prediction_loss : callable, default cross_entropy
        ``L_p(output, y)``, one number a row.
    index_in_encoder : bool, default True
        Whether the encoder is called with the embedded index.
    """

    def moves(self, source: Batch, pooled: Batch) -> Iterator[Move]:
        value = self.mean_prediction_loss(self.encode(source.x, source.u), source)
        yield Move("encoder", {"predictor": value}, metrics={"prediction": value})
