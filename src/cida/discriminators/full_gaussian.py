"""The Gaussian discriminator with a full covariance."""

from __future__ import annotations

import torch
from torch import Tensor

from cida.discriminators.base import Discriminator, raw_from_variance, variance_from_raw

__all__ = ["FullGaussian"]


class FullGaussian(Discriminator):
    """``L_d = sum_j r_j^2 / (2 v_j) + 1/2 log v_j``, ``r_j = e_j - sum_{k<j} W_jk e_k``.

    Eq. 3 with all covariances of the embedding's columns: ``e = u - mu``, and by the modified
    Cholesky decomposition ``Cov = L diag(v) L^T`` with ones on the diagonal of L and ``W = 1 -
    L^-1``, so that every choice of parameters is a valid covariance. The optimal D(z) is E[u|z] and
    Cov[u|z]. The ceiling is d/2 + 1/2 log det Cov[u] for d columns, reached if and only if both are
    the same for every z. On a circle it detects what one variance per column does not: opposite
    angles on a diagonal. With ``W = 0`` it is the `Gaussian` head. The parameters are the means,
    the unbounded numbers that become v, then the rows of W below its diagonal.

    Parameters
    ----------
    body : torch.nn.Module, optional
        Your own module from z to features; by default an MLP with the widths of ``hidden``.
    hidden : tuple of int, default (128, 128, 128)
        Widths of the default body.
    """

    @property
    def params_width(self) -> int:
        width = self.embedding_width
        return 2 * width + width * (width - 1) // 2

    def score(self, params: Tensor, target: Tensor) -> Tensor:
        mean, variance, weight = self._unpack(params)
        error = target - mean
        residual = error - (weight @ error[:, :, None])[:, :, 0]
        return (residual.square() / (2 * variance) + variance.log() / 2).sum(1)

    def marginal_params(self, u: Tensor, weights: Tensor) -> Tensor:
        embedding = self.target(u).to(weights.dtype)
        mean = weights @ embedding
        error = embedding - mean
        covariance = error.T @ (weights[:, None] * error)
        variance, regression_weights = covariance.diagonal().clone(), []
        for j in range(1, len(mean)):
            # Each column regressed on those before it. A pseudo-inverse: on two points of a circle
            # sine follows from cosine, and a third column would have no unique weights.
            inverse_covariance = torch.linalg.pinv(covariance[:j, :j], rtol=1e-10, hermitian=True)
            regression_weights.append(inverse_covariance @ covariance[:j, j])
            variance[j] -= covariance[:j, j] @ regression_weights[-1]
        return torch.cat([mean, raw_from_variance(variance), *regression_weights])

    def moments(self, params: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and covariance, in the embedding, of the distributions with these parameters."""
        mean, variance, weight = self._unpack(params)
        identity = torch.eye(mean.shape[1], dtype=params.dtype, device=params.device)
        lower = torch.linalg.solve_triangular(
            identity - weight, identity.expand_as(weight), upper=False, unitriangular=True
        )
        return mean, (lower * variance[:, None, :]) @ lower.mT

    def _unpack(self, params: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Means and v, each ``(rows, columns)``, and W, ``(rows, columns, columns)``."""
        width = self.embedding_width
        sizes = [width, width, self.params_width - 2 * width]
        mean, raw, lower_entries = torch.split(params, sizes, dim=1)
        rows, columns = torch.tril_indices(width, width, offset=-1, device=params.device)
        weight = params.new_zeros(len(params), width, width)
        weight[:, rows, columns] = lower_entries
        return mean, variance_from_raw(raw), weight
