"""Games without an adversary: the encoder pays for what z still reveals about u."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Self

from torch import Tensor, nn

from cida.data import Batch
from cida.dependence import MIN_DEPENDENCE_ROWS, distance_correlation, normalized_hsic
from cida.games.base import Game, GameParts, Move, PredictionLoss, cross_entropy
from cida.spaces import Space

__all__ = ["HSIC", "DependencePenalty", "DistanceCorrelation"]


class DependencePenalty(Game):
    """``min_{E,F} V_p(E, F) + lambda_d dep(z, u)``: a measure of dependence in place of D.

    With a single player nothing lags behind and nothing cycles. There is no ceiling since the least
    dependence is 0. A subclass defines `measure_dependence`. It is computed on the rows of the
    pooled batch; with fewer than four of them the penalty is 0.

    u enters through the embedding of its space. On a circle that makes distances chords: with arc
    lengths two dependent variables can have a distance covariance of zero, since arcs are not of
    strong negative type (Lyons, 2020), while chords are Euclidean.
    """

    default_lambda = 10.0  # a measure between 0 and 1 is small beside a log loss

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
    def assemble(cls, parts: GameParts) -> Self:
        return cls(
            parts.encoder,
            parts.predictor,
            parts.space,
            parts.prediction_loss,
            parts.index_in_encoder,
            parts.lambda_d,
        )

    @abstractmethod
    def measure_dependence(self, z: Tensor, index: Tensor) -> Tensor:
        """``dep``: how much z depends on the embedded index, at any scale of z."""

    def moves(self, source: Batch, pooled: Batch) -> Iterator[Move]:
        z_source, z = self.encode_both(source, pooled)
        prediction = self.mean_prediction_loss(z_source, source)
        dependence = self._dependence_penalty(z, pooled.u)
        yield Move(
            "encoder",
            {"predictor": prediction, "encoder": self.lambda_d * dependence},
            metrics={"prediction": prediction, "dependence": dependence},
        )

    def _dependence_penalty(self, z: Tensor, u: Tensor) -> Tensor:
        """The measure on this rank's rows: all ranks' mean is not that of the whole batch."""
        if len(z) < MIN_DEPENDENCE_ROWS:
            return z.new_zeros(())
        return self.measure_dependence(z, self.space.embed(u).to(z.dtype))


class DistanceCorrelation(DependencePenalty):
    """``min_{E,F} V_p(E, F) + lambda_d dCor^2(z, u)``: zero only where z is independent of u.

    The bias-corrected squared distance correlation (Szekely and Rizzo, 2014), see
    `cida.dependence.distance_correlation`. It does not change with the scale of z, so that the
    encoder cannot win by shrinking it.

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
    lambda_d : float, default 1.0
        Weight of the penalty.
    """

    def measure_dependence(self, z: Tensor, index: Tensor) -> Tensor:
        return distance_correlation(z, index)


class HSIC(DependencePenalty):
    """``min_{E,F} V_p(E, F) + lambda_d HSIC(z, u) / sqrt(HSIC(z, z) HSIC(u, u))``.

    The normalised Hilbert-Schmidt independence criterion, see `cida.dependence.normalized_hsic`:
    between 0 and 1 like the distance correlation, so that ``lambda_d`` means the same in both
    games. Its kernel is local: it detects fine patterns of u better than long trends.

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
    lambda_d : float, default 1.0
        Weight of the penalty.
    """

    def measure_dependence(self, z: Tensor, index: Tensor) -> Tensor:
        return normalized_hsic(z, index)
