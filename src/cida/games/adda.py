"""ADDA: one merged source against one merged target, in two halves."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Self

import torch
from torch import nn

from cida.batch import Batch
from cida.games.base import Game, Move, Parts, PredictionLoss, cross_entropy, frozen, resting
from cida.games.merged import CEILING, SideDiscriminator
from cida.space import Space

__all__ = ["ADDA"]


class ADDA(Game):
    """First ``min_{E,F} V_p``; then E_s = E stands still, and ``min_E -log P(D(E(x^t)) = source)``.

    Adversarial discriminative domain adaptation (Tzeng et al., CVPR 2017): the encoder of the
    target starts as the source's, and learns to be taken for it, by the loss with inverted labels.
    The index is merged into two groups. The predictor stays as the source left it. The trained
    model has the target's encoder, for source rows too. Under the ``ceiling`` the encoder moves
    only while the discriminator tells the groups apart, below log 2.
    """

    def __init__(
        self,
        encoder: nn.Module,
        predictor: nn.Module,
        discriminator: SideDiscriminator,
        space: Space,
        prediction_loss: PredictionLoss = cross_entropy,
        index_in_encoder: bool = True,
        lambda_d: float = 1.0,
        discriminator_steps: int = 2,
        ceiling: bool = True,
        pretraining: float = 0.5,
    ) -> None:
        super().__init__(encoder, predictor, space, prediction_loss, index_in_encoder)
        self.discriminator = discriminator
        self.lambda_d = lambda_d
        self.discriminator_steps = discriminator_steps
        self.ceiling = ceiling
        self.pretraining = pretraining
        self.source_encoder: nn.Module | None = None

    @classmethod
    def assemble(cls, parts: Parts) -> Self:
        return cls(
            parts.encoder,
            parts.predictor,
            SideDiscriminator(parts.adversary(1)),
            parts.space,
            parts.prediction_loss,
            parts.index_in_encoder,
            parts.lambda_d,
            parts.discriminator_steps,
            parts.ceiling,
        )

    def players(self) -> dict[str, list[nn.Parameter]]:
        return {"discriminator": list(self.discriminator.parameters()), **super().players()}

    def progress(self, done: float) -> None:
        if done >= self.pretraining and self.source_encoder is None:
            self.source_encoder = copy.deepcopy(self.encoder).requires_grad_(False).eval()

    def moves(self, source: Batch, everyone: Batch) -> Iterator[Move]:
        if self.source_encoder is None:
            value = self.prediction_value(self.encode(source.x, source.u), source)
            yield Move("encoder", {"predictor": value}, figures={"prediction": value})
        else:
            yield from self._adapt(source, everyone)

    def _adapt(self, source: Batch, everyone: Batch) -> Iterator[Move]:
        target = ~everyone.labelled
        if not bool(target.any()):
            return
        with torch.no_grad(), resting(self.predictor):
            z_source = self.encode(source.x, source.u, self.source_encoder)
            prediction = self.prediction_value(z_source, source)
        z_target = self.encode(everyone.x[target], everyone.u[target])
        z = torch.cat([z_source, z_target])
        side = torch.arange(len(z)) >= len(z_source)

        for _ in range(self.discriminator_steps):
            value = self.discriminator.loss(z.detach(), side)
            yield Move("discriminator", {"discriminator": value})

        with frozen(self.discriminator):
            odds = self.discriminator(z)
        value = self.discriminator.score(odds, side).detach()
        # Inverted labels: the loss of the belief that target rows are source rows.
        inverted = nn.functional.softplus(odds[side]).mean()
        feels = not self.ceiling or float(value) < CEILING
        yield Move(
            "encoder",
            {"encoder": self.lambda_d * (inverted if feels else 0 * inverted)},
            figures={"prediction": prediction, "discriminator": value},
            ceilings={"discriminator": value.new_tensor(CEILING)},
        )
