"""What all games with one adversary share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, Self, TypeVar

import torch
from torch import Tensor, nn

from cida.data import Batch
from cida.distributed import sum_over_ranks, world_size
from cida.games.base import Game, GameParts, Move, PredictionLoss, cross_entropy, freeze
from cida.spaces import Space

__all__ = ["MinimaxGame"]

A = TypeVar("A", bound=nn.Module)


class MinimaxGame(Game, Generic[A]):
    """``min_{E,F} max_D V_p(E, F) - lambda_d min(V, c*)``: encoder and predictor against D.

    In each round D makes ``discriminator_steps`` moves on the same encodings. With the ``ceiling``
    the encoder gets no adversarial gradient where V is above c*. A subclass defines
    `make_adversary` and `moves`, usually with the help of `minimax_moves`.

    Parameters
    ----------
    encoder : torch.nn.Module
        E, from x (and the embedded index) to z.
    predictor : torch.nn.Module
        F, from z to the output.
    discriminator : torch.nn.Module
        D, the adversary.
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

    discriminator: A

    def __init__(
        self,
        encoder: nn.Module,
        predictor: nn.Module,
        discriminator: A,
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
    def assemble(cls, parts: GameParts) -> Self:
        return cls(
            parts.encoder,
            parts.predictor,
            cls.make_adversary(parts),
            parts.space,
            parts.prediction_loss,
            parts.index_in_encoder,
            parts.lambda_d,
            parts.discriminator_steps,
            parts.ceiling,
        )

    @classmethod
    @abstractmethod
    def make_adversary(cls, parts: GameParts) -> A:
        """Make D for these parts."""

    def player_parameters(self) -> dict[str, list[nn.Parameter]]:
        return {
            "discriminator": list(self.discriminator.parameters()),
            **super().player_parameters(),
        }

    def encode_source_and_target(self, source: Batch, pooled: Batch) -> tuple[Tensor, Tensor]:
        """Return z of the source batch, and the same followed by z of the pooled target rows."""
        z_source, z = self.encode_both(source, pooled)
        return z_source, torch.cat([z_source, z[~pooled.labelled]])

    def minimax_moves(
        self,
        prediction_losses: Mapping[str, Tensor],
        inputs: Tensor,
        loss_fn: Callable[[Tensor], Tensor],
        ceiling: Tensor | float,
    ) -> Iterator[Move]:
        """Yield the moves of D on its inputs, then the encoder's with the prediction losses."""
        for _ in range(self.discriminator_steps):
            yield Move("discriminator", {"discriminator": loss_fn(inputs.detach())})

        with freeze(self.discriminator):
            value = loss_fn(inputs)
        yield Move(
            "encoder",
            {**prediction_losses, "encoder": self.adversarial_term(value, ceiling)},
            metrics={"prediction": prediction_losses["predictor"], "discriminator": value},
            ceilings={"discriminator": torch.as_tensor(ceiling)},
        )

    def adversarial_term(self, value: Tensor, ceiling: Tensor | float) -> Tensor:
        """``-lambda_d min(V, c*)``, or ``-lambda_d V`` without the ceiling."""
        if not self.ceiling:
            return -self.lambda_d * value
        if world_size() == 1:
            return -self.lambda_d * value.clamp(max=ceiling)
        sum_value, sum_ceiling = sum_over_ranks(float(value), float(ceiling))
        return -self.lambda_d * (value if sum_value <= sum_ceiling else 0 * value + ceiling)
