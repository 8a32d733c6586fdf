"""ADDA: the merged source against the merged target, in two phases."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from cida.data import Batch
from cida.distributed import any_rank, mean_over_ranks, sum_over_ranks, world_size
from cida.games.base import Move, eval_mode, freeze
from cida.games.binary_domain import BINARY_CEILING, BinaryDomainGame

__all__ = ["ADDA"]


class ADDA(BinaryDomainGame):
    """First ``min_{E,F} V_p``; then E_s = E is frozen, and ``min_E -log P(D(E(x^t)) = source)``.

    Adversarial discriminative domain adaptation (Tzeng et al., CVPR 2017): the target's encoder
    starts as the source's and learns to be mistaken for it, by the loss with inverted labels. The
    index is merged into two groups. The predictor stays as the source left it. The trained model
    uses the target's encoder, for source rows too. Under the ``ceiling`` the encoder moves only
    while the discriminator can tell the groups apart, that is, while its loss is below log 2.

    Parameters
    ----------
    encoder : torch.nn.Module
        E, from x (and the embedded index) to z.
    predictor : torch.nn.Module
        F, from z to the output.
    discriminator : BinaryDomainClassifier
        D, source against target.
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
        Whether the adversarial gradient stops above log 2.
    """

    pretraining_share = 0.5  # the share of the rounds before the target's turn

    @property
    def source_encoder(self) -> nn.Module | None:
        """The frozen encoder of the source rows; None before the target's turn."""
        return self._modules.get("source_encoder")

    def set_progress(self, fraction: float) -> None:
        if fraction >= self.pretraining_share and self.source_encoder is None:
            self._freeze_source_encoder()

    def _freeze_source_encoder(self) -> None:
        """Keep a frozen copy of the encoder for the source rows."""
        frozen = copy.deepcopy(self.encoder).requires_grad_(False).eval()
        self._modules["source_encoder"] = frozen

    def restore(self, state: Mapping[str, Tensor]) -> None:
        if any(name.startswith("source_encoder.") for name in state):
            self._freeze_source_encoder()
        super().restore(state)

    def moves(self, source: Batch, pooled: Batch) -> Iterator[Move]:
        if self.source_encoder is None:
            value = self.mean_prediction_loss(self.encode(source.x, source.u), source)
            yield Move("encoder", {"predictor": value}, metrics={"prediction": value})
        else:
            yield from self._adaptation_moves(source, pooled)

    def _adaptation_moves(self, source: Batch, pooled: Batch) -> Iterator[Move]:
        is_target = ~pooled.labelled
        if not any_rank(bool(is_target.any())):
            return
        with torch.no_grad(), eval_mode(self.predictor):
            z_source = self.encode(source.x, source.u, self.source_encoder)
            prediction = self.mean_prediction_loss(z_source, source)
        z_target = self.encode(pooled.x[is_target], pooled.u[is_target])
        z = torch.cat([z_source, z_target])
        is_target_row = torch.arange(len(z), device=z.device) >= len(z_source)

        for _ in range(self.discriminator_steps):
            value = self.discriminator.loss(z.detach(), is_target_row)
            yield Move("discriminator", {"discriminator": value})

        with freeze(self.discriminator):
            logits = self.discriminator(z)
        value = self.discriminator.score(logits, is_target_row).detach()
        # Inverted labels: the loss of calling target rows source rows.
        inverted_loss = mean_over_ranks(nn.functional.softplus(logits[is_target_row]))
        mean_value = sum_over_ranks(float(value))[0] / world_size()
        is_below_ceiling = not self.ceiling or mean_value < BINARY_CEILING
        yield Move(
            "encoder",
            {"encoder": self.lambda_d * (inverted_loss if is_below_ceiling else 0 * inverted_loss)},
            metrics={"prediction": prediction, "discriminator": value},
            ceilings={"discriminator": value.new_tensor(BINARY_CEILING)},
        )
