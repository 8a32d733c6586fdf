"""The Gaussian discriminator of PCIDA."""

from __future__ import annotations

import torch
from torch import Tensor

from cida.discriminators.base import Discriminator, raw_from_variance, variance_from_raw

__all__ = ["Gaussian"]


class Gaussian(Discriminator):
    """``L_d = (D_mu(z) - u)^2 / (2 D_s2(z)) + 1/2 log D_s2(z)`` (eq. 3): the head of PCIDA.

    The optimal D(z) is E[u|z] and V[u|z] (Lemma 4.3). The ceiling is 1/2 + 1/2 log V[u], reached if
    and only if both are the same for every z (Theorem 4.2): it aligns mean and variance. There is
    one mean and one variance for each column of the embedding; the constant 1/2 log 2 pi is
    dropped, as in eq. 3. The parameters are the means, then the unbounded numbers that become the
    variances.

    Parameters
    ----------
    body : torch.nn.Module, optional
        Your own module from z to features; by default an MLP with the widths of ``hidden``.
    hidden : tuple of int, default (128, 128, 128)
        Widths of the default body.
    """

    @property
    def params_width(self) -> int:
        return 2 * self.embedding_width

    def score(self, params: Tensor, target: Tensor) -> Tensor:
        mean, variance = self.moments(params)
        error = mean - target
        return (error.square() / (2 * variance) + variance.log() / 2).sum(1)

    def marginal_params(self, u: Tensor, weights: Tensor) -> Tensor:
        embedding = self.target(u).to(weights.dtype)
        mean = weights @ embedding
        variance = weights @ (embedding - mean).square()
        return torch.cat([mean, raw_from_variance(variance)])

    def moments(self, params: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance, in the embedding, of the distributions with these parameters."""
        mean, raw = params.chunk(2, dim=1)
        return mean, variance_from_raw(raw)
