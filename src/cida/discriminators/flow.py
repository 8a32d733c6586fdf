"""The flow discriminator: spline flows as the distribution of u."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from cida.discriminators.base import (
    HALF_LOG_TWO_PI,
    Discriminator,
    raw_from_variance,
    variance_from_raw,
)
from cida.discriminators.marginal import merge_duplicates, minimize_lbfgs, subsample_weighted

__all__ = ["Flow"]

MAX_MOEBIUS_RADIUS = 0.99  # peaks on a circle are as high as the floor allows on a line
# No bin is over 100 times as high as another, and none below a quarter as wide: deep gaps between
# modes, but blunt spikes only on the values of an index of few values.
MIN_SPLINE_SLOPE = 1e-2
MAX_FLOW_FIT_POINTS = 512


class Flow(Discriminator):
    """``L_d = -log |f_z'(u)| - log base(f_z(u))``: a flow with a spline of K bins per column.

    The whole distribution of each column of u, which the paper leaves to future work. On a `Line`,
    f is a shift and a scale, then a monotonic rational-quadratic spline (Durkan et al., 2019), and
    the base is a standard normal. On a `Periodic` column it is a Moebius map (the shift and scale
    of a circle), then a circular spline (Rezende et al., 2020), and the base is uniform. D(z) gives
    the parameters of f. The ceiling is the loss of the best constant f, which has no closed form;
    it is reached if and only if one f is the best for every z. Columns are modelled one by one;
    `Histogram` and `FullGaussian` also see how they vary together. Log densities leave out 1/2 log
    2 pi per column, as in eq. 3. It requires zuko (extra ``flow``).

    Parameters
    ----------
    bins : int, default 8
        Number of spline bins K.
    body : torch.nn.Module, optional
        Your own module from z to features; by default an MLP with the widths of ``hidden``.
    hidden : tuple of int, default (128, 128, 128)
        Widths of the default body.
    """

    aligns_all_moments = True

    def __init__(
        self,
        bins: int = 8,
        body: nn.Module | None = None,
        hidden: tuple[int, ...] = (128, 128, 128),
    ) -> None:
        super().__init__(body, hidden)
        if bins < 2:
            raise ValueError(f"bins must be at least 2, got {bins}.")
        self.bins = bins

    def place_anchors(self, u: Tensor) -> None:
        _import_transforms()  # better here than after the first batch

    @property
    def params_width(self) -> int:
        return self.built_space.width * (3 * self.bins + 1)

    def score(self, params: Tensor, target: Tensor) -> Tensor:
        column_params = params.reshape(len(params), self.built_space.width, -1).unbind(1)
        widths = [column.embedding_width for column in self.built_space.column_spaces]
        pairs = zip(column_params, torch.split(target, widths, dim=1), strict=True)
        return torch.stack([self._column_loss(own, piece) for own, piece in pairs]).sum(0)

    def _column_loss(self, params: Tensor, point: Tensor) -> Tensor:
        """The loss of one column; a point of two numbers is on a circle."""
        sizes = [2, self.bins, self.bins, self.bins - 1]
        shift_scale, widths, heights, slopes = torch.split(params, sizes, dim=1)
        on_circle = point.shape[1] == 2
        inner, log_slope = (_moebius if on_circle else _affine)(shift_scale, point)
        spline = _import_transforms().MonotonicRQSTransform(
            widths.tanh(),
            heights,
            -2 * nn.functional.elu(-slopes / 2),  # below 2, and as it is where negative
            bound=math.pi,  # half a turn; on a line 3.1 deviations, beyond which nothing is bent
            slope=MIN_SPLINE_SLOPE,
        )
        outer, log_spline_slope = spline.call_and_ladj(inner)
        base = HALF_LOG_TWO_PI if on_circle else outer.square() / 2
        loss: Tensor = base - log_spline_slope - log_slope
        return loss

    def marginal_params(self, u: Tensor, weights: Tensor) -> Tensor:
        column_fits = []
        columns = zip(self.built_space.column_spaces, torch.split(u, 1, dim=1), strict=True)
        for column, values in columns:
            points = merge_duplicates(values, weights)
            raw, share = subsample_weighted(*points, MAX_FLOW_FIT_POINTS)
            column_fits.append(self._fit_column(column.embed(raw).to(share.dtype), share))
        return torch.cat(column_fits)

    def _fit_column(self, points: Tensor, share: Tensor) -> Tensor:
        """The best numbers for one column.

        From no spline, which ends lowest nearly always, and from one bent anyhow: where all is
        symmetric, no spline is where the slope is zero.
        """
        mean = share @ points
        variance = share @ (points - mean).square()
        shift_scale = mean if len(mean) == 2 else torch.cat([mean, raw_from_variance(variance)])
        generator = torch.Generator().manual_seed(0)
        random_shape = torch.randn(3 * self.bins - 1, generator=generator, dtype=share.dtype) / 2
        shapes = (torch.zeros_like(random_shape), random_shape)
        starts = [torch.cat([shift_scale, shape]) for shape in shapes]
        return minimize_lbfgs(
            lambda params: share @ self._column_loss(params[None], points), starts, max_iter=300
        )


def _affine(shift_scale: Tensor, point: Tensor) -> tuple[Tensor, Tensor]:
    """``(u - shift) / scale``, and the log of its slope."""
    variance = variance_from_raw(shift_scale[:, 1])
    return (point[:, 0] - shift_scale[:, 0]) / variance.sqrt(), -variance.log() / 2


def _moebius(raw_centre: Tensor, point: Tensor) -> tuple[Tensor, Tensor]:
    """The angle of ``(1 - |w|^2) / |e - w|^2 (e - w) - w``, and the log of its slope in u.

    It stretches the circle around the direction of w, the more the nearer w is to its rim.
    """
    w = MAX_MOEBIUS_RADIUS * raw_centre / (1 + raw_centre.square().sum(1, keepdim=True)).sqrt()
    offset = point - w
    slope = (1 - w.square().sum(1)) / offset.square().sum(1)
    mapped_point = slope[:, None] * offset - w
    return torch.atan2(mapped_point[:, 1], mapped_point[:, 0]), slope.log()


def _import_transforms() -> Any:
    try:
        return import_module("zuko.transforms")
    except ImportError as error:
        raise ImportError(
            "discriminator 'flow' needs zuko, which is not installed; pip install 'cida[flow]'."
        ) from error
