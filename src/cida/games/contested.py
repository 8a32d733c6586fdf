"""What every game with an adversary shares."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, Self, TypeVar

import torch
from torch import Tensor, nn

from cida.batch import Batch
from cida.games.base import Game, Move, Parts, PredictionLoss, cross_entropy, frozen, joined
from cida.space import Space

__all__ = ["Contested"]

A = TypeVar("A", bound=nn.Module)


class Contested(Game, Generic[A]):
    """``min_{E,F} max_D V_p(E, F) - lambda_d min(V, c*)``: one player, D, against the encoder.

    In each round D makes ``discriminator_steps`` moves on the same encodings. With the ``ceiling``
    the encoder takes no adversarial gradient where V is above c*. A subclass says what D is
    (``make_adversary``) and deals the moves.
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
    def assemble(cls, parts: Parts) -> Self:
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
    def make_adversary(cls, parts: Parts) -> A:
        """D, for these parts."""

    def players(self) -> dict[str, list[nn.Parameter]]:
        return {"discriminator": list(self.discriminator.parameters()), **super().players()}

    def encode_sides(self, source: Batch, everyone: Batch) -> tuple[Tensor, Tensor]:
        """z of the source batch, and the same followed by that of the target rows of everyone."""
        z_both = self.encode(*joined(source, everyone))
        z_source, z = torch.split(z_both, [len(source), len(everyone)])
        return z_source, torch.cat([z_source, z[~everyone.labelled]])

    def contest(
        self,
        predictions: Mapping[str, Tensor],
        seen: Tensor,
        value_of: Callable[[Tensor], Tensor],
        ceiling: Tensor | float,
    ) -> Iterator[Move]:
        """A round's moves: D's, on what it sees, then the encoder's with the prediction losses."""
        for _ in range(self.discriminator_steps):
            yield Move("discriminator", {"discriminator": value_of(seen.detach())})

        with frozen(self.discriminator):
            value = value_of(seen)
        yield Move(
            "encoder",
            {**predictions, "encoder": self.encoders_share(value, ceiling)},
            figures={"prediction": predictions["predictor"], "discriminator": value},
            ceilings={"discriminator": torch.as_tensor(ceiling)},
        )

    def encoders_share(self, value: Tensor, ceiling: Tensor | float) -> Tensor:
        """``-lambda_d min(V, c*)``, or ``-lambda_d V`` without the ceiling."""
        return -self.lambda_d * (value.clamp(max=ceiling) if self.ceiling else value)
