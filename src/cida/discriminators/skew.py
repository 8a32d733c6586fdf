"""The skew-normal discriminator: a third moment beside mean and variance."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cida.discriminators.base import Discriminator, raw_variance, variance_of
from cida.discriminators.fitting import few, lowest, merge_repeats

__all__ = ["SkewNormal"]

# The skewness of a skew-normal ends at 0.9953, half a normal, whose density has an edge to run
# away on. At 0.95 the steep side is still ten times as steep as the flat one.
MOST_SKEWED = 0.95
CUBE = (4 - math.pi) / 2
MEAN_OF_HALF = math.sqrt(2 / math.pi)  # of half a normal of scale 1
BLUNT = 1e-2
FIT_POINTS = 2048
FAR_BETTER = 1e-6  # more than the rounding between two ways to the same best belief


class SkewNormal(Discriminator):
    """``L_d = -log[2 / w phi(e) Phi(a e)] - 1/2 log 2 pi``, ``e = (u - xi) / w`` (Remark 4.1).

    One skew-normal for each column of the embedding. The belief holds Azzalini's *centred*
    numbers, means, then the unbounded numbers of the variances, then those of the skewness, and
    location xi, scale w and slant a follow from them: in (xi, w, a) the likelihood is flat to third
    order where a = 0, and a discriminator would stay a Gaussian. At its best D is the closest
    skew-normal to p(u|z), and the ceiling is reached if and only if one is the closest for
    every z. It has no closed form; no skewness gives the `Gaussian` head.
    """

    @property
    def belief_width(self) -> int:
        return 3 * self.embedding_width

    def score(self, params: Tensor, target: Tensor) -> Tensor:
        location, scale, slant = self.direct(params)
        error = (target - location) / scale
        tilt: Tensor = torch.special.log_ndtr(slant * error)
        loss: Tensor = error.square() / 2 + scale.log() - tilt - math.log(2)
        return loss.sum(1)

    def best_constant(self, u: Tensor, weights: Tensor) -> Tensor:
        columns = self.target(u).to(weights.dtype).unbind(1)
        best = [self._fit(*few(*merge_repeats(c[:, None], weights), FIT_POINTS)) for c in columns]
        return torch.stack(best, dim=1).flatten()

    def _fit(self, points: Tensor, share: Tensor) -> Tensor:
        """The best three numbers for one column; never worse than the best Gaussian."""
        mean = share @ points[:, 0]
        raw = raw_variance(share @ (points[:, 0] - mean).square())

        def loss(belief: Tensor) -> Tensor:
            return share @ self.score(belief[None], points)

        def from_skews(*numbers: float) -> Tensor:
            return lowest(loss, [torch.stack([mean, raw, raw.new_tensor(n)]) for n in numbers])

        # Some rows have a second best, far out, where the skewness is near its most.
        mild, strong = from_skews(-1.0, 0.0, 1.0), from_skews(-3.0, 3.0)
        return strong if float(loss(strong)) < float(loss(mild)) - FAR_BETTER else mild

    def moments(self, params: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The mean, the variance and the skewness that a belief stands for, in the embedding."""
        mean, raw, number = params.chunk(3, dim=1)
        return mean, variance_of(raw), CUBE * _root_of_skewness(number) ** 3

    def direct(self, params: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Location xi, scale w and slant a, from mean, variance and skewness."""
        mean, raw, number = params.chunk(3, dim=1)
        deviation, root = variance_of(raw).sqrt(), _root_of_skewness(number)
        scale = deviation * (1 + root.square()).sqrt()
        delta = root / (MEAN_OF_HALF * (1 + root.square()).sqrt())
        return mean - deviation * root, scale, delta / (1 - delta.square()).sqrt()


def _root_of_skewness(number: Tensor) -> Tensor:
    """The signed cube root of ``skewness / CUBE``, from an unbounded number.

    Linear in the skewness the loss has a slope at 0 for the head to leave by, but the cube root
    between has none that is finite; blunted as ``g / (g^2 + b^2)^(1/3)`` it has.
    """
    g = (MOST_SKEWED / CUBE) * number.tanh()
    return g / (g.square() + BLUNT**2) ** (1 / 3)
