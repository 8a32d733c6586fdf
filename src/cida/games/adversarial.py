"""The three-player game of the paper, with any discriminator."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from cida.batch import Batch, Rows
from cida.discriminators import Discriminator
from cida.games.base import Move, Parts, joined
from cida.games.contested import Contested
from cida.ranks import mean
from cida.scratch import few

__all__ = ["Adversarial"]


class Adversarial(Contested[Discriminator]):
    """``min_{E,F} max_D V_p(E, F) - lambda_d min(V_d(D, E), c*)`` (eq. 1, under the ceiling).

    With the head `L2` it is CIDA, with `Gaussian` PCIDA, with `Histogram` the head that sees all
    moments. c* is the loss of the best belief that ignores z. No encoder can push a discriminator
    that plays well beyond it, so above c* the encoder would only be exploiting one that lags:
    there it takes no adversarial gradient. ``ceiling=False`` gives the plain eq. 1. In each round
    the discriminator makes ``discriminator_steps`` moves on the same encodings.
    """

    uses_head = True

    @classmethod
    def make_adversary(cls, parts: Parts) -> Discriminator:
        seen = cls.evidence_width(parts.encoding_width, parts.output_width)
        return parts.discriminator.build(seen, parts.space, parts.u)

    @staticmethod
    def evidence_width(encoding_width: int, output_width: int) -> int:
        """How many numbers the discriminator sees of a row."""
        return encoding_width

    def evidence(self, z: Tensor, batch: Batch) -> Tensor:
        """What the discriminator sees of these rows: their encodings."""
        return z

    def enter_stage(self, rows: Rows, active: Tensor, weights: Tensor) -> None:
        self.discriminator.fit_blind(rows.u[few(active)], few(weights))

    def moves(self, source: Batch, everyone: Batch) -> Iterator[Move]:
        z_both = self.encode(*joined(source, everyone))
        z_source, z = torch.split(z_both, [len(source), len(everyone)])
        head = self.discriminator
        target = head.target(everyone.u).to(z.dtype)
        yield from self.contest(
            {"predictor": self.prediction_value(z_source, source)},
            self.evidence(z, everyone),
            lambda seen: mean(head.score(head(seen), target)),
            mean(head.blind_score(target)),
        )
