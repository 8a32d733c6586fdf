"""Games without an adversary: the encoder pays for what z still says about u."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Self

import torch
from torch import Tensor, nn

from cida.batch import Batch
from cida.dependence import FEWEST_ROWS, distance_correlation, normalised_hsic
from cida.games.base import Game, Move, Parts, PredictionLoss, cross_entropy, joined
from cida.ranks import mean
from cida.space import Space

__all__ = ["HSIC", "DistanceCorrelation", "Penalised"]


class Penalised(Game):
    """``min_{E,F} V_p(E, F) + lambda_d dep(z, u)``: a measure of dependence in D's place.

    One player, so nothing lags and nothing cycles; there is no ceiling since the least dependence
    is 0. A subclass says what ``dep`` is (``measure``). It is taken on the rows of ``everyone``;
    fewer than four of them say nothing about dependence, and cost nothing.

    u is seen through the embedding of its space. On a circle that makes distances chords: under
    the length of the arc two dependent variables can have a distance covariance of zero, since
    arcs are not of strong negative type (Lyons, 2020), while chords are Euclidean.
    """

    usual_lambda = 10.0  # a measure between 0 and 1 is small beside a log loss

    def __init__(
        self,
        encoder: nn.Module,
        predictor: nn.Module,
        space: Space,
        prediction_loss: PredictionLoss = cross_entropy,
        index_in_encoder: bool = True,
        lambda_d: float = 1.0,
    ) -> None:
        super().__init__(encoder, predictor, space, prediction_loss, index_in_encoder)
        self.lambda_d = lambda_d

    @classmethod
    def assemble(cls, parts: Parts) -> Self:
        return cls(
            parts.encoder,
            parts.predictor,
            parts.space,
            parts.prediction_loss,
            parts.index_in_encoder,
            parts.lambda_d,
        )

    @abstractmethod
    def measure(self, z: Tensor, index: Tensor) -> Tensor:
        """``dep``: how much z depends on the embedded index, at any scale of z."""

    def moves(self, source: Batch, everyone: Batch) -> Iterator[Move]:
        z_both = self.encode(*joined(source, everyone))
        z_source, z = torch.split(z_both, [len(source), len(everyone)])
        prediction = self.prediction_value(z_source, source)
        dependence = self._dependence(z, everyone.u)
        yield Move(
            "encoder",
            {"predictor": prediction, "encoder": self.lambda_d * dependence},
            figures={"prediction": prediction, "dependence": dependence},
        )

    def _dependence(self, z: Tensor, u: Tensor) -> Tensor:
        if len(z) < FEWEST_ROWS:
            return mean(z.new_zeros(1))
        return mean(self.measure(z, self.space.embed(u).to(z.dtype))[None])


class DistanceCorrelation(Penalised):
    """``min_{E,F} V_p(E, F) + lambda_d dCor^2(z, u)``: zero only where z is independent of u.

    The bias-corrected squared distance correlation (Szekely and Rizzo, 2014), see
    `cida.dependence.distance_correlation`. It does not change with the scale of z, so that the
    encoder cannot win by shrinking it.
    """

    def measure(self, z: Tensor, index: Tensor) -> Tensor:
        return distance_correlation(z, index)


class HSIC(Penalised):
    """``min_{E,F} V_p(E, F) + lambda_d HSIC(z, u) / sqrt(HSIC(z, z) HSIC(u, u))``.

    The normalised Hilbert-Schmidt independence criterion, see `cida.dependence.normalised_hsic`:
    between 0 and 1 like the distance correlation, so that lambda_d means the same in both games.
    Its kernel is local, and sees fine patterns of u better than far trends.
    """

    def measure(self, z: Tensor, index: Tensor) -> Tensor:
        return normalised_hsic(z, index)
