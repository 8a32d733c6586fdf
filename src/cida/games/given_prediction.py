"""The game for labels that depend on u: z hides only what the prediction does not reveal."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn

from cida.data import Batch, IndexedDataset
from cida.discriminators import Discriminator
from cida.distributed import mean_over_ranks
from cida.games.base import GameParts, Move, eval_mode, freeze
from cida.games.minimax import MinimaxGame
from cida.indexing import subsample

__all__ = ["GivenPrediction", "ResidualDiscriminator"]


class ResidualDiscriminator(nn.Module):
    """``B(yhat)`` and ``D(z, yhat) = B(yhat) + R(z, yhat)``: parameters without z, and with it.

    R has nothing to learn where z adds nothing to the prediction. A second head made from scratch
    would read the same information from z and from yhat alike, and the encoder would have to hide
    its half. B is a copy of R that gets zeros for z, so that a body of the user's own fits both.
    """

    def __init__(self, head: Discriminator) -> None:
        super().__init__()
        self.reference = copy.deepcopy(head)
        self.beyond = head

    def losses(
        self, z: Tensor, yhat: Tensor, target: Tensor, global_rows: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """``V_D`` and ``V_B``: the mean losses of the two heads."""
        reference_params = self.reference(torch.cat([torch.zeros_like(z), yhat], dim=1))
        params = reference_params.detach() + self.beyond(torch.cat([z, yhat], dim=1))
        losses = [self.reference.score(each, target) for each in (params, reference_params)]
        value, reference = (mean_over_ranks(loss, total=global_rows) for loss in losses)
        return value, reference


class GivenPrediction(MinimaxGame[ResidualDiscriminator]):
    """``min_{E,F} max_D V_p(E, F) - lambda_d min(V_D, V_B)``: z independent of u given yhat.

    The ceiling is V_B, the loss of the best head that sees only the prediction: with a log loss
    ``V_B - V_D = I(z; u | yhat)`` where both heads are optimal. Where the label depends on u
    (section 4.2.2) the prediction may reveal u, and the encoder hides the rest. yhat is the
    predicted class, or the predicted numbers in a regression; no gradient passes through it. It is
    the class and not its probability: given the probability, a z that equals the log odds would
    hide nothing.

    Parameters
    ----------
    encoder : torch.nn.Module
        E, from x (and the embedded index) to z.
    predictor : torch.nn.Module
        F, from z to the output.
    discriminator : ResidualDiscriminator
        B and D.
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
        Whether the adversarial gradient stops above V_B.
    """

    conditional = True
    uses_head = True

    @classmethod
    def make_adversary(cls, parts: GameParts) -> ResidualDiscriminator:
        input_width = parts.encoding_width + parts.output_width
        return ResidualDiscriminator(parts.discriminator.build(input_width, parts.space, parts.u))

    def enter_stage(self, dataset: IndexedDataset, active: Tensor, weights: Tensor) -> None:
        for head in (self.discriminator.reference, self.discriminator.beyond):
            head.fit_marginal(dataset.u[subsample(active)], subsample(weights))

    def predicted_labels(self, z: Tensor, batch: Batch) -> Tensor:
        """``yhat``: the predicted class, one-hot, or the predicted numbers, with no gradient."""
        with torch.no_grad(), eval_mode(self.predictor):  # as it will predict; no statistics move
            output: Tensor = self.predictor(z)
            if not batch.has_classes:
                return output
            return nn.functional.one_hot(output.argmax(1), output.shape[1]).to(output.dtype)

    def moves(self, source: Batch, pooled: Batch) -> Iterator[Move]:
        z_source, z = self.encode_both(source, pooled)
        yhat = self.predicted_labels(z, pooled)
        target = self.discriminator.reference.target(pooled.u).to(z.dtype)
        losses = partial(
            self.discriminator.losses, yhat=yhat, target=target, global_rows=pooled.global_rows
        )

        for _ in range(self.discriminator_steps):
            value, reference = losses(z.detach())
            yield Move("discriminator", {"discriminator": value, "reference": reference})

        with freeze(self.discriminator):
            value, reference = losses(z)
        prediction = self.mean_prediction_loss(z_source, source)
        yield Move(
            "encoder",
            {"predictor": prediction, "encoder": self.adversarial_term(value, reference)},
            metrics={"prediction": prediction, "discriminator": value},
            ceilings={"discriminator": reference},
        )
