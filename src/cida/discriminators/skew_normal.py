"""The skew-normal discriminator: a third moment beside mean and variance."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cida.discriminators.base import Discriminator, raw_from_variance, variance_from_raw
from cida.discriminators.marginal import merge_duplicates, minimize_lbfgs, subsample_weighted

__all__ = ["SkewNormal"]

# The skewness of a skew-normal ends at 0.9953, half a normal, whose density has an edge to run
# away on. At 0.95 the steep side is still ten times as steep as the flat one.
MAX_SKEWNESS = 0.95
SKEWNESS_FACTOR = (4 - math.pi) / 2
HALF_NORMAL_MEAN = math.sqrt(2 / math.pi)  # of half a normal of scale 1
CUBE_ROOT_SMOOTHING = 1e-2
MAX_SKEW_FIT_POINTS = 2048
MIN_LOSS_GAIN = 1e-6  # more than the rounding between two ways to the same optimum


class SkewNormal(Discriminator):
    """``L_d = -log[2 / w phi(e) Phi(a e)] - 1/2 log 2 pi``, ``e = (u - xi) / w`` (Remark 4.1).

    One skew-normal distribution for each column of the embedding: it aligns mean, variance and
    skewness. The parameters are Azzalini's *centred* ones (means, then the unbounded numbers that
    become the variances, then those of the skewness), from which location xi, scale w and slant a
    follow: in (xi, w, a) the likelihood is flat to third order at a = 0, and a discriminator would
    stay Gaussian. The optimal D(z) is the skew-normal closest to p(u|z). The ceiling has no closed
    form and is reached if and only if one skew-normal is the closest for every z. Without skewness
    it is the `Gaussian` head.

    Parameters
    ----------
    body : torch.nn.Module, optional
        Your own module from z to features; by default an MLP with the widths of ``hidden``.
    hidden : tuple of int, default (128, 128, 128)
        Widths of the default body.
    """

    @property
    def params_width(self) -> int:
        return 3 * self.embedding_width

    def score(self, params: Tensor, target: Tensor) -> Tensor:
        location, scale, slant = self.direct_params(params)
        error = (target - location) / scale
        tilt: Tensor = torch.special.log_ndtr(slant * error)
        loss: Tensor = error.square() / 2 + scale.log() - tilt - math.log(2)
        return loss.sum(1)

    def marginal_params(self, u: Tensor, weights: Tensor) -> Tensor:
        columns = torch.split(self.target(u).to(weights.dtype), 1, dim=1)
        distinct = [merge_duplicates(column, weights) for column in columns]
        samples = [subsample_weighted(*points, MAX_SKEW_FIT_POINTS) for points in distinct]
        return torch.stack([self._fit_column(*each) for each in samples], dim=1).flatten()

    def _fit_column(self, points: Tensor, share: Tensor) -> Tensor:
        """The best three numbers for one column; never worse than the best Gaussian."""
        mean = share @ points[:, 0]
        raw = raw_from_variance(share @ (points[:, 0] - mean).square())

        def loss(params: Tensor) -> Tensor:
            return share @ self.score(params[None], points)

        def fit_from_skews(*numbers: float) -> Tensor:
            starts = [torch.stack([mean, raw, raw.new_tensor(n)]) for n in numbers]
            return minimize_lbfgs(loss, starts)

        # Some rows have a second best, far out, where the skewness is near its most.
        from_mild_skew, from_strong_skew = fit_from_skews(-1.0, 0.0, 1.0), fit_from_skews(-3.0, 3.0)
        gain = float(loss(from_mild_skew)) - MIN_LOSS_GAIN - float(loss(from_strong_skew))
        return from_strong_skew if gain > 0 else from_mild_skew

    def moments(self, params: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, variance and skewness, in the embedding, of distributions with these parameters."""
        mean, raw, raw_skewness = params.chunk(3, dim=1)
        skewness = SKEWNESS_FACTOR * _skewness_cube_root(raw_skewness) ** 3
        return mean, variance_from_raw(raw), skewness

    def direct_params(self, params: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Location xi, scale w and slant a, from mean, variance and skewness."""
        mean, raw, raw_skewness = params.chunk(3, dim=1)
        std, root = variance_from_raw(raw).sqrt(), _skewness_cube_root(raw_skewness)
        scale = std * (1 + root.square()).sqrt()
        delta = root / (HALF_NORMAL_MEAN * (1 + root.square()).sqrt())
        return mean - std * root, scale, delta / (1 - delta.square()).sqrt()


def _skewness_cube_root(raw_skewness: Tensor) -> Tensor:
    """The signed cube root of ``skewness / CUBE``, from an unbounded number.

    Linear in the skewness the loss has a slope at 0 for the head to leave by, but the cube root
    between has none that is finite; blunted as ``g / (g^2 + b^2)^(1/3)`` it has.
    """
    g = (MAX_SKEWNESS / SKEWNESS_FACTOR) * raw_skewness.tanh()
    return g / (g.square() + CUBE_ROOT_SMOOTHING**2) ** (1 / 3)
