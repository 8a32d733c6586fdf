"""The three-player game of the paper, with any discriminator."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from cida.data import Batch, IndexedDataset
from cida.discriminators import Discriminator
from cida.distributed import mean_over_ranks
from cida.games.base import GameParts, Move, concatenate
from cida.games.minimax import MinimaxGame
from cida.scratch import subsample

__all__ = ["Adversarial"]


class Adversarial(MinimaxGame[Discriminator]):
    """``min_{E,F} max_D V_p(E, F) - lambda_d min(V_d(D, E), c*)`` (eq. 1, under the ceiling).

    With the head `L2` it is CIDA, with `Gaussian` PCIDA, with `Histogram` the head that sees all
    moments. c* is the loss of the best belief that ignores z. No encoder can push a discriminator
    that plays well beyond it, so above c* the encoder would only be exploiting one that lags:
    there it takes no adversarial gradient. ``ceiling=False`` gives the plain eq. 1. In each round
    the discriminator makes ``discriminator_steps`` moves on the same encodings.
    """

    uses_head = True

    @classmethod
    def make_adversary(cls, parts: GameParts) -> Discriminator:
        input_width = cls.discriminator_input_width(parts.encoding_width, parts.output_width)
        return parts.discriminator.build(input_width, parts.space, parts.u)

    @staticmethod
    def discriminator_input_width(encoding_width: int, output_width: int) -> int:
        """How many numbers the discriminator sees of a row."""
        return encoding_width

    def discriminator_input(self, z: Tensor, batch: Batch) -> Tensor:
        """What the discriminator sees of these rows: their encodings."""
        return z

    def enter_stage(self, dataset: IndexedDataset, active: Tensor, weights: Tensor) -> None:
        self.discriminator.fit_marginal(dataset.u[subsample(active)], subsample(weights))

    def moves(self, source: Batch, pooled: Batch) -> Iterator[Move]:
        z_both = self.encode(*concatenate(source, pooled))
        z_source, z = torch.split(z_both, [len(source), len(pooled)])
        head = self.discriminator
        target = head.target(pooled.u).to(z.dtype)
        yield from self.minimax_moves(
            {"predictor": self.mean_prediction_loss(z_source, source)},
            self.discriminator_input(z, pooled),
            lambda seen: mean_over_ranks(head.score(head(seen), target)),
            mean_over_ranks(head.marginal_loss(target)),
        )
