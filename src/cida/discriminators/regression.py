"""Discriminators that predict a single value: the squared and the absolute error."""

from __future__ import annotations

import torch
from torch import Tensor

from cida.discriminators.base import Discriminator

__all__ = ["L1", "L2"]


class L2(Discriminator):
    """``L_d = |D(z) - u|^2`` (eq. 2): the head of CIDA.

    The optimal D(z) is E[u|z] (Lemma 4.1), and its loss is E V[u|z]. The ceiling is V[u], reached
    if and only if E[u|z] = E[u] for every z (Theorem 4.1): it aligns the mean of p(u|z) and nothing
    else. Errors are measured in the embedding of the space and summed over its columns.

    Parameters
    ----------
    body : torch.nn.Module, optional
        Your own module from z to features; by default an MLP with the widths of ``hidden``.
    hidden : tuple of int, default (128, 128, 128)
        Widths of the default body.
    """

    @property
    def params_width(self) -> int:
        return self.embedding_width

    def score(self, params: Tensor, target: Tensor) -> Tensor:
        return (params - target).square().sum(1)

    def marginal_params(self, u: Tensor, weights: Tensor) -> Tensor:
        return weights @ self.target(u).to(weights.dtype)


class L1(Discriminator):
    """``L_d = |D(z) - u|`` (section 3.2): the absolute error.

    The optimal D(z) is the median of p(u|z). The ceiling is the mean absolute deviation of u from
    its median, reached if one value is a median of p(u|z) for every z: it aligns the median. Errors
    are measured in the embedding and summed over its columns.

    Parameters
    ----------
    body : torch.nn.Module, optional
        Your own module from z to features; by default an MLP with the widths of ``hidden``.
    hidden : tuple of int, default (128, 128, 128)
        Widths of the default body.
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
