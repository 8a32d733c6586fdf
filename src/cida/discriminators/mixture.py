"""The mixture density network: a Gaussian mixture as the belief about u."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from cida.discriminators.base import VARIANCE_FLOOR, Discriminator, raw_variance, variance_of

__all__ = ["Mixture"]


class Mixture(Discriminator):
    """``L_d = -log sum_k w_k(z) N(u; mu_k(z), s2_k(z))``, a Gaussian mixture (section 3.2).

    The weights are a softmax over the K components, the sum a log-sum-exp, the variances are
    floored. With K = 1 it is the `Gaussian` head. Like eq. 3 it drops 1/2 log 2 pi a column. The
    ceiling has no closed form: the best blind mixture is fitted by expectation-maximisation.

    Arguments
    ---------
    components: K.
    """

    def __init__(
        self,
        components: int = 5,
        body: nn.Module | None = None,
        hidden: tuple[int, ...] = (128, 128, 128),
    ) -> None:
        super().__init__(body, hidden)
        if components < 1:
            raise ValueError(f"components must be at least 1, got {components}.")
        self.components = components

    @property
    def belief_width(self) -> int:
        return self.components * (1 + 2 * self.embedding_width)

    def score(self, params: Tensor, target: Tensor) -> Tensor:
        log_weight, mean, variance = self._unpack(params)
        return -torch.logsumexp(log_weight + _log_density(target, mean, variance), dim=1)

    def best_constant(self, u: Tensor, weights: Tensor) -> Tensor:
        embedding = self.target(u).to(weights.dtype)
        points, share = _few(*_merge_repeats(embedding, weights))
        starts = [_spread_start(points, share, self.components, seed) for seed in range(4)]
        fits = [_expectation_maximisation(points, share, *start) for start in starts]
        beliefs = torch.stack([self._pack(*fit) for fit in fits])
        scores = torch.stack([share @ self.score(belief[None], points) for belief in beliefs])
        return beliefs[scores.argmin()]

    def _unpack(self, params: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log weights ``(rows, K)``, means and variances ``(rows, K, columns)``."""
        k, width = self.components, self.embedding_width
        logits, mean, raw = torch.split(params, [k, k * width, k * width], dim=1)
        shape = (len(params), k, width)
        return logits.log_softmax(1), mean.reshape(shape), variance_of(raw.reshape(shape))

    @staticmethod
    def _pack(weight: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
        logits = weight.clamp(min=1e-12).log()
        return torch.cat([logits, mean.flatten(), raw_variance(variance).flatten()])


def _log_density(points: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """``log N`` without its constant; points ``(rows, columns)``, result ``(rows, K)``."""
    error = points[:, None, :] - mean
    return -(error.square() / (2 * variance) + variance.log() / 2).sum(-1)


def _merge_repeats(points: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Distinct points with their summed weights: an index of 30 values is 30 points, not 3,000."""
    distinct, where = torch.unique(points, dim=0, return_inverse=True)
    share = weights.new_zeros(len(distinct)).index_add_(0, where, weights)
    return distinct, share


def _few(points: Tensor, share: Tensor, most: int = 4096) -> tuple[Tensor, Tensor]:
    """At most ``most`` points that stand for all, drawn in proportion to their weights."""
    if len(points) <= most:
        return points, share
    # Evenly along a line; in the plane no order is even (a circle sorted by its cosine alternates
    # between its halves), so there at random.
    generator = torch.Generator().manual_seed(0)
    line = points.shape[1] == 1
    order = points[:, 0].argsort() if line else torch.randperm(len(points), generator=generator)
    places = (torch.arange(most, dtype=share.dtype) + 0.5) / most
    chosen = torch.searchsorted(share[order].cumsum(0), places).clamp(max=len(points) - 1)
    return points[order[chosen]], torch.full((most,), 1 / most, dtype=share.dtype)


def _spread_start(
    points: Tensor, share: Tensor, components: int, seed: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Equal weights, means at drawn points (evenly spaced ranks for seed 0), a shared variance."""
    if seed == 0:
        order = points[:, 0].argsort()
        ranks = (torch.arange(components, dtype=share.dtype) + 0.5) / components
        chosen = order[torch.searchsorted(share[order].cumsum(0), ranks).clamp(max=len(order) - 1)]
    else:
        generator = torch.Generator().manual_seed(seed)
        chosen = torch.multinomial(share, components, replacement=True, generator=generator)
    centre = share @ points
    variance = (share @ (points - centre).square()).clamp(min=VARIANCE_FLOOR)
    weight = torch.full((components,), 1 / components, dtype=share.dtype)
    # Components on one spot would stay one component for ever: nudge each by a little.
    offset = torch.linspace(-1e-3, 1e-3, components, dtype=share.dtype)[:, None]
    mean = points[chosen] + offset * variance.sqrt()
    return weight, mean, (variance / math.sqrt(components)).expand(components, -1).clone()


def _expectation_maximisation(
    points: Tensor, share: Tensor, weight: Tensor, mean: Tensor, variance: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    last = torch.tensor(math.inf, dtype=share.dtype)
    for _ in range(500):
        joint = weight.clamp(min=1e-300).log() + _log_density(points, mean, variance)
        total = torch.logsumexp(joint, dim=1)
        loss = -(share @ total)
        if last - loss < 1e-7:
            break
        last = loss
        mass = share[:, None] * (joint - total[:, None]).exp()
        weight = mass.sum(0)
        held = weight.clamp(min=1e-12)[:, None]
        mean = mass.T @ points / held
        spread = (mass[:, :, None] * (points[:, None, :] - mean).square()).sum(0)
        variance = (spread / held).clamp(min=VARIANCE_FLOOR)
    return weight, mean, variance
