"""MDD: an auxiliary classifier that agrees on the source and disagrees on the target."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn

from cida.data import Batch
from cida.distributed import any_rank, mean_over_ranks
from cida.games.base import GameParts, Move, PredictionLoss, cross_entropy, eval_mode
from cida.games.minimax import MinimaxGame

__all__ = ["MDD", "margin_disparity"]


def margin_disparity(
    source_logits: Tensor,
    source_classes: Tensor,
    target_logits: Tensor,
    target_classes: Tensor,
    margin_factor: float,
) -> Tensor:
    """``gamma E^s[-log p'_h] + E^t[-log(1 - p'_h)]``: p' of the class h that F predicts.

    Low where the auxiliary classifier agrees with F on the source and disagrees on the target.
    """
    source_loss = mean_over_ranks(cross_entropy(source_logits, source_classes))
    other_logits = target_logits.scatter(1, target_classes[:, None], -torch.inf)
    target_loss = mean_over_ranks(target_logits.logsumexp(1) - other_logits.logsumexp(1))
    return margin_factor * source_loss + target_loss


class MDD(MinimaxGame[nn.Module]):
    """``min_{E,F} max_{F'} V_p(E, F) - lambda_d min(V_m, c*)``, V_m the disparity of F' and F.

    ``V_m = gamma E^s[-log p'_h] + E^t[-log(1 - p'_h)]``: margin disparity discrepancy (Zhang et
    al., ICML 2019), with the margin factor gamma, the class h that F predicts and the probabilities
    p' of the auxiliary classifier F'. Source and target are merged. Where the two look alike, the
    best p'_h is gamma / (1 + gamma) everywhere, which gives the ceiling ``c* = (1 + gamma) log(1 +
    gamma) - gamma log(gamma)``.

    Parameters
    ----------
    encoder : torch.nn.Module
        E, from x (and the embedded index) to z.
    predictor : torch.nn.Module
        F, from z to the logits.
    discriminator : torch.nn.Module
        F', the auxiliary classifier.
    space : Space
        The fitted space of the index.
    prediction_loss : callable, default cross_entropy
        ``L_p(output, y)``, one number a row; it must be the cross entropy.
    index_in_encoder : bool, default True
        Whether the encoder is called with the embedded index.
    lambda_d : float, default 1.0
        Weight of the adversarial term.
    discriminator_steps : int, default 2
        Moves of the auxiliary classifier in each round.
    ceiling : bool, default True
        Whether the adversarial gradient stops above c*.
    """

    margin_factor = 4.0

    @classmethod
    def make_adversary(cls, parts: GameParts) -> nn.Module:
        _require_classes(parts.prediction_loss)
        return parts.build_adversary(parts.output_width)

    @property
    def disparity_ceiling(self) -> float:
        """``c*``: the disparity of the best auxiliary classifier on groups that look alike."""
        gamma = self.margin_factor
        return (1 + gamma) * math.log1p(gamma) - gamma * math.log(gamma)

    def moves(self, source: Batch, pooled: Batch) -> Iterator[Move]:
        z_source, z = self.encode_source_and_target(source, pooled)
        prediction = self.mean_prediction_loss(z_source, source)
        if not any_rank(len(z) > len(z_source)):
            yield Move("encoder", {"predictor": prediction}, metrics={"prediction": prediction})
            return
        with torch.no_grad(), eval_mode(self.predictor):
            predicted_classes = self.predictor(z).argmax(1)
        loss_fn = partial(self._disparity, said=predicted_classes, sources=len(source))
        yield from self.minimax_moves({"predictor": prediction}, z, loss_fn, self.disparity_ceiling)

    def _disparity(self, z: Tensor, said: Tensor, sources: int) -> Tensor:
        logits = self.discriminator(z)
        return margin_disparity(
            logits[:sources], said[:sources], logits[sources:], said[sources:], self.margin_factor
        )


def _require_classes(loss: PredictionLoss) -> None:
    if loss is not cross_entropy:
        raise ValueError(
            "game is 'mdd', which compares predicted classes, and there are none in a regression; "
            "choose another game or use CIDAClassifier."
        )
