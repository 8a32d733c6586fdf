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

    The discriminator's evidence is ``(z, F(z))``, the encoding beside the predicted probabilities
    (or numbers), as in the conditional adversarial network of Zhao et al. (ICML 2017). The
    prediction is evidence alone: no adversarial gradient passes through it, so that the encoder
    is asked to hide what z says about u beyond what the prediction says.
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
