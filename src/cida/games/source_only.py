"""Source-Only: what a model does that never looks at the target."""

from __future__ import annotations

from collections.abc import Iterator

from cida.data import Batch
from cida.games.base import Game, Move

__all__ = ["SourceOnly"]


class SourceOnly(Game):
    """``min_{E,F} V_p(E, F)``: eq. 1 with lambda_d = 0, the baseline of every table.

    Only what is done to x before, such as scaling it over all rows, has seen the target.
    """

    def moves(self, source: Batch, pooled: Batch) -> Iterator[Move]:
        value = self.mean_prediction_loss(self.encode(source.x, source.u), source)
        yield Move("encoder", {"predictor": value}, metrics={"prediction": value})
