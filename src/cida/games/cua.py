"""CUA: one target bin after another, from near to far, with replay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from cida.batch import Batch, Rows
from cida.games.base import Move, Parts, joined, resting
from cida.games.contested import Contested
from cida.games.memory import Memory
from cida.games.merged import CEILING, SideDiscriminator
from cida.ranks import anywhere, mean

__all__ = ["CUA"]


class CUA(Contested[SideDiscriminator]):
    """``min_{E,F} max_D V_p(E, F) + V_r(E, F) - lambda_d min(V_d(D, E), log 2)``, bin after bin.

    Continuous unsupervised adaptation (Bobu et al., 2018). Each stage of the curriculum adds a bin:
    D tells its rows from all known ones, and E hides the difference. When the next stage begins,
    the bin's labels are predicted once and remembered; from then on its rows are replayed with
    them (V_r, the prediction loss on remembered labels) and count as known.
    """

    newest_share = 0.5
    least_curriculum = 0.9

    def __init__(self, *players: Any, **settings: Any) -> None:
        super().__init__(*players, **settings)
        self.memory = Memory()

    def state(self) -> dict[str, Tensor]:
        return {**super().state(), **self.memory.state()}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        super().restore(self.memory.restore(state))

    @classmethod
    def make_adversary(cls, parts: Parts) -> SideDiscriminator:
        return SideDiscriminator(parts.adversary(1))

    def enter_stage(self, rows: Rows, active: Tensor, weights: Tensor) -> None:
        with resting(self):
            self.memory.enter_stage(rows, active, self.predict)

    def moves(self, source: Batch, everyone: Batch) -> Iterator[Move]:
        z_both = self.encode(*joined(source, everyone))
        z_source, z = torch.split(z_both, [len(source), len(everyone)])
        known = self.memory.knows(everyone)
        losses = self._predictions(z_source, source, z, everyone)
        if not anywhere(not bool(known.all())):
            yield Move("encoder", losses, figures={"prediction": losses["predictor"]})
            return
        value_of = partial(self.discriminator.loss, second=~known)
        yield from self.contest(losses, z, value_of, CEILING)

    def _predictions(
        self, z_source: Tensor, source: Batch, z: Tensor, everyone: Batch
    ) -> dict[str, Tensor]:
        """``V_p``, and ``V_r``: the mean loss of target rows on the labels remembered of them."""
        rows, labels = self.memory.replay(everyone)
        output = self.predictor(torch.cat([z_source, z[rows]]))
        missed = self.prediction_loss(output, torch.cat([source.y, labels]))
        losses = {"predictor": mean(source.weight * missed[: len(source)])}
        if anywhere(bool(rows.any())):
            losses["replay"] = mean(missed[len(source) :])
        return losses
