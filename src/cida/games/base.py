"""The contract of a game: its players, and the moves of a round."""

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
    "cross_entropy",
    "eval_mode",
    "freeze",
    "squared_error",
]

PredictionLoss = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(output: Tensor, y: Tensor) -> Tensor:
    """``L_p = -log p(y)``: the prediction loss for classes, one number a row.

    Parameters
    ----------
    output : Tensor of shape (rows, classes)
        Logits.
    y : Tensor of shape (rows,)
        Class numbers.

    Returns
    -------
    Tensor of shape (rows,)
        The loss of each row.
    """
    return nn.functional.cross_entropy(output, y, reduction="none")


def squared_error(output: Tensor, y: Tensor) -> Tensor:
    """``L_p = |output - y|^2``: the prediction loss for numbers, one number a row.

    Parameters
    ----------
    output : Tensor of shape (rows, outputs)
        Predictions.
    y : Tensor of shape (rows, outputs)
        Labels.

    Returns
    -------
    Tensor of shape (rows,)
        The squared error of each row, summed over outputs.
    """
    return (output - y).square().sum(1)


@dataclass(frozen=True)
class GameParts:
    """What a game is assembled from; each game takes the parts that it needs.

    Parameters
    ----------
    encoder : torch.nn.Module
        E, from x (and the embedded index) to z.
    predictor : torch.nn.Module
        F, from z to the output.
    space : Space
        The fitted space of the index.
    u : Tensor of shape (rows, width)
        Raw index values of all rows, for anchors and the marginal fit.
    encoding_width : int
        Number of columns of z.
    output_width : int
        Number of columns of the predictor's output.
    discriminator : Discriminator
        A discriminator that is not built yet: the game decides what its input is.
    prediction_loss : callable, default cross_entropy
        ``L_p(output, y)``, one number a row.
    index_in_encoder : bool, default True
        Whether the encoder is called with the embedded index.
    lambda_d : float, default 1.0
        Weight of the adversarial term.
    discriminator_steps : int, default 2
        Moves of the discriminator in each round.
    ceiling : bool, default True
        Whether the adversarial gradient stops above the ceiling.
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
        """Return a network on z with the discriminator's capacity, for other adversaries."""
        body, features = self.discriminator.make_body(self.encoding_width)
        return nn.Sequential(body, nn.Linear(features, output_width))


@dataclass(frozen=True)
class Move:
    """One optimiser step of one player: the losses whose sum it minimises.

    Parameters
    ----------
    player : str
        A key of `Game.player_parameters`.
    losses : mapping of str to Tensor
        Named losses; the player takes a step down their sum.
    metrics : mapping of str to Tensor, optional
        Losses to report, before any sign or factor.
    ceilings : mapping of str to Tensor, optional
        The values that metrics of the same name are compared with.
    """

    player: str
    losses: Mapping[str, Tensor]
    metrics: Mapping[str, Tensor] = field(default_factory=dict)
    ceilings: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def total_loss(self) -> Tensor:
        """The sum of the losses."""
        first, *rest = self.losses.values()
        return sum(rest, start=first)


