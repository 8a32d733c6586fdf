"""Discriminators that guess one value: the squared and the absolute error."""

from __future__ import annotations

import torch
from torch import Tensor

from cida.discriminators.base import Discriminator

__all__ = ["L1", "L2"]


class L2(Discriminator):
    """``L_d = |D(z) - u|^2`` (eq. 2): vanilla CIDA.

    At its best D(z) = E[u|z] (Lemma 4.1), and the loss is E V[u|z]. The ceiling is V[u], reached if
    and only if E[u|z] = E[u] for every z (Theorem 4.1): it aligns the mean of p(u|z), no more.
    Errors are taken in the embedding of the space and summed over its columns.
    """

    @property
    def params_width(self) -> int:
        return self.embedding_width

    def score(self, params: Tensor, target: Tensor) -> Tensor:
        return (params - target).square().sum(1)

    def marginal_params(self, u: Tensor, weights: Tensor) -> Tensor:
        return weights @ self.target(u).to(weights.dtype)


class L1(Discriminator):
    """``L_d = |D(z) - u|``, the absolute error (section 3.2).

    At its best D(z) is the median of p(u|z); the ceiling is the mean absolute deviation from the
    median of u. Errors are taken in the embedding and summed over its columns.
    """

    @property
    def params_width(self) -> int:
        return self.embedding_width

    def score(self, params: Tensor, target: Tensor) -> Tensor:
        return (params - target).abs().sum(1)

    def marginal_params(self, u: Tensor, weights: Tensor) -> Tensor:
        values, order = self.target(u).to(weights.dtype).sort(dim=0)
        reaches_half = weights[order].cumsum(0) >= 0.5 - 1e-12
        median_rows = reaches_half.to(torch.int8).argmax(0)
        return values.gather(0, median_rows[None])[0]
