"""The conditional game: the discriminator also sees the prediction."""

from __future__ import annotations

import torch
from torch import Tensor

from cida.data import Batch
from cida.games.adversarial import Adversarial
from cida.games.base import eval_mode

__all__ = ["Conditional"]


class Conditional(Adversarial):
    """``min_{E,F} max_D V_p(E, F) - lambda_d min(V_d(D, (E, F)), c*)``: CDANN with hard bins.

    The discriminator sees ``(z, F(z))``, the encoding and the predicted probabilities (or numbers),
    as in the conditional adversarial network of Zhao et al. (ICML 2017). No adversarial gradient
    passes through the prediction, so that the encoder hides what z says about u beyond the
    prediction.

    Parameters
    ----------
    encoder : torch.nn.Module
        E, from x (and the embedded index) to z.
    predictor : torch.nn.Module
        F, from z to the output.
    discriminator : Discriminator
        D, built for the width of z and of the prediction.
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

    conditional = True

    @staticmethod
    def discriminator_input_width(encoding_width: int, output_width: int) -> int:
        return encoding_width + output_width

    def discriminator_input(self, z: Tensor, batch: Batch) -> Tensor:
        with torch.no_grad(), eval_mode(self.predictor):  # as it will predict; no statistics move
            output = self.predictor(z)
            prediction = output.softmax(1) if batch.has_classes else output
        return torch.cat([z, prediction], dim=1)
