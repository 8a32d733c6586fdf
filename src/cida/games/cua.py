"""CUA: one target bin after another, from near to far, with replay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import torch
from torch import Tensor, nn

from cida.batch import Batch, Rows
from cida.games.base import (
    Game,
    Move,
    Parts,
    PredictionLoss,
    cross_entropy,
    frozen,
    joined,
    resting,
)
from cida.games.memory import Memory
from cida.games.merged import CEILING, SideDiscriminator
from cida.space import Space

__all__ = ["CUA"]


class CUA(Game):
    """``min_{E,F} max_D V_p(E, F) + V_r(E, F) - lambda_d min(V_d(D, E), log 2)``, bin after bin.

    Continuous unsupervised adaptation (Bobu et al., 2018). Each stage of the curriculum adds a bin:
    D tells its rows from all known ones, and E hides the difference. When the next stage begins,
    the bin's labels are predicted once and remembered; from then on its rows are replayed with
    them (V_r, the prediction loss on remembered labels) and count as known.
    """

    newest_share = 0.5
    least_curriculum = 0.9

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
    ) -> None:
        super().__init__(encoder, predictor, space, prediction_loss, index_in_encoder)
        self.discriminator = discriminator
        self.lambda_d = lambda_d
        self.discriminator_steps = discriminator_steps
        self.ceiling = ceiling
        self.memory = Memory()

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

    def enter_stage(self, rows: Rows, active: Tensor, weights: Tensor) -> None:
        with resting(self):
            self.memory.enter_stage(rows, active, self.predict)

    def moves(self, source: Batch, everyone: Batch) -> Iterator[Move]:
        z_both = self.encode(*joined(source, everyone))
        z_source, z = torch.split(z_both, [len(source), len(everyone)])
        known = self.memory.knows(everyone)
        losses = self._predictions(z_source, source, z, everyone)
        figures = {"prediction": losses["predictor"]}
        if bool(known.all()):
            yield Move("encoder", losses, figures=figures)
            return

        for _ in range(self.discriminator_steps):
            value = self.discriminator.loss(z.detach(), ~known)
            yield Move("discriminator", {"discriminator": value})

        with frozen(self.discriminator):
            value = self.discriminator.loss(z, ~known)
        reachable = value.clamp(max=CEILING) if self.ceiling else value
        yield Move(
            "encoder",
            {**losses, "encoder": -self.lambda_d * reachable},
            figures={**figures, "discriminator": value},
            ceilings={"discriminator": value.new_tensor(CEILING)},
        )

    def _predictions(
        self, z_source: Tensor, source: Batch, z: Tensor, everyone: Batch
    ) -> dict[str, Tensor]:
        """``V_p``, and ``V_r``: the mean loss of target rows on the labels remembered of them."""
        rows, labels = self.memory.replay(everyone)
        output = self.predictor(torch.cat([z_source, z[rows]]))
        missed = self.prediction_loss(output, torch.cat([source.y, labels]))
        losses = {"predictor": (source.weight * missed[: len(source)]).mean()}
        if bool(rows.any()):
            losses["replay"] = missed[len(source) :].mean()
        return losses
