"""DANN with one target domain: the merged source against the merged target."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from cida.data import Batch
from cida.distributed import any_rank
from cida.games.base import Move
from cida.games.binary_domain import BINARY_CEILING, BinaryDomainGame

__all__ = ["DANN"]


class DANN(BinaryDomainGame):
    """``min_{E,F} max_D V_p(E, F) - lambda_d min(V_d(D, E), log 2)``: source or target, no index.

    Domain-adversarial training (Ganin et al., JMLR 2016) in its original form for two domains: all
    source rows against all target rows. With more domains it is the `Adversarial` game with a
    `Histogram` of hard bins.

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

    def moves(self, source: Batch, pooled: Batch) -> Iterator[Move]:
        z_source, z = self.encode_source_and_target(source, pooled)
        prediction = self.mean_prediction_loss(z_source, source)
        if not any_rank(len(z) > len(z_source)):
            yield Move("encoder", {"predictor": prediction}, metrics={"prediction": prediction})
            return
        is_target = torch.arange(len(z), device=z.device) >= len(z_source)
        loss_fn = partial(self.discriminator.loss, second=is_target)
        yield from self.minimax_moves({"predictor": prediction}, z, loss_fn, BINARY_CEILING)
