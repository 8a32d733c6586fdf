"""The three-player game of the paper, with any discriminator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import torch
from torch import Tensor, nn

from cida.batch import Batch, Rows
from cida.discriminators import Discriminator
from cida.games.base import Game, Move, Parts, PredictionLoss, cross_entropy, frozen, joined
from cida.space import Space

__all__ = ["Adversarial"]


class Adversarial(Game):
    """``min_{E,F} max_D V_p(E, F) - lambda_d min(V_d(D, E), c*)`` (eq. 1, under the ceiling).

    With the head `L2` it is CIDA, with `Gaussian` PCIDA, with `Histogram` the head that sees all
    moments. c* is the loss of the best belief that ignores z. No encoder can push a discriminator
    that plays well beyond it, so above c* the encoder would only be exploiting one that lags:
    there it takes no adversarial gradient. ``ceiling=False`` gives the plain eq. 1. In each round
    the discriminator makes ``discriminator_steps`` moves on the same encodings.
    """

    def __init__(
        self,
        encoder: nn.Module,
        predictor: nn.Module,
        discriminator: Discriminator,
        space: Space,
        prediction_loss: PredictionLoss = cross_entropy,
        index_in_encoder: bool = True,
        lambda_d: float = 1.0,
        discriminator_steps: int = 2,
        ceiling: bool = True,
    ) -> None:
        super().__init__(encoder, predictor, space, prediction_loss, index_in_encoder)
        self.discriminator = discriminator
        self.lambda_d = lambda_d
        self.discriminator_steps = discriminator_steps
        self.ceiling = ceiling

    @classmethod
    def assemble(cls, parts: Parts) -> Self:
        seen = cls.evidence_width(parts.encoding_width, parts.output_width)
        return cls(
            parts.encoder,
            parts.predictor,
            parts.discriminator.build(seen, parts.space, parts.u),
            parts.space,
            parts.prediction_loss,
            parts.index_in_encoder,
            parts.lambda_d,
            parts.discriminator_steps,
            parts.ceiling,
        )

    @staticmethod
    def evidence_width(encoding_width: int, output_width: int) -> int:
        """How many numbers the discriminator sees of a row."""
        return encoding_width

    def evidence(self, z: Tensor, batch: Batch) -> Tensor:
        """What the discriminator sees of these rows: their encodings."""
        return z

    def players(self) -> dict[str, list[nn.Parameter]]:
        return {"discriminator": list(self.discriminator.parameters()), **super().players()}

    def enter_stage(self, rows: Rows, active: Tensor, weights: Tensor) -> None:
        self.discriminator.fit_blind(rows.u[active], weights)

    def moves(self, source: Batch, everyone: Batch) -> Iterator[Move]:
        z_both = self.encode(*joined(source, everyone))
        z_source, z = torch.split(z_both, [len(source), len(everyone)])
        head, seen = self.discriminator, self.evidence(z, everyone)
        target = head.target(everyone.u).to(z.dtype)
        ceiling = head.blind_score(target).mean()

        for _ in range(self.discriminator_steps):
            value = head.score(head(seen.detach()), target).mean()
            yield Move("discriminator", {"discriminator": value})

        prediction = self.prediction_value(z_source, source)
        with frozen(head):
            value = head.score(head(seen), target).mean()
        reachable = torch.minimum(value, ceiling) if self.ceiling else value
        yield Move(
            "encoder",
            {"predictor": prediction, "encoder": -self.lambda_d * reachable},
            figures={"prediction": prediction, "discriminator": value},
            ceilings={"discriminator": ceiling},
        )
