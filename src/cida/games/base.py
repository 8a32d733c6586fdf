"""What every game is: players, and a round of moves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor, nn

from cida.data import Batch, IndexedDataset
from cida.discriminators import Discriminator
from cida.distributed import mean_over_ranks
from cida.spaces import Space

__all__ = [
    "Game",
    "GameParts",
    "Move",
    "PredictionLoss",
    "concatenate",
    "cross_entropy",
    "eval_mode",
    "freeze",
    "squared_error",
]

PredictionLoss = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(output: Tensor, y: Tensor) -> Tensor:
    """``L_p`` for classes: minus the log probability of the label, one number a row."""
    return nn.functional.cross_entropy(output, y, reduction="none")


def squared_error(output: Tensor, y: Tensor) -> Tensor:
    """``L_p`` for numbers: the squared error summed over outputs, one number a row."""
    return (output - y).square().sum(1)


@dataclass(frozen=True)
class GameParts:
    """What games are assembled from; each takes what it has a use for.

    ``discriminator`` is not built yet: the game says what it will see, ``u`` are the rows of u.
    """

    encoder: nn.Module
    predictor: nn.Module
    space: Space
    u: Tensor
    encoding_width: int
    output_width: int
    discriminator: Discriminator
    prediction_loss: PredictionLoss = cross_entropy
    index_in_encoder: bool = True
    lambda_d: float = 1.0
    discriminator_steps: int = 2
    ceiling: bool = True

    def build_adversary(self, output_width: int) -> nn.Module:
        """A network on z of the discriminator's capacity, for an adversary that is none."""
        body, features = self.discriminator.make_body(self.encoding_width)
        return nn.Sequential(body, nn.Linear(features, output_width))


@dataclass(frozen=True)
class Move:
    """One player's turn: the named losses whose sum its parameters step down on.

    ``figures`` are the losses to show, before any sign or factor; ``ceilings`` what they are
    to be read against.
    """

    player: str
    losses: Mapping[str, Tensor]
    metrics: Mapping[str, Tensor] = field(default_factory=dict)
    ceilings: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def total_loss(self) -> Tensor:
        first, *rest = self.losses.values()
        return sum(rest, start=first)


class Game(nn.Module, ABC):
    """Holds the players; deals the moves of a round. It knows no epochs, devices or files.

    A round is given two batches since eq. 1 has two expectations: ``source`` is drawn from the
    labelled rows (E^s), ``everyone`` from all active rows (E).

    The encoder is called as ``encoder(x, index)``, with the embedding of u, or as ``encoder(x)``
    where ``index_in_encoder`` is false. Any ``nn.Module`` can take the place of each player.
    """

    def __init__(
        self,
        encoder: nn.Module,
        predictor: nn.Module,
        space: Space,
        prediction_loss: PredictionLoss = cross_entropy,
        index_in_encoder: bool = True,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.predictor = predictor
        self.space = space
        self.prediction_loss = prediction_loss
        self.index_in_encoder = index_in_encoder

    @classmethod
    def assemble(cls, parts: GameParts) -> Self:
        """This game, from parts that were made for the data."""
        return cls(
            parts.encoder,
            parts.predictor,
            parts.space,
            parts.prediction_loss,
            parts.index_in_encoder,
        )

    @abstractmethod
    def moves(self, source: Batch, pooled: Batch) -> Iterator[Move]:
        """The moves of one round, in order; the trainer makes each before it asks for the next."""

    def player_parameters(self) -> dict[str, list[nn.Parameter]]:
        """The parameters that step at each player's turn, by the player's name."""
        return {"encoder": [*self.encoder.parameters(), *self.predictor.parameters()]}

    # Wishes to the trainer: the share of ``everyone`` to be drawn from the rows that the last stage
    # added, and the share of the steps to widen the range over where the user names none.
    newest_share = 0.0
    min_curriculum = 0.0
    default_lambda = 1.0  # lambda_d where the user names none
    uses_head = False  # whether the discriminator's belief is played against, not just its body
    conditional = False  # whether z may depend on u as far as predictions do

    def enter_stage(self, dataset: IndexedDataset, active: Tensor, weights: Tensor) -> None:
        """Called when the active rows change, with their numbers and the sampler's weights."""

    def set_progress(self, fraction: float) -> None:
        """Called before each round with the share of all rounds that is done."""

    def state(self) -> dict[str, Tensor]:
        """All that the game has learnt; one that remembers more than its modules adds it here."""
        return dict(self.state_dict())

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Takes back what `state` gave."""
        self.load_state_dict(state)

    def encode(self, x: Tensor, u: Tensor, encoder: nn.Module | None = None) -> Tensor:
        """``z = E(x, u)``, or ``E(x)`` where the index is not an input; E may be another's."""
        index_inputs = [self.space.embed(u).to(x.dtype)] if self.index_in_encoder else []
        z: Tensor = (encoder or self.encoder)(x, *index_inputs)
        return z

    def predict(self, x: Tensor, u: Tensor) -> Tensor:
        """``F(E(x, u))``: the raw output of the predictor."""
        output: Tensor = self.predictor(self.encode(x, u))
        return output

    def mean_prediction_loss(self, z: Tensor, batch: Batch) -> Tensor:
        """``V_p``: the weighted mean prediction loss of source rows with encodings z."""
        return mean_over_ranks(batch.weight * self.prediction_loss(self.predictor(z), batch.y))


@contextmanager
def freeze(module: nn.Module) -> Iterator[None]:
    """Inside, gradients pass through the module but none is computed for its parameters."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    for parameter in parameters:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)


@contextmanager
def eval_mode(module: nn.Module) -> Iterator[None]:
    """Inside, the module is in evaluation mode."""
    was_training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(was_training)


def concatenate(first: Batch, second: Batch) -> tuple[Tensor, Tensor]:
    """x and u of both batches, so that the encoder runs once for the two."""
    return torch.cat([first.x, second.x]), torch.cat([first.u, second.u])
