"""The von Mises discriminator: the Gaussian's counterpart on a circle."""

from __future__ import annotations

import torch
from torch import Tensor

from cida.discriminators.base import (
    HALF_LOG_TWO_PI,
    VARIANCE_FLOOR,
    Discriminator,
    raw_from_variance,
    variance_from_raw,
)
from cida.spaces import Space

__all__ = ["VonMises", "fit_von_mises", "natural_from_raw", "raw_from_natural", "von_mises_loss"]

# For a large kappa the variance of an angle is 1 / kappa; the Gaussian's floor is within reach.
MAX_CONCENTRATION = 2 / VARIANCE_FLOOR


class VonMises(Discriminator):
    """``L_d = log I_0(|eta|) - eta^T (cos u, sin u) + 1/2 log 2 pi``: a von Mises distribution.

    One for each `Periodic` column, in the natural parameters ``eta = kappa (cos mu, sin mu)``: the
    loss is convex in them, they have no jump, and ``eta = 0`` is the uniform distribution. Each
    column on a `Line` has the Gaussian's mean and variance (eq. 3). The optimal D(z) is determined
    by the mean of (cos u, sin u) given z, so the ceiling is reached if and only if that mean is the
    same for every z (and mean and variance of each straight column). The loss is the negative log
    density of the angle minus 1/2 log 2 pi per column, so that for a large kappa it equals the
    Gaussian's loss with the variance 1 / kappa. There are two parameters per column.

    Parameters
    ----------
    body : torch.nn.Module, optional
        Your own module from z to features; by default an MLP with the widths of ``hidden``.
    hidden : tuple of int, default (128, 128, 128)
        Widths of the default body.
    """

    @property
    def params_width(self) -> int:
        return 2 * self.built_space.width

    def score(self, params: Tensor, target: Tensor) -> Tensor:
        return von_mises_loss(self.built_space, params.reshape(len(params), -1, 2), target)

    def marginal_params(self, u: Tensor, weights: Tensor) -> Tensor:
        points = self.target(u).to(weights.dtype)
        return fit_von_mises(self.built_space, points, weights[:, None])[0].flatten()


def von_mises_loss(space: Space, params: Tensor, points: Tensor) -> Tensor:
    """The loss summed over columns; params ``(..., columns, 2)``, points ``(..., embedding)``."""
    total = points.new_zeros(())
    for column, piece in enumerate(_split_columns(space, points)):
        loss = _circular_loss if space.periods[column] else _gaussian_loss
        total = total + loss(params[..., column, :], piece)
    return total


def _gaussian_loss(params: Tensor, point: Tensor) -> Tensor:
    variance = variance_from_raw(params[..., 1])
    return (params[..., 0] - point[..., 0]).square() / (2 * variance) + variance.log() / 2


def _circular_loss(params: Tensor, point: Tensor) -> Tensor:
    natural = natural_from_raw(params)
    # Below the clamp the derivative of the root is 0, as that of log I_0 is at eta = 0.
    kappa = natural.square().sum(-1).clamp(min=1e-30).sqrt()
    # log I_0(kappa) - eta . e, where both terms are near kappa and their difference is small: the
    # exponential of the Bessel function is taken out and paired with eta . e in a square.
    squared_chord = (point - natural / kappa[..., None]).square().sum(-1)
    loss: Tensor = HALF_LOG_TWO_PI + torch.special.i0e(kappa).log() + kappa * squared_chord / 2
    return loss


def natural_from_raw(raw: Tensor) -> Tensor:
    """Return eta from two unbounded numbers: the same vector, kept below the maximum length."""
    return raw / (1 + (raw / MAX_CONCENTRATION).square().sum(-1, keepdim=True)).sqrt()


def raw_from_natural(natural: Tensor) -> Tensor:
    """The unbounded numbers that `natural_from_raw` turns into eta (below the maximum length)."""
    length: Tensor = torch.linalg.vector_norm(natural, dim=-1, keepdim=True) / MAX_CONCENTRATION
    factor: Tensor = (1 - length.square()).clamp(min=1e-3).rsqrt()
    return natural * factor


def fit_von_mises(space: Space, points: Tensor, responsibilities: Tensor) -> Tensor:
    """The best constant parameters, ``(K, columns, 2)``, for each column of responsibilities."""
    share = responsibilities / responsibilities.sum(0).clamp(min=1e-12)
    column_params = []
    for piece, turn in zip(_split_columns(space, points), space.periods, strict=True):
        mean = share.T @ piece
        if turn:
            column_params.append(raw_from_natural(_natural_from_mean(mean)))
        else:
            variance = (share * (piece - mean.T).square()).sum(0)
            column_params.append(torch.stack([mean[:, 0], raw_from_variance(variance)], dim=1))
    return torch.stack(column_params, dim=1)


def _natural_from_mean(mean: Tensor) -> Tensor:
    """eta from the mean of (cos, sin): its length R solves ``I_1(kappa) / I_0(kappa) = R``."""
    length: Tensor = torch.linalg.vector_norm(mean, dim=-1, keepdim=True)
    max_length = 1 - 0.5 / MAX_CONCENTRATION
    r = length.clamp(1e-12, max_length)
    kappa: Tensor = r * (2 - r.square()) / (1 - r.square())
    for _ in range(8):  # Newton; the start is right within a few per cent (Banerjee et al., 2005)
        ratio = torch.special.i1e(kappa) / torch.special.i0e(kappa)
        kappa = kappa - (ratio - r) / (1 - ratio / kappa - ratio.square())
    return kappa * mean / length.clamp(min=1e-12)


def _split_columns(space: Space, points: Tensor) -> tuple[Tensor, ...]:
    """The embedding of each raw column."""
    return torch.split(points, [column.embedding_width for column in space.column_spaces], dim=-1)
