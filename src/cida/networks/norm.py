"""Batch normalisation whose mean and variance depend on the index."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["IndexMoments", "IndexNorm", "IndexTrend"]

RIDGE_PENALTY = 0.1  # in units of e(u): shrinks slopes over a range of u too narrow to tell them
MOMENTUM = 0.2  # the batch's share in what is remembered: one alone cannot tell eleven slopes
MIN_VARIANCE_RATIO = 0.1  # of the mean variance: a straight line may run below zero
VARIANCE_EPSILON = 1e-5


@dataclass(frozen=True)
class IndexMoments:
    """The rows' e(u) about its mean, and the inverse of its covariance: slopes follow from both."""

    index: Tensor
    inverse: Tensor

    def covariance_with(self, values: Tensor) -> Tensor:
        """The covariance of e(u) with values of the rows."""
        return self.index.T @ values / len(values)

    def evaluate_line(self, mean: Tensor, moments: Tensor) -> Tensor:
        """The least-squares line with this mean and these moments, at each row."""
        return torch.addmm(mean, self.index, self.inverse @ moments)

    @cached_property
    def hat_matrix(self) -> Tensor:
        """The matrix, rows by rows, that maps the rows' values to their own line."""
        share = self.index.new_full((), 1 / len(self.index))
        return torch.addmm(share, self.index, MOMENTUM * share * self.inverse @ self.index.T)


class IndexTrend(nn.Module):
    """Mean and covariance of e(u) over the rows, shared by all `IndexNorm` layers of an encoder.

    Parameters
    ----------
    index_width : int
        Number of columns of the embedded index.
    """

    centre: Tensor
    covariance: Tensor
    frozen_inverse: Tensor | None

    def __init__(self, index_width: int) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(index_width))
        self.register_buffer("covariance", torch.eye(index_width))
        self.register_buffer("frozen_inverse", None, persistent=False)

    def make_traceable(self) -> None:
        """Invert the covariance once for all, since ONNX has no inverse; for evaluation only."""
        self.frozen_inverse = self.eval()(self.centre[None]).inverse

    def forward(self, index: Tensor) -> IndexMoments:
        centre = self.centre
        if self.training:
            centre = index.mean(0)
            self.centre.lerp_(centre, MOMENTUM)
            centered = index - centre
            self.covariance.lerp_(centered.T @ centered / len(index), MOMENTUM)
        if self.frozen_inverse is not None:
            return IndexMoments(index - centre, self.frozen_inverse)
        ridge = torch.full_like(centre, RIDGE_PENALTY).diag()
        return IndexMoments(index - centre, torch.linalg.inv(self.covariance + ridge))


class IndexNorm(nn.Module):
    """``h -> w (h - m(u)) / sqrt(v(u)) + b``, m and v straight lines in e(u), for each channel.

    Batch normalisation gives every channel the same mean and variance over all rows; this layer
    does so at every u, which removes from each layer what drifts steadily with the index, without
    labels. Mean and variance are the batch's in training, as in batch normalisation; their slopes
    are least-squares estimates over the last few batches. Prediction uses running means.

    Parameters
    ----------
    channels : int
        Number of channels of h.
    index_width : int
        Number of columns of the embedded index.
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

    def forward(self, h: Tensor, trend: IndexMoments) -> Tensor:
        if self.training:
            normed: Tensor = _IndexNormFunction.apply(h, self.weight, self.bias, trend, self)  # type: ignore[no-untyped-call]
            return normed
        mean = trend.evaluate_line(self.mean, self.mean_moments)
        variance = trend.evaluate_line(self.variance, self.variance_moments)
        floor = MIN_VARIANCE_RATIO * self.variance
        scale = self.weight * torch.rsqrt(torch.maximum(variance, floor) + VARIANCE_EPSILON)
        return _scale_and_shift(h, scale, self.bias - scale * mean)

    def update_mean_line(self, means: Tensor, trend: IndexMoments) -> Tensor:
        """Update the running mean, and return the line of the rows' means."""
        middle = means.mean(0)
        self.mean.lerp_(middle, MOMENTUM)
        self.mean_moments.lerp_(trend.covariance_with(means), MOMENTUM)
        return trend.evaluate_line(middle, self.mean_moments)

    def update_variance_line(self, squares: Tensor, trend: IndexMoments) -> tuple[Tensor, Tensor]:
        """Update the running variance, and return the line of the rows' squares and its floor."""
        middle = squares.mean(0)
        self.variance.lerp_(middle, MOMENTUM)
        self.variance_moments.lerp_(trend.covariance_with(squares), MOMENTUM)
        return trend.evaluate_line(middle, self.variance_moments), MIN_VARIANCE_RATIO * middle


class _IndexNormFunction(torch.autograd.Function):
    """The normalisation of one batch.

    With the rows' means a and mean squares s: ``m = line(a)``, ``q = s - 2 a m + m^2``, ``r =
    line(q)^(-1/2)``, ``h -> w r (h - m) + b``. The derivative of a line in its values is the hat
    matrix. The gradient is written by hand since autograd, with its many small operations, takes
    twice as long; the floor is treated as a constant.
    """

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, weight: Tensor, bias: Tensor, trend: IndexMoments, norm: IndexNorm
    ) -> Tensor:
        row_means = h.mean((2, 3))
        mean = norm.update_mean_line(row_means, trend)
        square = torch.addcmul(h.square().mean((2, 3)), mean, mean - 2 * row_means)
        variance, floor = norm.update_variance_line(square, trend)
        inverse = torch.rsqrt(torch.maximum(variance, floor) + VARIANCE_EPSILON)
        ctx.save_for_backward(
            h, trend.hat_matrix, weight, mean, mean - row_means, inverse, variance > floor
        )
        scale = weight * inverse
        return _scale_and_shift(h, scale, bias - scale * mean)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        gradient = gradients[0]
        h, hat, weight, mean, mean_offset, inverse, is_above_floor = ctx.saved_tensors
        share = 1 / h[0, 0].numel()
        scale = weight * inverse
        grad_bias = gradient.sum((2, 3))
        grad_scale = (gradient * h).sum((2, 3)) - mean * grad_bias
        grad_square = hat.T @ (-0.5 * scale * inverse.square() * grad_scale * is_above_floor)
        grad_mean = 2 * grad_square * mean_offset - scale * grad_bias
        grad_row_means = hat.T @ grad_mean - 2 * grad_square * mean
        grad_h = _scale_and_shift(h, 2 * share * grad_square, share * grad_row_means)
        grad_h.addcmul_(gradient, scale[:, :, None, None])
        return grad_h, (grad_scale * inverse).sum(0), grad_bias.sum(0), None, None


def _scale_and_shift(h: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """``scale h + shift``, a number a row and channel."""
    return torch.addcmul(shift[:, :, None, None], h, scale[:, :, None, None])
