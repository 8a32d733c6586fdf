"""DANN with one target domain: the merged source against the merged target."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from cida.batch import Batch
from cida.games.base import Move, Parts
from cida.games.contested import Contested
from cida.games.merged import CEILING, SideDiscriminator
from cida.ranks import anywhere

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
        if not anywhere(len(z) > len(z_source)):
            yield Move("encoder", {"predictor": prediction}, figures={"prediction": prediction})
            return
        side = torch.arange(len(z), device=z.device) >= len(z_source)
        value_of = partial(self.discriminator.loss, second=side)
        yield from self.contest({"predictor": prediction}, z, value_of, CEILING)
