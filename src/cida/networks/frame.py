"""The moving frame: each row seen from where the rows of its index are, and where they head."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from scipy.linalg import solve_triangular
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from torch import Tensor, nn

from cida.networks.axes import axes_turns
from cida.networks.mlp import PlainEncoder
from cida.networks.words import described
from cida.space import Space

__all__ = ["FramedEncoder", "MovingFrame", "can_frame"]

Array = np.ndarray[Any, Any]

GRID = 256
MOST_FEATURES = 128  # a turn is a matrix of features x features at each place of the grid
MOST_BINS = 64
SURE = 4.0  # how many times its own deviation a heading must be long to be believed


def can_frame(space: Space, features: int) -> bool:
    """Whether u is one number on a line, and x few enough columns."""
    return space.embedding_width == 1 and features <= MOST_FEATURES


class MovingFrame(nn.Module):
    """``x -> T(u) (x - m(u)) / s``: m(u) is the path of the mean, T(u) undoes the path's turns.

    A layer that depends on the index, fitted to moments and not by the game, with no label. Lengths
    are measured in s, the deviation of each column at a fixed u. There m is a Gaussian process
    through the means along u, whose noise follows from their counts; T is the rotation that carries
    the path's tangent back along it to where it started, and nothing more (parallel transport).
    What only moves and turns along u stands still in this frame. Where the path moves no faster
    than its noise there is no tangent to go by: the last sure one holds. With ``follow="axes"`` T
    undoes the turns of the rows' principal axes instead (`axes_turns`): for what turns on the spot.
    """

    places: Tensor
    centre: Tensor
    turn: Tensor
    deviation: Tensor

    def __init__(self, features: int, follow: Literal["path", "axes"] = "path") -> None:
        super().__init__()
        self.follow = follow
        self.register_buffer("places", torch.linspace(0, 1, GRID))
        self.register_buffer("centre", torch.zeros(GRID, features))
        self.register_buffer("turn", torch.eye(features).repeat(GRID, 1, 1))
        self.register_buffer("deviation", torch.ones(features))

    @torch.no_grad()
    def fit(self, x: Tensor, index: Tensor) -> Self:
        """Finds the path and its turns in the rows of x and their index on a line."""
        u, rows = index[:, 0].double().numpy(), x.flatten(1).double().numpy()
        owner = _bins(u)
        counts = np.bincount(owner)
        means = _by_bin(owner, rows)
        within = ((rows - means[owner]) ** 2).sum(axis=0) / max(1, len(u) - len(counts))
        deviation = np.where(within > 1e-12, np.sqrt(within), 1.0)
        path = _Path(_by_bin(owner, u[:, None])[:, 0], means / deviation, 1 / counts)
        places = np.linspace(u.min(), u.max(), GRID)
        self.places = torch.from_numpy(places).float()
        self.centre = torch.from_numpy(path(places)).float()
        turns = _turns(path, places) if self.follow == "path" else _axes(path, u, rows / deviation)
        self.turn = torch.from_numpy(turns).float()
        self.deviation = torch.from_numpy(deviation).float()
        return self

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        # Between two places the frame is mixed; beyond the range seen it is that of the end.
        span = (self.places[-1] - self.places[0]).clamp(min=1e-12)
        place = ((index[:, 0] - self.places[0]) / span * (GRID - 1)).clamp(0, GRID - 1)
        low = place.floor().long().clamp(max=GRID - 2)
        share = (place - low)[:, None]
        centre = torch.lerp(self.centre[low], self.centre[low + 1], share)
        turn = torch.lerp(self.turn[low], self.turn[low + 1], share[..., None])
        return (turn @ (x.flatten(1) / self.deviation - centre)[..., None])[..., 0]


@described
class FramedEncoder(nn.Module):
    """``z = E(T(u) (x - m(u)))``: an encoder in the moving frame, which alone sees the index."""

    def __init__(
        self,
        inputs: int,
        hidden: Sequence[int],
        outputs: int,
        dropout: float = 0.0,
        follow: Literal["path", "axes"] = "path",
    ) -> None:
        super().__init__()
        self.frame = MovingFrame(inputs, follow)
        self.body = PlainEncoder(inputs, hidden, outputs, dropout)

    def fit_index(self, x: Tensor, index: Tensor) -> None:
        """Fits the frame to all rows; labels are not seen."""
        self.frame.fit(x, index)

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        z: Tensor = self.body(self.frame(x, index))
        return z


class _Path:
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
        at: Array = self.curve.predict(u[:, None]).reshape(len(u), -1) + self.middle
        return at

    def heading(self, u: Array) -> tuple[Array, Array]:
        """``m'(u)``, and the deviation of each of its columns given the means."""
        variance, length = self.curve.kernel_.k1.constant_value, self.curve.kernel_.k2.length_scale
        apart = u[:, None] - self.curve.X_train_.T
        slope = -apart / length**2 * variance * np.exp(-(apart**2) / (2 * length**2))
        known = solve_triangular(self.curve.L_, slope.T, lower=True)
        left = variance / length**2 - (known**2).sum(axis=0)
        return slope @ self.curve.alpha_.reshape(len(slope.T), -1), np.sqrt(left.clip(min=0))


def _bins(u: Array) -> Array:
    """The bin of each row: its value of u where there are few, else an even share of the rows."""
    bins = min(MOST_BINS, max(4, len(u) // 10))
    values, owner = np.unique(u, return_inverse=True)
    if len(values) > bins:
        cuts = np.quantile(u, np.linspace(0, 1, bins + 1)[1:-1])
        _, owner = np.unique(np.searchsorted(cuts, u, side="right"), return_inverse=True)
    found: Array = owner
    return found


def _by_bin(owner: Array, x: Array) -> Array:
    """The mean of each column in each bin."""
    counts = np.bincount(owner)
    return np.stack([np.bincount(owner, column) / counts for column in x.T], axis=1)


def _turns(path: _Path, places: Array) -> Array:
    """The rotation at each place that undoes all turns of the path's tangent up to it."""
    heading, doubt = path.heading(places)
    speed = np.linalg.norm(heading, axis=1)
    sure = speed > SURE * doubt * np.sqrt(heading.shape[1])
    turn = np.eye(heading.shape[1])
    turns, last = [], None
    for tangent, length, believed in zip(heading, speed, sure, strict=True):
        if believed:
            tangent = tangent / length
            turn = turn if last is None else turn @ _least_rotation(tangent, last)
            last = tangent
        turns.append(turn)
    return np.stack(turns)


def _axes(path: _Path, u: Array, rows: Array) -> Array:
    """The turns of the principal axes at each place, between bins mixed and made rotations."""
    owner = _bins(u)
    middles = _by_bin(owner, u[:, None])[:, 0]
    turns = axes_turns(rows - path(u), owner)
    place = np.interp(np.linspace(u.min(), u.max(), GRID), middles, np.arange(len(middles)))
    low = np.minimum(place.astype(int), max(0, len(turns) - 2))
    share = (place - low)[:, None, None]
    mixed = turns[low] + share * (turns[np.minimum(low + 1, len(turns) - 1)] - turns[low])
    left, _, right = np.linalg.svd(mixed)
    rotations: Array = left @ right
    return rotations


def _least_rotation(start: Array, end: Array) -> Array:
    """The rotation that takes one unit vector to the other and leaves all at right angles alone.

    A path that goes back the way it came has made no turn.
    """
    cosine = float(start @ end)
    if cosine <= 0.0:
        return np.eye(len(start))
    plane = np.outer(end, start) - np.outer(start, end)
    turned: Array = np.eye(len(start)) + plane + plane @ plane / (1 + cosine)
    return turned
