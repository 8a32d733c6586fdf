"""The moving frame: each row relative to the mean at its index, with the mean's turns undone."""

from __future__ import annotations

import warnings
from typing import Literal, Self

import numpy as np
import torch
from scipy.linalg import solve_triangular
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from torch import Tensor, nn

from cida.array_types import Array
from cida.coordinates.principal_axes import principal_axis_rotations
from cida.spaces import Space

__all__ = ["MovingFrameLayer", "can_use_moving_frame"]

N_GRID_POINTS = 256
MAX_FRAME_FEATURES = 128  # a turn is a matrix of features x features at each place of the grid
MAX_FRAME_BINS = 64
MIN_HEADING_SIGNAL_TO_NOISE = 4.0  # its own deviations that a heading must be long to be believed


def can_use_moving_frame(space: Space, features: int) -> bool:
    """Tell whether the index is one number on a line and x has few enough columns.

    Parameters
    ----------
    space : Space
        The space of the index.
    features : int
        Number of columns of x.

    Returns
    -------
    bool
        True if `MovingFrameLayer` can be used.
    """
    return space.embedding_width == 1 and features <= MAX_FRAME_FEATURES


class MovingFrameLayer(nn.Module):
    """``x -> T(u) (x - m(u)) / s``: m(u) is the path of the mean, T(u) undoes the path's turns.

    A layer that depends on the index and is fitted to moments, without labels and outside the game.
    s is the standard deviation of each column at a fixed u. The path m is a Gaussian process
    through the means along u, with noise by their counts; T is the rotation that transports the
    path's tangent back to its start, and nothing more (parallel transport). What only moves and
    turns along u stands still in this frame. Where the path moves no faster than its noise there is
    no tangent, and the last certain one is kept.

    Parameters
    ----------
    features : int
        Number of columns of x.
    follow : {"path", "axes"}, default "path"
        Whether T undoes the turns of the path, or those of the rows' principal axes
        (`principal_axis_rotations`), for data that turn on the spot.
    """

    places: Tensor
    centre: Tensor
    turn: Tensor
    deviation: Tensor

    def __init__(self, features: int, follow: Literal["path", "axes"] = "path") -> None:
        super().__init__()
        self.follow = follow
        self.register_buffer("places", torch.linspace(0, 1, N_GRID_POINTS))
        self.register_buffer("centre", torch.zeros(N_GRID_POINTS, features))
        self.register_buffer("turn", torch.eye(features).repeat(N_GRID_POINTS, 1, 1))
        self.register_buffer("deviation", torch.ones(features))

    @torch.no_grad()
    def fit(self, x: Tensor, index: Tensor) -> Self:
        """Find the path and its turns in the rows of x and their index on a line."""
        u, rows = index[:, 0].double().numpy(), x.flatten(1).double().numpy()
        bin_of_row = _assign_bins(u)
        counts = np.bincount(bin_of_row)
        means = _bin_means(bin_of_row, rows)
        within = ((rows - means[bin_of_row]) ** 2).sum(axis=0) / max(1, len(u) - len(counts))
        deviation = np.where(within > 1e-12, np.sqrt(within), 1.0)
        path = _MeanPath(_bin_means(bin_of_row, u[:, None])[:, 0], means / deviation, 1 / counts)
        places = np.linspace(u.min(), u.max(), N_GRID_POINTS)
        self.places = torch.from_numpy(places).float()
        self.centre = torch.from_numpy(path(places)).float()
        if self.follow == "path":
            turns = _path_rotations(path, places)
        else:
            turns = _axis_rotations(path, u, rows / deviation)
        self.turn = torch.from_numpy(turns).float()
        self.deviation = torch.from_numpy(deviation).float()
        return self

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        # Between two places the frame is mixed; beyond the range seen it is that of the end.
        span, last = (self.places[-1] - self.places[0]).clamp(min=1e-12), N_GRID_POINTS - 1
        place = ((index[:, 0] - self.places[0]) / span * last).clamp(0, last)
        low = place.floor().long().clamp(max=last - 1)
        share = (place - low)[:, None]
        centre = torch.lerp(self.centre[low], self.centre[low + 1], share)
        turn = torch.lerp(self.turn[low], self.turn[low + 1], share[..., None])
        return (turn @ (x.flatten(1) / self.deviation - centre)[..., None])[..., 0]


