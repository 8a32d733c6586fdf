"""The moving frame: each row seen from where the rows of its index are, and where they head."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from torch import Tensor, nn

from cida.networks.mlp import PlainEncoder

__all__ = ["FramedEncoder", "MovingFrame"]

Array = np.ndarray[Any, Any]

GRID = 256
MOST_FEATURES = 128  # a turn is a matrix of features x features at each place of the grid
MOST_BINS = 64


class MovingFrame(nn.Module):
    """``x -> T(u) (x - m(u))``: m(u) is the path of the mean, T(u) turns its heading to one side.

    A layer that depends on the index, fitted to moments and not by the game, with no label: m is a
    Gaussian process through the means along u, with the noise that their counts give them; T is
    the rotation that carries the path's tangent back along it to where it started, and nothing
    more (parallel transport). What only moves and turns along u stands still in this frame. Then
    each column is scaled to zero mean and unit variance.
    """

    places: Tensor
    centre: Tensor
    turn: Tensor
    mean: Tensor
    scale: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("places", torch.linspace(0, 1, GRID))
        self.register_buffer("centre", torch.zeros(GRID, features))
        self.register_buffer("turn", torch.eye(features).repeat(GRID, 1, 1))
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("scale", torch.ones(features))

    @torch.no_grad()
    def fit(self, x: Tensor, index: Tensor) -> Self:
        """Finds the path and its turns in the rows of x and their index on a line."""
        u = index[:, 0].double().numpy()
        path = _path(u, x.flatten(1).double().numpy())
        places = np.linspace(u.min(), u.max(), GRID)
        self.places = torch.from_numpy(places).float()
        self.centre = torch.from_numpy(path(places)).float()
        self.turn = torch.from_numpy(_turns(path, places)).float()
        moved = self._move(x.flatten(1), index.to(x.dtype))
        self.mean, self.scale = moved.mean(0), moved.std(0).clamp(min=1e-6)
        return self

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        return (self._move(x.flatten(1), index) - self.mean) / self.scale

    def _move(self, x: Tensor, index: Tensor) -> Tensor:
        """Between two places the frame is mixed; beyond the range seen it is that of the end."""
        span = (self.places[-1] - self.places[0]).clamp(min=1e-12)
        place = ((index[:, 0] - self.places[0]) / span * (GRID - 1)).clamp(0, GRID - 1)
        low = place.floor().long().clamp(max=GRID - 2)
        share = (place - low)[:, None]
        centre = torch.lerp(self.centre[low], self.centre[low + 1], share)
        turn = torch.lerp(self.turn[low], self.turn[low + 1], share[..., None])
        return (turn @ (x - centre)[..., None])[..., 0]


class FramedEncoder(nn.Module):
    """``z = E(T(u) (x - m(u)))``: an encoder in the moving frame, which alone sees the index."""

    def __init__(self, inputs: int, hidden: Sequence[int], outputs: int) -> None:
        super().__init__()
        self.frame = MovingFrame(inputs)
        self.body = PlainEncoder(inputs, hidden, outputs)

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        z: Tensor = self.body(self.frame(x, index))
        return z


class _Path:
    """``m(u)``: a smooth curve through noisy means, one Gaussian process a column."""

    def __init__(self, places: Array, means: Array, noise: Array) -> None:
        self.curves = []
        spread = float(np.ptp(places)) or 1.0
        for values, variance in zip(means.T, noise.T, strict=True):
            kernel = ConstantKernel(1.0, (1e-4, 1e4)) * RBF(spread / 2, (spread / 20, spread * 5))
            curve = GaussianProcessRegressor(
                kernel, alpha=variance, n_restarts_optimizer=2, random_state=0
            )
            with warnings.catch_warnings():  # a scale at its bound is an answer too
                warnings.simplefilter("ignore", ConvergenceWarning)
                self.curves.append(curve.fit(places[:, None], values))

    def __call__(self, u: Array) -> Array:
        return np.stack([curve.predict(u[:, None]) for curve in self.curves], axis=1)


def _path(u: Array, x: Array) -> _Path:
    """The path of the mean of x along u, from the means of its values or of even shares of rows."""
    bins = min(MOST_BINS, max(4, len(u) // 10))
    values, owner = np.unique(u, return_inverse=True)
    if len(values) > bins:
        cuts = np.quantile(u, np.linspace(0, 1, bins + 1)[1:-1])
        _, owner = np.unique(np.searchsorted(cuts, u, side="right"), return_inverse=True)
    counts = np.bincount(owner).astype(np.float64)
    places = np.bincount(owner, u) / counts
    means = np.stack([np.bincount(owner, column) / counts for column in x.T], axis=1)
    freedom = max(1, len(u) - len(counts))
    within = ((x - means[owner]) ** 2).sum(axis=0) / freedom
    noise = np.maximum(within, 1e-6) / counts[:, None]
    return _Path(places, means, noise)


def _turns(path: _Path, places: Array) -> Array:
    """The rotation at each place that undoes all turns of the path's tangent up to it."""
    step = (places[-1] - places[0]) / (10 * GRID) or 1.0
    heading = path(places + step) - path(places - step)
    speed = np.linalg.norm(heading, axis=1, keepdims=True)
    heading = heading / np.maximum(speed, 1e-12)
    turns = [np.eye(heading.shape[1])]
    for before, after in pairwise(heading):
        turns.append(turns[-1] @ _least_rotation(after, before))
    return np.stack(turns)


def _least_rotation(start: Array, end: Array) -> Array:
    """The rotation that takes one unit vector to the other and leaves all at right angles alone.

    Where the path stands still or goes back the way it came there is none to be found: no turn.
    """
    cosine = float(start @ end)
    if cosine <= 0.0:
        return np.eye(len(start))
    plane = np.outer(end, start) - np.outer(start, end)
    turned: Array = np.eye(len(start)) + plane + plane @ plane / (1 + cosine)
    return turned
