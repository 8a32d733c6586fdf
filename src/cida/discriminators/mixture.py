"""The mixture density network: a Gaussian mixture as the belief about u."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from cida.discriminators.base import VARIANCE_FLOOR, Discriminator, raw_variance, variance_of
from cida.discriminators.fitting import few, merge_repeats

__all__ = ["Mixture"]

Parts = tuple[Tensor, ...]  # what the components are, each tensor (..., K, numbers)


class Mixture(Discriminator):
    """``L_d = -log sum_k w_k(z) N(u; mu_k(z), s2_k(z))``, a Gaussian mixture (section 3.2).

    The weights are a softmax over the K components, the sum a log-sum-exp, the variances are
    floored. With K = 1 it is the `Gaussian` head. Like eq. 3 it drops 1/2 log 2 pi a column. The
    ceiling has no closed form: the best blind mixture is fitted by expectation-maximisation.
    Components of another kind are a subclass that says ``part_width``, ``unpack_parts``,
    ``pack_parts``, ``log_densities`` and ``best_parts``.

    Arguments
    ---------
    components: K.
    """

    sees_all = True

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
        return self.components * (1 + self.part_width)

    def score(self, params: Tensor, target: Tensor) -> Tensor:
        logits, numbers = params[:, : self.components], params[:, self.components :]
        densities = self.log_densities(target, self.unpack_parts(numbers))
        return -torch.logsumexp(logits.log_softmax(1) + densities, dim=1)

    def best_constant(self, u: Tensor, weights: Tensor) -> Tensor:
        embedding = self.target(u).to(weights.dtype)
        points, share = few(*merge_repeats(embedding, weights))
        beliefs = torch.stack([self._fit(points, share, seed) for seed in range(4)])
        scores = torch.stack([share @ self.score(belief[None], points) for belief in beliefs])
        return beliefs[scores.argmin()]

    @property
    def part_width(self) -> int:
        """How many numbers one component has."""
        return 2 * self.embedding_width

    def unpack_parts(self, numbers: Tensor) -> Parts:
        """The components of each row: here means and variances, ``(rows, K, columns)``."""
        mean, raw = numbers.reshape(len(numbers), 2, self.components, -1).unbind(1)
        return mean, variance_of(raw)

    def pack_parts(self, parts: Parts) -> Tensor:
        """Undoes `unpack_parts` for the components of one belief."""
        mean, variance = parts
        return torch.cat([mean.flatten(), raw_variance(variance).flatten()])

    def log_densities(self, points: Tensor, parts: Parts) -> Tensor:
        """``log N`` without its constant; points ``(rows, columns)``, result ``(rows, K)``."""
        mean, variance = parts
        error = points[:, None, :] - mean
        return -(error.square() / (2 * variance) + variance.log() / 2).sum(-1)

    def best_parts(self, points: Tensor, mass: Tensor) -> Parts:
        """The best components if of each point ``mass``, ``(rows, K)``, belongs to each."""
        held = mass.sum(0).clamp(min=1e-12)[:, None]
        mean = mass.T @ points / held
        spread = (mass[:, :, None] * (points[:, None, :] - mean).square()).sum(0)
        return mean, (spread / held).clamp(min=VARIANCE_FLOOR)

    def _fit(self, points: Tensor, share: Tensor, seed: int) -> Tensor:
        """Expectation-maximisation from one start."""
        weight = torch.full((self.components,), 1 / self.components, dtype=share.dtype)
        # Every kind of component starts from round clouds around a few of the points.
        joint = weight.log() + Mixture.log_densities(
            self, points, _spread_start(points, share, self.components, seed)
        )
        total = torch.logsumexp(joint, dim=1)
        last = torch.tensor(math.inf, dtype=share.dtype)
        for _ in range(500):
            mass = share[:, None] * (joint - total[:, None]).exp()
            weight, parts = mass.sum(0), self.best_parts(points, mass)
            joint = weight.clamp(min=1e-300).log() + self.log_densities(points, parts)
            total = torch.logsumexp(joint, dim=1)
            loss = -(share @ total)
            if last - loss < 1e-7:
                break
            last = loss
        return torch.cat([weight.clamp(min=1e-12).log(), self.pack_parts(parts)])


def _spread_start(points: Tensor, share: Tensor, components: int, seed: int) -> Parts:
    """Means at drawn points (evenly spaced ranks for seed 0), a shared variance."""
    if seed == 0:
        order = points[:, 0].argsort()
        ranks = (torch.arange(components, dtype=share.dtype) + 0.5) / components
        chosen = order[torch.searchsorted(share[order].cumsum(0), ranks).clamp(max=len(order) - 1)]
    else:
        generator = torch.Generator().manual_seed(seed)
        chosen = torch.multinomial(share, components, replacement=True, generator=generator)
    centre = share @ points
    variance = (share @ (points - centre).square()).clamp(min=VARIANCE_FLOOR)
    # Components on one spot would stay one component for ever: nudge each by a little.
    offset = torch.linspace(-1e-3, 1e-3, components, dtype=share.dtype)[:, None]
    mean = points[chosen] + offset * variance.sqrt()
    return mean, (variance / math.sqrt(components)).expand(components, -1)