class _MeanPath:
    """``m(u)``: a smooth curve through noisy means, one Gaussian process for all columns."""

    def __init__(self, places: Array, means: Array, noise: Array) -> None:
        span = float(np.ptp(places)) or 1.0
        kernel = ConstantKernel(10.0, (1e-2, 1e6)) * RBF(span / 2, (span / 20, span * 5))
        curve = GaussianProcessRegressor(
            kernel, alpha=noise, n_restarts_optimizer=2, random_state=0
        )
        self.middle = means.mean(axis=0)
        with warnings.catch_warnings():  # a scale at its bound is an answer too
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.curve = curve.fit(places[:, None], means - self.middle)

    def __call__(self, u: Array) -> Array:
        return np.asarray(self.curve.predict(u[:, None]).reshape(len(u), -1) + self.middle)

    def tangent(self, u: Array) -> tuple[Array, Array]:
        """``m'(u)``, and the deviation of each of its columns given the means."""
        variance, length = self.curve.kernel_.k1.constant_value, self.curve.kernel_.k2.length_scale
        gaps = u[:, None] - self.curve.X_train_.T
        slope = -gaps / length**2 * variance * np.exp(-(gaps**2) / (2 * length**2))
        whitened_slope = solve_triangular(self.curve.L_, slope.T, lower=True)
        remaining = variance / length**2 - (whitened_slope**2).sum(axis=0)
        heading = slope @ self.curve.alpha_.reshape(len(slope.T), -1)
        return heading, np.sqrt(remaining.clip(min=0))


def _assign_bins(u: Array) -> Array:
    """The bin of each row: its value of u where there are few, else an even share of the rows."""
    bins = min(MAX_FRAME_BINS, max(4, len(u) // 10))
    values, bin_of_row = np.unique(u, return_inverse=True)
    if len(values) > bins:
        cuts = np.quantile(u, np.linspace(0, 1, bins + 1)[1:-1])
        _, bin_of_row = np.unique(np.searchsorted(cuts, u, side="right"), return_inverse=True)
    return np.asarray(bin_of_row)


def _bin_means(bin_of_row: Array, x: Array) -> Array:
    """The mean of each column in each bin."""
    counts = np.bincount(bin_of_row)
    return np.stack([np.bincount(bin_of_row, column) / counts for column in x.T], axis=1)


def _path_rotations(path: _MeanPath, places: Array) -> Array:
    """The rotation at each place that undoes all turns of the path's tangent up to it."""
    heading, heading_std = path.tangent(places)
    speed = np.linalg.norm(heading, axis=1)
    is_certain = speed > MIN_HEADING_SIGNAL_TO_NOISE * heading_std * np.sqrt(heading.shape[1])
    rotation = np.eye(heading.shape[1])
    rotations, last = [], None
    for tangent, length, has_tangent in zip(heading, speed, is_certain, strict=True):
        if has_tangent:
            tangent = tangent / length
            rotation = rotation if last is None else rotation @ _minimal_rotation(tangent, last)
            last = tangent
        rotations.append(rotation)
    return np.stack(rotations)


def _axis_rotations(path: _MeanPath, u: Array, rows: Array) -> Array:
    """The turns of the principal axes at each place, between bins mixed and made rotations."""
    bin_of_row = _assign_bins(u)
    bin_centers = _bin_means(bin_of_row, u[:, None])[:, 0]
    turns = principal_axis_rotations(rows - path(u), bin_of_row)
    places = np.linspace(u.min(), u.max(), N_GRID_POINTS)
    place = np.interp(places, bin_centers, np.arange(len(bin_centers)))
    low = np.minimum(place.astype(int), max(0, len(turns) - 2))
    share = (place - low)[:, None, None]
    interpolated = turns[low] + share * (turns[np.minimum(low + 1, len(turns) - 1)] - turns[low])
    left, _, right = np.linalg.svd(interpolated)
    return np.asarray(left @ right)


def _minimal_rotation(start: Array, end: Array) -> Array:
    """The rotation that takes one unit vector to the other and leaves all at right angles alone.

    A path that goes back the way it came has made no turn.
    """
    cosine = float(start @ end)
    if cosine <= 0.0:
        return np.eye(len(start))
    plane = np.outer(end, start) - np.outer(start, end)
    return np.asarray(np.eye(len(start)) + plane + plane @ plane / (1 + cosine))
