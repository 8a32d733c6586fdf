"""DANN with one target domain: the merged source against the merged target."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from cida.data import Batch
from cida.distributed import any_rank
from cida.games.base import GameParts, Move
from cida.games.binary_domain import BINARY_CEILING, BinaryDomainClassifier
from cida.games.minimax import MinimaxGame

__all__ = ["DANN"]


class DANN(MinimaxGame[BinaryDomainClassifier]):
    """``min_{E,F} max_D V_p(E, F) - lambda_d min(V_d(D, E), log 2)``: source or target, no index.

    Domain-adversarial training (Ganin et al., JMLR 2016) as it was first written, for two domains:
    all source rows against all target rows. With more domains it is the `Adversarial` game with a
    `Histogram` of hard bins.
    """

    @classmethod
    def make_adversary(cls, parts: GameParts) -> BinaryDomainClassifier:
        return BinaryDomainClassifier(parts.build_adversary(1))

    def moves(self, source: Batch, pooled: Batch) -> Iterator[Move]:
        z_source, z = self.encode_source_and_target(source, pooled)
        prediction = self.mean_prediction_loss(z_source, source)
        if not any_rank(len(z) > len(z_source)):
            yield Move("encoder", {"predictor": prediction}, metrics={"prediction": prediction})
            return
        is_target = torch.arange(len(z), device=z.device) >= len(z_source)
        loss_fn = partial(self.discriminator.loss, second=is_target)
        yield from self.minimax_moves({"predictor": prediction}, z, loss_fn, BINARY_CEILING)
