"""Batch norm whose mean and variance follow the index."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["IndexNorm", "IndexTrend", "Trend"]

RIDGE = 0.1  # in units of e(u): shrinks slopes over a range of u too narrow to tell them
MEMORY = 0.2  # the batch's share in what is remembered: one alone cannot tell eleven slopes
FLOOR = 0.1  # no variance below this share of the mean one: a straight line may run below zero
EPSILON = 1e-5


@dataclass(frozen=True)
class Trend:
    """The rows' e(u) about its mean, and the inverse of its covariance: slopes follow from both."""

    index: Tensor
    inverse: Tensor

    def moments(self, values: Tensor) -> Tensor:
        """The covariance of e(u) with values of the rows."""
        return self.index.T @ values / len(values)

    def line(self, mean: Tensor, moments: Tensor) -> Tensor:
        """The line of least squares with this mean and these moments, at each row."""
        return torch.addmm(mean, self.index, self.inverse @ moments)

    @cached_property
    def hat(self) -> Tensor:
        """What the rows' values have to do with their own line, a matrix of rows by rows."""
        share = self.index.new_full((), 1 / len(self.index))
        return torch.addmm(share, self.index, MEMORY * share * self.inverse @ self.index.T)


class IndexTrend(nn.Module):
    """What all `IndexNorm` of an encoder share: mean and covariance of e(u) over the rows."""

    centre: Tensor
    covariance: Tensor

    def __init__(self, index_width: int) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(index_width))
        self.register_buffer("covariance", torch.eye(index_width))

    def forward(self, index: Tensor) -> Trend:
        centre = self.centre
        if self.training:
            centre = index.mean(0)
            self.centre.lerp_(centre, MEMORY)
            away = index - centre
            self.covariance.lerp_(away.T @ away / len(index), MEMORY)
        ridge = torch.full_like(centre, RIDGE).diag()
        return Trend(index - centre, torch.linalg.inv(self.covariance + ridge))


class IndexNorm(nn.Module):
    """``h -> w (h - m(u)) / sqrt(v(u)) + b``, m and v straight lines in e(u), channel by channel.

    Batch norm gives every channel the same mean and variance over all rows; here it has them at
    every u, which takes out of each layer what drifts steadily with the index, labels or not. Mean
    and variance are the batch's in training, as in batch norm; their slopes are of least squares
    over the last few batches. Prediction takes running means of all.
    """

    mean: Tensor
    variance: Tensor
    mean_moments: Tensor
    variance_moments: Tensor

    def __init__(self, channels: int, index_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("variance", torch.ones(channels))
        self.register_buffer("mean_moments", torch.zeros(index_width, channels))
        self.register_buffer("variance_moments", torch.zeros(index_width, channels))

    def forward(self, h: Tensor, trend: Trend) -> Tensor:
        if self.training:
            normed: Tensor = _Follow.apply(h, self.weight, self.bias, trend, self)  # type: ignore[no-untyped-call]
            return normed
        mean = trend.line(self.mean, self.mean_moments)
        variance = trend.line(self.variance, self.variance_moments)
        scale = self.weight * torch.rsqrt(torch.maximum(variance, FLOOR * self.variance) + EPSILON)
        return _scaled(h, scale, self.bias - scale * mean)

    def mean_line(self, means: Tensor, trend: Trend) -> Tensor:
        """The line of the rows' means, which are remembered."""
        middle = means.mean(0)
        self.mean.lerp_(middle, MEMORY)
        self.mean_moments.lerp_(trend.moments(means), MEMORY)
        return trend.line(middle, self.mean_moments)

    def variance_line(self, squares: Tensor, trend: Trend) -> tuple[Tensor, Tensor]:
        """The line of the rows' squares, which are remembered, and its floor."""
        middle = squares.mean(0)
        self.variance.lerp_(middle, MEMORY)
        self.variance_moments.lerp_(trend.moments(squares), MEMORY)
        return trend.line(middle, self.variance_moments), FLOOR * middle


class _Follow(torch.autograd.Function):
    """The norm of a batch.

    With the rows' means a and mean squares s: ``m = line(a)``, ``q = s - 2 a m + m^2``,
    ``r = line(q)^(-1/2)``, ``h -> w r (h - m) + b``. The derivative of a line in its values is the
    hat matrix. Written out since autograd, one small operation after another, takes twice as
    long; the floor is taken for a constant.
    """

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, weight: Tensor, bias: Tensor, trend: Trend, norm: IndexNorm
    ) -> Tensor:
        own = h.mean((2, 3))
        mean = norm.mean_line(own, trend)
        square = torch.addcmul(h.square().mean((2, 3)), mean, mean - 2 * own)
        variance, low = norm.variance_line(square, trend)
        inverse = torch.rsqrt(torch.maximum(variance, low) + EPSILON)
        ctx.save_for_backward(h, trend.hat, weight, mean, mean - own, inverse, variance > low)
        scale = weight * inverse
        return _scaled(h, scale, bias - scale * mean)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        gradient = gradients[0]
        h, hat, weight, mean, off, inverse, free = ctx.saved_tensors
        share = 1 / h[0, 0].numel()
        scale = weight * inverse
        of_bias = gradient.sum((2, 3))
        of_scale = (gradient * h).sum((2, 3)) - mean * of_bias
        of_square = hat.T @ (-0.5 * scale * inverse.square() * of_scale * free)
        of_mean = 2 * of_square * off - scale * of_bias
        of_own = hat.T @ of_mean - 2 * of_square * mean
        of_h = _scaled(h, 2 * share * of_square, share * of_own)
        of_h.addcmul_(gradient, scale[:, :, None, None])
        return of_h, (of_scale * inverse).sum(0), of_bias.sum(0), None, None


def _scaled(h: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """``scale h + shift``, a number a row and channel."""
    return torch.addcmul(shift[:, :, None, None], h, scale[:, :, None, None])