class Game(nn.Module, ABC):
    """The players, and the moves of each round; it knows no epochs, devices or files.

    A round gets two batches since eq. 1 has two expectations: ``source`` is drawn from the labelled
    rows (E^s) and ``pooled`` from all active rows (E). The encoder is called as ``encoder(x,
    index)`` with the embedded index, or as ``encoder(x)`` if ``index_in_encoder`` is false. Each
    player can be any ``nn.Module``. A subclass defines `moves`.

    Parameters
    ----------
    encoder : torch.nn.Module
        E, from x (and the embedded index) to z.
    predictor : torch.nn.Module
        F, from z to the output.
    space : Space
        The fitted space of the index.
    prediction_loss : callable, default cross_entropy
        ``L_p(output, y)``, one number a row.
    index_in_encoder : bool, default True
        Whether the encoder is called with the embedded index.

    Attributes
    ----------
    newest_share : float
        Share of the pooled batch to draw from the rows that the last curriculum stage added.
    min_curriculum : float
        Share of the steps over which the curriculum widens if the user names none.
    default_lambda : float
        ``lambda_d`` if the user names none.
    uses_head : bool
        Whether the discriminator's distribution of u is used, and not only its body.
    conditional : bool
        Whether z may depend on u as far as predictions do.

    See Also
    --------
    cida.check : Tests whether a game of your own keeps the contract.
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
        """Make this game from parts that were built for the data.

        Parameters
        ----------
        parts : GameParts
            Networks, space and settings.

        Returns
        -------
        Game
            A game that is ready to train.
        """
        return cls(
            parts.encoder,
            parts.predictor,
            parts.space,
            parts.prediction_loss,
            parts.index_in_encoder,
        )

    @abstractmethod
    def moves(self, source: Batch, pooled: Batch) -> Iterator[Move]:
        """Yield the moves of one round; the trainer takes each step before it asks for the next.

        Parameters
        ----------
        source : Batch
            Labelled rows.
        pooled : Batch
            Rows drawn from all active ones; labels of target rows are zero.

        Yields
        ------
        Move
            The next step.
        """

    def player_parameters(self) -> dict[str, list[nn.Parameter]]:
        """Return the parameters of each player, by the player's name.

        Returns
        -------
        dict of str to list of torch.nn.Parameter
            What is updated at each player's move.
        """
        return {"encoder": [*self.encoder.parameters(), *self.predictor.parameters()]}

    # Facts about the class that the trainer and the estimators read; see the docstring.
    newest_share = 0.0
    min_curriculum = 0.0
    default_lambda = 1.0
    uses_head = False
    conditional = False

    def enter_stage(self, dataset: IndexedDataset, active: Tensor, weights: Tensor) -> None:
        """React to a new set of active rows; called at the start of each curriculum stage.

        Parameters
        ----------
        dataset : IndexedDataset
            All rows.
        active : Tensor of int
            Numbers of the active rows.
        weights : Tensor of float
            How often the sampler draws each active row.
        """

    def set_progress(self, fraction: float) -> None:
        """React to the progress of training; called before each round.

        Parameters
        ----------
        fraction : float
            Share of all rounds that is done.
        """

    def state(self) -> dict[str, Tensor]:
        """Return everything that the game has learned.

        A game that remembers more than its modules hold adds it here.

        Returns
        -------
        dict of str to Tensor
            Values for `restore`.
        """
        return dict(self.state_dict())

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned.

        Parameters
        ----------
        state : mapping of str to Tensor
            What `state` returned.
        """
        self.load_state_dict(state)

    def encode(self, x: Tensor, u: Tensor, encoder: nn.Module | None = None) -> Tensor:
        """``z = E(x, u)``, or ``E(x)`` if the index is not an input.

        Parameters
        ----------
        x : Tensor
            Inputs.
        u : Tensor of shape (rows, width)
            Raw index values.
        encoder : torch.nn.Module, optional
            Another encoder than the game's own.

        Returns
        -------
        Tensor of shape (rows, encoding_width)
            The encodings.
        """
        index_inputs = [self.space.embed(u).to(x.dtype)] if self.index_in_encoder else []
        z: Tensor = (encoder or self.encoder)(x, *index_inputs)
        return z

    def encode_both(self, source: Batch, pooled: Batch) -> tuple[Tensor, Tensor]:
        """Return z of the source batch and z of the pooled one; the encoder runs once.

        Parameters
        ----------
        source : Batch
            Labelled rows.
        pooled : Batch
            Rows drawn from all active ones.

        Returns
        -------
        tuple of (Tensor, Tensor)
            The encodings of both batches.
        """
        x, u = torch.cat([source.x, pooled.x]), torch.cat([source.u, pooled.u])
        z_source, z = torch.split(self.encode(x, u), [len(source), len(pooled)])
        return z_source, z

    def predict(self, x: Tensor, u: Tensor) -> Tensor:
        """``F(E(x, u))``: the raw output of the predictor.

        Parameters
        ----------
        x : Tensor
            Inputs.
        u : Tensor of shape (rows, width)
            Raw index values.

        Returns
        -------
        Tensor of shape (rows, output_width)
            Logits or predicted numbers.
        """
        output: Tensor = self.predictor(self.encode(x, u))
        return output

    def mean_prediction_loss(self, z: Tensor, batch: Batch) -> Tensor:
        """``V_p``: the weighted mean prediction loss of source rows with encodings z.

        Parameters
        ----------
        z : Tensor of shape (rows, encoding_width)
            Encodings of the source rows.
        batch : Batch
            The source rows.

        Returns
        -------
        Tensor
            One number.
        """
        row_losses = batch.weight * self.prediction_loss(self.predictor(z), batch.y)
        return mean_over_ranks(row_losses, total=batch.global_rows)


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
