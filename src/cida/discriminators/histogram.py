"""The histogram discriminator: a softmax over bins that know their distances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np
import torch
from torch import Tensor, nn

from cida.discriminators.base import Discriminator

__all__ = ["Histogram"]


class Histogram(Discriminator):
    """``L_d = -sum_k t_k(u) log softmax_k D(z)``, ``t_k(u) ~ exp(-d(u, a_k)^2 / 2 h^2)``.

    The bins are anchors a_k that cover the index range. Each row's target is spread over
    neighbouring bins by a kernel in the metric of the space, which wraps where the index is
    periodic. It aligns all moments of p(u|z) up to the width of a bin, which the paper leaves to
    future work. The ceiling is the entropy of the mean target, reached if and only if every z gives
    the same soft histogram. Hard bins (``kernel=0``) are categorical adaptation with K domains
    (DANN).

    Parameters
    ----------
    bins : int or sequence of float, default 30
        Number of anchors, evenly spaced on a `Line` or a `Periodic` index and k-means centres in a
        `Product`; or the anchors themselves, for an index of one column.
    kernel : float, default 1.0
        The kernel's width h, in units of the mean distance between neighbouring anchors.
    smoothing : float, default 0.0
        Share s of each target that is spread evenly over all bins: ``(1 - s) t_k + s / K``.
    body : torch.nn.Module, optional
        Your own module from z to features; by default an MLP with the widths of ``hidden``.
    hidden : tuple of int, default (128, 128, 128)
        Widths of the default body.

    Examples
    --------
    >>> import cida
    >>> model = cida.CIDAClassifier(discriminator=cida.Histogram(bins=36, kernel=0.5))
    """

    anchors: Tensor
    bandwidth: Tensor
    aligns_all_moments = True

    def __init__(
        self,
        bins: int | Sequence[float] = 30,
        kernel: float = 1.0,
        smoothing: float = 0.0,
        body: nn.Module | None = None,
        hidden: tuple[int, ...] = (128, 128, 128),
    ) -> None:
        super().__init__(body, hidden)
        if not kernel >= 0:
            raise ValueError(f"kernel must not be negative, got {kernel}; 0 gives hard bins.")
        if not 0 <= smoothing < 1:
            raise ValueError(f"smoothing must be at least 0 and below 1, got {smoothing}.")
        self.bins = _validate_bins(bins)
        self.kernel = kernel
        self.smoothing = smoothing
        self.register_buffer("anchors", torch.zeros(0, 0, dtype=torch.float64))
        self.register_buffer("bandwidth", torch.zeros((), dtype=torch.float64))

    def place_anchors(self, u: Tensor) -> None:
        if isinstance(self.bins, int):
            self.anchors = self.built_space.make_anchors(u, self.bins)
        elif self.built_space.width == 1:
            self.anchors = torch.tensor(self.bins, dtype=torch.float64)[:, None]
        else:
            raise ValueError(
                f"bins are {len(self.bins)} anchors of one number and the index has "
                f"{self.built_space.width} columns; give how many anchors there should be."
            )
        distances = self.built_space.distance(self.anchors, self.anchors)
        distances.fill_diagonal_(torch.inf)
        if not isinstance(self.bins, int) and float(distances.min()) == 0:
            raise ValueError(f"bins are the anchors {self.bins}; two of them are the same place.")
        self.bandwidth = (self.kernel * distances.min(1).values.mean()).clamp(min=1e-12)

    @property
    def params_width(self) -> int:
        return len(self.anchors)

    def target(self, u: Tensor) -> Tensor:
        """Return the soft histogram of each row: the kernel around u at the anchors.

        Parameters
        ----------
        u : Tensor of shape (rows, width)
            Raw index values.

        Returns
        -------
        Tensor of shape (rows, anchors)
            Weights that sum to 1 in each row.
        """
        # Exact differences of raw values first; scaled distances are small enough for float32.
        distance = self.built_space.distance(u, self.anchors).to(torch.get_default_dtype())
        if self.kernel == 0:
            one_hot = nn.functional.one_hot(distance.argmin(1), len(self.anchors))
            soft_histogram = one_hot.to(distance.dtype)
        else:
            sharpness = 0.5 / float(self.bandwidth) ** 2
            soft_histogram = torch.softmax(distance.square_().mul_(-sharpness), dim=1)
        if not self.smoothing:
            return soft_histogram
        return (1 - self.smoothing) * soft_histogram + self.smoothing / len(self.anchors)

    def score(self, params: Tensor, target: Tensor) -> Tensor:
        return nn.functional.cross_entropy(params, target, reduction="none")

    @torch.no_grad()
    def marginal_loss(self, target: Tensor) -> Tensor:
        # The same parameters for all rows: their logarithm is taken once.
        return -(torch.log_softmax(self.blind, dim=1) * target).sum(1)

    def marginal_params(self, u: Tensor, weights: Tensor) -> Tensor:
        parts = zip(torch.split(u, 8192), torch.split(weights, 8192), strict=True)
        means = [share @ self.target(part).to(share.dtype) for part, share in parts]
        return torch.stack(means).sum(0).clamp(min=1e-12).log()


def _validate_bins(bins: int | Sequence[float]) -> int | tuple[float, ...]:
    if isinstance(bins, Sequence | np.ndarray):
        anchors = [anchor for anchor in bins if isinstance(anchor, Real) and math.isfinite(anchor)]
        if len(set(anchors)) < max(2, len(bins)):
            raise ValueError(
                f"bins are the anchors {bins!r}; give two or more finite numbers, all different."
            )
        return tuple(map(float, anchors))
    if not isinstance(bins, Integral) or bins < 2:
        raise ValueError(f"bins must be at least 2, got {bins!r}.")
    return int(bins)
