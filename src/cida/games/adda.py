"""ADDA: one merged source against one merged target, in two halves."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from cida.batch import Batch
from cida.games.base import Move, Parts, frozen, resting
from cida.games.contested import Contested
from cida.games.merged import CEILING, SideDiscriminator
from cida.ranks import anywhere, mean

__all__ = ["ADDA"]


class ADDA(Contested[SideDiscriminator]):
    """First ``min_{E,F} V_p``; then E_s = E stands still, and ``min_E -log P(D(E(x^t)) = source)``.

    Adversarial discriminative domain adaptation (Tzeng et al., CVPR 2017): the encoder of the
    target starts as the source's, and learns to be taken for it, by the loss with inverted labels.
    The index is merged into two groups. The predictor stays as the source left it. The trained
    model has the target's encoder, for source rows too. Under the ``ceiling`` the encoder moves
    only while the discriminator tells the groups apart, below log 2.
    """

    pretraining = 0.5  # the share of the rounds before the target's turn

    def __init__(self, *players: Any, **settings: Any) -> None:
        super().__init__(*players, **settings)
        self.source_encoder: nn.Module | None = None

    @classmethod
    def make_adversary(cls, parts: Parts) -> SideDiscriminator:
        return SideDiscriminator(parts.adversary(1))

    def progress(self, done: float) -> None:
        if done >= self.pretraining and self.source_encoder is None:
            self._part()

    def _part(self) -> None:
        """From here on the source's encoder stands still."""
        self.source_encoder = copy.deepcopy(self.encoder).requires_grad_(False).eval()

    def restore(self, state: Mapping[str, Tensor]) -> None:
        if any(name.startswith("source_encoder.") for name in state):
            self._part()
        super().restore(state)

    def moves(self, source: Batch, everyone: Batch) -> Iterator[Move]:
        if self.source_encoder is None:
            value = self.prediction_value(self.encode(source.x, source.u), source)
            yield Move("encoder", {"predictor": value}, figures={"prediction": value})
        else:
            yield from self._adapt(source, everyone)

    def _adapt(self, source: Batch, everyone: Batch) -> Iterator[Move]:
        target = ~everyone.labelled
        if not anywhere(bool(target.any())):
            return
        with torch.no_grad(), resting(self.predictor):
            z_source = self.encode(source.x, source.u, self.source_encoder)
            prediction = self.prediction_value(z_source, source)
        z_target = self.encode(everyone.x[target], everyone.u[target])
        z = torch.cat([z_source, z_target])
        side = torch.arange(len(z), device=z.device) >= len(z_source)

        for _ in range(self.discriminator_steps):
            value = self.discriminator.loss(z.detach(), side)
            yield Move("discriminator", {"discriminator": value})

        with frozen(self.discriminator):
            odds = self.discriminator(z)
        value = self.discriminator.score(odds, side).detach()
        # Inverted labels: the loss of the belief that target rows are source rows.
        inverted = mean(nn.functional.softplus(odds[side]))
        feels = not self.ceiling or float(value) < CEILING
        yield Move(
            "encoder",
            {"encoder": self.lambda_d * (inverted if feels else 0 * inverted)},
            figures={"prediction": prediction, "discriminator": value},
            ceilings={"discriminator": value.new_tensor(CEILING)},
        )
