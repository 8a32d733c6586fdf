"""The mixture density network: a Gaussian mixture as the distribution of u."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from cida.discriminators.base import (
    VARIANCE_FLOOR,
    Discriminator,
    raw_from_variance,
    variance_from_raw,
)
from cida.discriminators.marginal import merge_duplicates, subsample_weighted

__all__ = ["Mixture"]

ComponentParams = tuple[Tensor, ...]  # what the components are, each tensor (..., K, numbers)


class Mixture(Discriminator):
    """``L_d = -log sum_k w_k(z) N(u; mu_k(z), s2_k(z))`` (section 3.2): a Gaussian mixture.

    The weights are a softmax over the K components and the variances have a floor. With K = 1 it is
    the `Gaussian` head; like eq. 3 it drops 1/2 log 2 pi per column. With enough components it
    aligns all moments of p(u|z). The ceiling has no closed form: the best constant mixture is
    fitted by expectation-maximization.

    For components of another kind, subclass it and define ``component_width``, `unpack_components`,
    `pack_components`, `log_densities` and `fit_components`.

    Parameters
    ----------
    components : int, default 5
        Number of components K.
    body : torch.nn.Module, optional
        Your own module from z to features; by default an MLP with the widths of ``hidden``.
    hidden : tuple of int, default (128, 128, 128)
        Widths of the default body.
    """

    aligns_all_moments = True

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
    def params_width(self) -> int:
        return self.components * (1 + self.component_width)

    def score(self, params: Tensor, target: Tensor) -> Tensor:
        logits, packed_params = params[:, : self.components], params[:, self.components :]
        densities = self.log_densities(target, self.unpack_components(packed_params))
        return -torch.logsumexp(logits.log_softmax(1) + densities, dim=1)

    def marginal_params(self, u: Tensor, weights: Tensor) -> Tensor:
        embedding = self.target(u).to(weights.dtype)
        points, share = subsample_weighted(*merge_duplicates(embedding, weights))
        candidates = torch.stack([self._fit_em(points, share, seed) for seed in range(4)])
        scores = torch.stack([share @ self.score(params[None], points) for params in candidates])
        return candidates[scores.argmin()]

    @property
    def component_width(self) -> int:
        """Number of parameters of one component."""
        return 2 * self.embedding_width

    def unpack_components(self, packed_params: Tensor) -> ComponentParams:
        """The components of each row: here means and variances, ``(rows, K, columns)``."""
        mean, raw = packed_params.reshape(len(packed_params), 2, self.components, -1).unbind(1)
        return mean, variance_from_raw(raw)

    def pack_components(self, components: ComponentParams) -> Tensor:
        """The parameters of one mixture; the inverse of `unpack_components`."""
        mean, variance = components
        return torch.cat([mean.flatten(), raw_from_variance(variance).flatten()])

    def log_densities(self, points: Tensor, components: ComponentParams) -> Tensor:
        """``log N`` without its constant; points ``(rows, columns)``, result ``(rows, K)``."""
        mean, variance = components
        error = points[:, None, :] - mean
        return -(error.square() / (2 * variance) + variance.log() / 2).sum(-1)

    def fit_components(self, points: Tensor, responsibilities: Tensor) -> ComponentParams:
        """The best components given the responsibility, ``(rows, K)``, of each for each point."""
        component_mass = responsibilities.sum(0).clamp(min=1e-12)[:, None]
        mean = responsibilities.T @ points / component_mass
        spread = (responsibilities[:, :, None] * (points[:, None, :] - mean).square()).sum(0)
        return mean, (spread / component_mass).clamp(min=VARIANCE_FLOOR)

    def _fit_em(self, points: Tensor, share: Tensor, seed: int) -> Tensor:
        """Expectation-maximisation from one start."""
        weight = torch.full((self.components,), 1 / self.components, dtype=share.dtype)
        # Every kind of component starts from round clouds around a few of the points.
        start = _initial_components(points, share, self.components, seed)
        log_joint = weight.log() + Mixture.log_densities(self, points, start)
        log_density = torch.logsumexp(log_joint, dim=1)
        previous_loss = torch.tensor(math.inf, dtype=share.dtype)
        for _ in range(500):
            responsibilities = share[:, None] * (log_joint - log_density[:, None]).exp()
            weight = responsibilities.sum(0)
            components = self.fit_components(points, responsibilities)
            log_joint = weight.clamp(min=1e-300).log() + self.log_densities(points, components)
            log_density = torch.logsumexp(log_joint, dim=1)
            loss = -(share @ log_density)
            if previous_loss - loss < 1e-7:
                break
            previous_loss = loss
        return torch.cat([weight.clamp(min=1e-12).log(), self.pack_components(components)])


def _initial_components(
    points: Tensor, share: Tensor, components: int, seed: int
) -> ComponentParams:
    """Means at drawn points (evenly spaced ranks for seed 0), a shared variance."""
    if seed == 0:
        order = points[:, 0].argsort()
        ranks = (torch.arange(components, dtype=share.dtype) + 0.5) / components
        picks = order[torch.searchsorted(share[order].cumsum(0), ranks).clamp(max=len(order) - 1)]
    else:
        generator = torch.Generator().manual_seed(seed)
        picks = torch.multinomial(share, components, replacement=True, generator=generator)
    centre = share @ points
    variance = (share @ (points - centre).square()).clamp(min=VARIANCE_FLOOR)
    # Components on one spot would stay one component for ever: nudge each by a little.
    offset = torch.linspace(-1e-3, 1e-3, components, dtype=share.dtype)[:, None]
    mean = points[picks] + offset * variance.sqrt()
    return mean, (variance / math.sqrt(components)).expand(components, -1)
