"""DANN with one target domain: the merged source against the merged target."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from cida.batch import Batch
from cida.games.base import Move, Parts, frozen
from cida.games.contested import Contested
from cida.games.merged import CEILING, SideDiscriminator

__all__ = ["DANN"]


class DANN(Contested[SideDiscriminator]):
    """``min_{E,F} max_D V_p(E, F) - lambda_d min(V_d(D, E), log 2)``: source or target, no index.

    Domain-adversarial training (Ganin et al., JMLR 2016) as it was first written, for two domains:
    all source rows against all target rows. With more domains it is the `Adversarial` game with a
    `Histogram` of hard bins.
    """

    @classmethod
    def make_adversary(cls, parts: Parts) -> SideDiscriminator:
        return SideDiscriminator(parts.adversary(1))

    def moves(self, source: Batch, everyone: Batch) -> Iterator[Move]:
        z_source, z = self.encode_sides(source, everyone)
        prediction = self.prediction_value(z_source, source)
        if len(z) == len(z_source):
            yield Move("encoder", {"predictor": prediction}, figures={"prediction": prediction})
            return
        side = torch.arange(len(z)) >= len(z_source)

        for _ in range(self.discriminator_steps):
            value = self.discriminator.loss(z.detach(), side)
            yield Move("discriminator", {"discriminator": value})

        with frozen(self.discriminator):
            value = self.discriminator.loss(z, side)
        yield Move(
            "encoder",
            {"predictor": prediction, "encoder": self.encoders_share(value, CEILING)},
            figures={"prediction": prediction, "discriminator": value},
            ceilings={"discriminator": value.new_tensor(CEILING)},
        )
