"""The three-player game of the paper, with any discriminator."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from cida.data import Batch, IndexedDataset
from cida.discriminators import Discriminator
from cida.distributed import mean_over_ranks
from cida.games.base import GameParts, Move
from cida.games.minimax import MinimaxGame
from cida.indexing import subsample

__all__ = ["Adversarial"]


class Adversarial(MinimaxGame[Discriminator]):
    """``min_{E,F} max_D V_p(E, F) - lambda_d min(V_d(D, E), c*)`` (eq. 1, under the ceiling).

    With the head `L2` it is CIDA, with `Gaussian` PCIDA, and with `Histogram` all moments of p(u|z)
    are aligned. The ceiling c* is the loss of the best parameters that ignore z. No encoder can
    push an optimal discriminator above it, so above c* the encoder would only exploit a
    discriminator that lags behind: there it gets no adversarial gradient. ``ceiling=False`` gives
    the plain eq. 1.

    Parameters
    ----------
    encoder : torch.nn.Module
        E, from x (and the embedded index) to z.
    predictor : torch.nn.Module
        F, from z to the output.
    discriminator : Discriminator
        D, built for the width of z.
    space : Space
        The fitted space of the index.
    prediction_loss : callable, default cross_entropy
        ``L_p(output, y)``, one number a row.
    index_in_encoder : bool, default True
        Whether the encoder is called with the embedded index.
    lambda_d : float, default 1.0
        Weight of the adversarial term.
    discriminator_steps : int, default 2
        Moves of the discriminator in each round.
    ceiling : bool, default True
        Whether the adversarial gradient stops above the ceiling c*.
    """

    uses_head = True

    @classmethod
    def make_adversary(cls, parts: GameParts) -> Discriminator:
        input_width = cls.discriminator_input_width(parts.encoding_width, parts.output_width)
        return parts.discriminator.build(input_width, parts.space, parts.u)

    @staticmethod
    def discriminator_input_width(encoding_width: int, output_width: int) -> int:
        """Number of columns that the discriminator sees of a row."""
        return encoding_width

    def discriminator_input(self, z: Tensor, batch: Batch) -> Tensor:
        """Return what the discriminator sees of these rows: their encodings."""
        return z

    def enter_stage(self, dataset: IndexedDataset, active: Tensor, weights: Tensor) -> None:
        self.discriminator.fit_marginal(dataset.u[subsample(active)], subsample(weights))

    def moves(self, source: Batch, pooled: Batch) -> Iterator[Move]:
        z_source, z = self.encode_both(source, pooled)
        head = self.discriminator
        target = head.target(pooled.u).to(z.dtype)
        yield from self.minimax_moves(
            {"predictor": self.mean_prediction_loss(z_source, source)},
            self.discriminator_input(z, pooled),
            lambda seen: mean_over_ranks(head.score(head(seen), target), total=pooled.global_rows),
            mean_over_ranks(head.marginal_loss(target), total=pooled.global_rows),
        )
