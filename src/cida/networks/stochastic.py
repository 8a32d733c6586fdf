"""Layers that make an encoder probabilistic, with draws that can be repeated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from cida.coordinates.windows import SupportsFitIndex
from cida.networks.serialization import configurable

__all__ = [
    "GaussianCode",
    "GaussianEncoder",
    "MonteCarloDropout",
    "StochasticLayer",
    "convert_dropout",
    "fixed_draw",
    "freeze_draws",
    "is_stochastic",
]

M = TypeVar("M", bound=nn.Module)

# The draw of each layer, as the seed of its numbers. Not kept in the layers: one model may predict
# in several threads at once.
_LAYER_SEEDS: ContextVar[Mapping[nn.Module, int]] = ContextVar(
    "seeds", default=MappingProxyType({})
)


class StochasticLayer(nn.Module):
    """A layer that is random in training, deterministic in evaluation, and repeatable in a draw.

    See Also
    --------
    fixed_draw : Select a draw of all stochastic layers of a module.
    """

    frozen_noise: Tensor | None

    def __init__(self) -> None:
        super().__init__()
        self.frozen_seeds: list[int] = []  # of all draws, after `freeze_draws`
        self.register_buffer("frozen_noise", None, persistent=False)

    def draw_noise(self, values: Tensor) -> Tensor | None:
        """The noise of the current draw for rows of such values; None outside a draw."""
        seed = _LAYER_SEEDS.get().get(self)
        if seed is not None:
            return self._seeded_noise(values, seed)
        if not self.frozen_seeds:
            return None
        if self.frozen_noise is None:
            noise = [self._seeded_noise(values, each) for each in self.frozen_seeds]
            self.frozen_noise = torch.stack(noise)
        n_draws, *shape = self.frozen_noise.shape
        n_rows = values.shape[0] // n_draws  # not len, which would be one number when traced
        return self.frozen_noise[:, None].expand(-1, n_rows, *shape).flatten(0, 1)

    def _seeded_noise(self, values: Tensor, seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return self.sample_noise(values.shape[1:], generator).to(values)

    def sample_noise(self, shape: Sequence[int], generator: torch.Generator) -> Tensor:
        """The noise of one draw for rows of this shape, in double precision."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it draws.")


