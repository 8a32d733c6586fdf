"""MDD: an auxiliary classifier that agrees on the source and disagrees on the target."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn

from cida.batch import Batch
from cida.games.base import Move, Parts, PredictionLoss, cross_entropy, resting
from cida.games.contested import Contested
from cida.ranks import anywhere, mean

__all__ = ["MDD", "disparity"]


def disparity(
    source_logits: Tensor, source_said: Tensor, target_logits: Tensor, target_said: Tensor,
    margin_factor: float,
) -> Tensor:  # fmt: skip
    """``gamma E^s[-log p'_h] + E^t[-log(1 - p'_h)]``: p' of the class h that F says.

    Low where the auxiliary classifier agrees with F on the source and not on the target.
    """
    agrees = mean(cross_entropy(source_logits, source_said))
    others = target_logits.scatter(1, target_said[:, None], -torch.inf)
    disagrees = mean(target_logits.logsumexp(1) - others.logsumexp(1))
    return margin_factor * agrees + disagrees


class MDD(Contested[nn.Module]):
    """``min_{E,F} max_{F'} V_p(E, F) - lambda_d min(V_m, c*)``, V_m the `disparity` of F' and F.

    ``V_m = gamma E^s[-log p'_h] + E^t[-log(1 - p'_h)]``: margin disparity discrepancy (Zhang et
    al., ICML 2019), with ``gamma`` the margin factor, h the class that F says and p' the
    probabilities of the auxiliary classifier F'. Source and target are merged. Where the two look
    alike, the best p'_h is gamma / (1 + gamma) everywhere, which gives the ceiling
    ``c* = (1 + gamma) log(1 + gamma) - gamma log(gamma)``.
    """

    margin_factor = 4.0

    @classmethod
    def make_adversary(cls, parts: Parts) -> nn.Module:
        _check_classes(parts.prediction_loss)
        return parts.adversary(parts.output_width)

    @property
    def highest(self) -> float:
        """``c*``: the disparity of the best auxiliary classifier on groups that look alike."""
        gamma = self.margin_factor
        return (1 + gamma) * math.log1p(gamma) - gamma * math.log(gamma)

    def moves(self, source: Batch, everyone: Batch) -> Iterator[Move]:
        z_source, z = self.encode_sides(source, everyone)
        prediction = self.prediction_value(z_source, source)
        if not anywhere(len(z) > len(z_source)):
            yield Move("encoder", {"predictor": prediction}, figures={"prediction": prediction})
            return
        with torch.no_grad(), resting(self.predictor):
            said = self.predictor(z).argmax(1)
        value_of = partial(self._disparity, said=said, sources=len(source))
        yield from self.contest({"predictor": prediction}, z, value_of, self.highest)

    def _disparity(self, z: Tensor, said: Tensor, sources: int) -> Tensor:
        logits = self.discriminator(z)
        return disparity(
            logits[:sources], said[:sources], logits[sources:], said[sources:], self.margin_factor
        )


def _check_classes(loss: PredictionLoss) -> None:
    if loss is not cross_entropy:
        raise ValueError(
            "game is 'mdd', which compares predicted classes, and there are none in a regression; "
            "choose another game or use CIDAClassifier."
        )