class GaussianCode(StochasticLayer):
    """``z = m + s * eps, eps ~ N(0, 1)``, from m and numbers r with ``s = softplus(r + b)``.

    The footnote of section 3.1: the encoder gives mean and variance of a Gaussian; gradients reach
    both since eps does not depend on them. The input is (m, r), twice as wide as z. In training
    each row has its own eps, in evaluation z is m, and in draw k all rows share eps_k.

    Parameters
    ----------
    start : float, default 0.1
        s where r is 0, about where training begins. Training finds its own s: on the synthetic data
        sets it stays near 0.1, or returns there from 1, while z itself grows far larger; from 0.01
        it hardly grows.
    """

    def __init__(self, start: float = 0.1) -> None:
        super().__init__()
        if not (start > 0 and math.isfinite(start)):
            raise ValueError(f"start must be a number above 0, got {start!r}.")
        self.start = start
        self.shift = math.log(math.expm1(start))

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of z for each row."""
        if x.shape[-1] % 2:
            raise ValueError(
                f"GaussianCode got {x.shape[-1]} numbers a row; give it a mean and a deviation for "
                "each number of z, twice the width of z."
            )
        mean, raw = x.chunk(2, dim=-1)
        return mean, nn.functional.softplus(raw + self.shift)

    def forward(self, x: Tensor) -> Tensor:
        mean, deviation = self.moments(x)
        noise = self.draw_noise(mean)
        if noise is None:
            if not self.training:
                return mean
            noise = torch.randn_like(mean)
        return torch.addcmul(mean, deviation, noise)

    def sample_noise(self, shape: Sequence[int], generator: torch.Generator) -> Tensor:
        """``eps`` for z of this shape."""
        return torch.randn(tuple(shape), generator=generator, dtype=torch.float64)

    def extra_repr(self) -> str:
        return f"start={self.start}"


class MonteCarloDropout(StochasticLayer):
    """``x -> x * mask / (1 - p)``, each number (or channel) dropped with probability p.

    Dropout as a sample of the encoder (Gal and Ghahramani, ICML 2016), an option of the paper's
    supplement. In training and evaluation it equals torch's dropout, bit for bit: a mask for each
    row, and none. In draw k all rows share mask_k.

    Parameters
    ----------
    p : float, default 0.1
        Share that is dropped.
    channels : bool, default False
        Whether whole channels are dropped, as by torch's ``Dropout2d``.
    """

    def __init__(self, p: float = 0.1, channels: bool = False) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"p must be at least 0 and below 1, got {p!r}.")
        self.p = p
        self.channels = channels

    def forward(self, x: Tensor) -> Tensor:
        noise = self.draw_noise(x)
        if noise is not None:
            return x * noise
        drop = nn.functional.dropout2d if self.channels else nn.functional.dropout
        return drop(x, self.p, self.training)

    def sample_noise(self, shape: Sequence[int], generator: torch.Generator) -> Tensor:
        """``mask / (1 - p)`` for rows of this shape."""
        mask_shape = (shape[0], *(1,) * (len(shape) - 1)) if self.channels else tuple(shape)
        mask = torch.rand(mask_shape, generator=generator, dtype=torch.float64) >= self.p
        return mask / (1 - self.p)

    def extra_repr(self) -> str:
        return f"p={self.p}, channels={self.channels}"


@configurable
class GaussianEncoder(nn.Module):
    """``z ~ N(m, s^2), (m, s) = E(x, u)``: an encoder of twice the width, then `GaussianCode`.

    Parameters
    ----------
    body : torch.nn.Module
        An encoder whose output has twice as many columns as z.
    start : float, default 0.1
        Initial standard deviation of z; see `GaussianCode`.
    """

    def __init__(self, body: nn.Module, start: float = 0.1) -> None:
        super().__init__()
        self.body = body
        self.code = GaussianCode(start)

    def fit_index(self, x: Tensor, index: Tensor) -> None:
        """Fit the encoder along the index, if it has a layer that is fitted so."""
        if isinstance(self.body, SupportsFitIndex):
            self.body.fit_index(x, index)

    def forward(self, x: Tensor, *index: Tensor) -> Tensor:
        z: Tensor = self.code(self.body(x, *index))
        return z


def convert_dropout(module: M) -> M:
    """Replace torch's dropout layers inside a module by `MonteCarloDropout`.

    Training stays the same, bit for bit; what was dropout for training only is now also sampled in
    prediction.

    Parameters
    ----------
    module : torch.nn.Module
        Changed in place.

    Returns
    -------
    torch.nn.Module
        The same module.
    """
    for parent in list(module.modules()):
        for name, layer in parent.named_children():
            if isinstance(layer, nn.Dropout | nn.Dropout2d):
                replacement = MonteCarloDropout(layer.p, channels=isinstance(layer, nn.Dropout2d))
                setattr(parent, name, replacement.train(layer.training))
    return module


def is_stochastic(module: nn.Module) -> bool:
    """Tell whether a module contains a stochastic layer.

    Parameters
    ----------
    module : torch.nn.Module
        Any module.

    Returns
    -------
    bool
        True if it contains a `StochasticLayer`.
    """
    return bool(_stochastic_layers(module))


@contextmanager
def fixed_draw(module: nn.Module, draw: int) -> Iterator[None]:
    """Context in which every stochastic layer of a module gives the same draw for all rows.

    The noise depends only on the number of the draw and on the layer's position among the others: a
    prediction can be repeated, and does not depend on the other rows. torch's random state is not
    used.

    Parameters
    ----------
    module : torch.nn.Module
        The module whose layers are drawn.
    draw : int
        Number of the draw.
    """
    seeds = zip(_stochastic_layers(module), _layer_seeds(module, draw), strict=True)
    token = _LAYER_SEEDS.set({**_LAYER_SEEDS.get(), **dict(seeds)})
    try:
        yield
    finally:
        _LAYER_SEEDS.reset(token)


def freeze_draws(module: nn.Module, n_draws: int) -> None:
    """Make all draws at once from now on: rows come once for each draw, one block below the other.

    The noise is made when the first rows come and then kept, so that the module can be traced.

    Parameters
    ----------
    module : torch.nn.Module
        Changed in place.
    n_draws : int
        Number of draws.
    """
    seeds = [_layer_seeds(module, draw) for draw in range(n_draws)]
    for place, layer in enumerate(_stochastic_layers(module)):
        layer.frozen_seeds = [each[place] for each in seeds]


def _layer_seeds(module: nn.Module, draw: int) -> list[int]:
    """The seed of each stochastic layer in a draw."""
    places = range(len(_stochastic_layers(module)))
    return [int(np.random.SeedSequence((draw, k)).generate_state(1)[0]) for k in places]


def _stochastic_layers(module: nn.Module) -> list[StochasticLayer]:
    """Each stochastic layer once, in the order in which the module holds them."""
    return [layer for layer in module.modules() if isinstance(layer, StochasticLayer)]
