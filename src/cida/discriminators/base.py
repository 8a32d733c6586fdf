"""What every discriminator is: a belief about u given z, its score, and its ceiling."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from cida.networks import MLP
from cida.spaces import Space
from cida.spaces.base import evenly_spaced

__all__ = [
    "HALF_LOG_TWO_PI",
    "VARIANCE_FLOOR",
    "Discriminator",
    "raw_from_variance",
    "variance_from_raw",
]

# In the units of the embedding, where V[u] is about 1: a spread of a hundredth of the whole range
# is as sharp as a belief may get, so that no likelihood runs away on an index of a few values.
VARIANCE_FLOOR = 1e-4
MAX_MARGINAL_FIT_ROWS = 20_000
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)  # the constant that eq. 3 drops


class Discriminator(nn.Module, ABC):
    """``D(z)``: the parameters of a belief about u (section 3.1), and ``L_d``, its loss.

    The largest loss that an encoder can force on a discriminator that plays its best is that of
    the best belief that ignores z: the *ceiling*. ``fit_blind`` finds that belief on all active
    rows, and ``ceiling`` scores it on the very rows of a batch.

    A subclass says how many numbers its belief has (``belief_width``), how it is scored
    (``score``) and what the best constant one is (``best_constant``); if beliefs are not about the
    embedding of u, also what they are about (``target``). Everything else is here.

    Arguments
    ---------
    body: your own ``nn.Module`` from z to features; by default an MLP of ``hidden`` widths.
    """

    blind: Tensor
    aligns_all_moments = False  # whether two different p(u|z) always look different to it

    def __init__(
        self, body: nn.Module | None = None, hidden: tuple[int, ...] = (128, 128, 128)
    ) -> None:
        super().__init__()
        self.body = body
        self.hidden = tuple(hidden)
        self.batch_norm = False  # an estimator's choice for all its players
        self.space: Space | None = None
        self.register_buffer("blind", torch.zeros(1, 0))

    def build(self, encoding_width: int, space: Space, u: Tensor) -> Self:
        """Makes the layers, once the width of z, the space and the rows of u are known."""
        self.space = space
        self.place_anchors(u)
        self.body, features = self.make_body(encoding_width)
        self.head = nn.Linear(features, self.params_width)
        self.fit_marginal(u)
        return self

    def make_body(self, input_width: int) -> tuple[nn.Module, int]:
        """The layers below the last one, for inputs of this width, and how many numbers they give.

        A game whose adversary is no belief about u takes these too: one capacity for all.
        """
        user_body = self.body
        body = (
            MLP(input_width, self.hidden, batch_norm=self.batch_norm)
            if user_body is None
            else user_body
        )
        return body, _infer_output_width(body, input_width)

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that it was made with, but for the body."""
        names = [name for name in inspect.signature(type(self)).parameters if name != "body"]
        return {name: getattr(self, name, None) for name in names}

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.settings.items())

    def place_anchors(self, u: Tensor) -> None:
        """Called by ``build``: a head with anchors puts them down here."""

    @property
    @abstractmethod
    def params_width(self) -> int:
        """How many numbers the belief about one row has."""

    @abstractmethod
    def score(self, params: Tensor, target: Tensor) -> Tensor:
        """``L_d``: how badly the beliefs ``params`` fit the target, one number a row."""

    @abstractmethod
    def marginal_params(self, u: Tensor, weights: Tensor) -> Tensor:
        """The one belief, shape ``(belief_width,)``, with the lowest weighted mean loss on u."""

    def target(self, u: Tensor) -> Tensor:
        """What the belief about each row is scored against: the embedding of u."""
        assert self.space is not None, "build(...) sets the space"
        return self.space.embed(u)

    def loss(self, params: Tensor, u: Tensor) -> Tensor:
        """``L_d``: how badly the beliefs ``params`` fit the raw index u, one number a row."""
        return self.score(params, self.target(u).to(params.dtype))

    def forward(self, z: Tensor) -> Tensor:
        assert self.body is not None, "build(...) makes the layers"
        params: Tensor = self.head(self.body(z))
        return params

    @torch.no_grad()
    def fit_marginal(self, u: Tensor, weights: Tensor | None = None) -> None:
        """Fits the best encoding-blind belief on the rows of u under the sampler's weights.

        Of very many rows every so manieth along u is enough.
        """
        weights = u.new_ones(len(u)) if weights is None else weights
        if len(u) > MAX_MARGINAL_FIT_ROWS:
            order = np.argsort(u[:, 0].numpy(), kind="stable")  # in half the memory of torch's
            subset = torch.from_numpy(order)[evenly_spaced(len(u), MAX_MARGINAL_FIT_ROWS)]
            u, weights = u[subset], weights[subset]
        normalized_weights = weights.double() / weights.double().sum()
        self.blind = self.marginal_params(u, normalized_weights).to(torch.get_default_dtype())[None]

    @torch.no_grad()
    def ceiling(self, u: Tensor) -> Tensor:
        """The loss of the blind belief on these rows, one number a row."""
        return self.marginal_loss(self.target(u).to(self.blind.dtype))

    @torch.no_grad()
    def marginal_loss(self, target: Tensor) -> Tensor:
        """The ceiling of rows whose targets are at hand."""
        return self.score(self.blind.expand(len(target), -1), target)

    @property
    def embedding_width(self) -> int:
        assert self.space is not None, "build(...) sets the space"
        return self.space.embedding_width


def variance_from_raw(raw: Tensor) -> Tensor:
    """A variance from an unbounded number: ``softplus(raw) + floor``."""
    return nn.functional.softplus(raw) + VARIANCE_FLOOR


def raw_from_variance(variance: Tensor) -> Tensor:
    """The unbounded number that `variance_of` turns into ``variance`` (floored)."""
    excess = (variance - VARIANCE_FLOOR).clamp(min=1e-7)
    return excess + torch.log(-torch.expm1(-excess))


def _infer_output_width(body: nn.Module, input_width: int) -> int:
    declared_width = getattr(body, "output_width", None)
    if isinstance(declared_width, int):
        return declared_width
    was_training = body.training
    with torch.no_grad():
        width = int(body.eval()(torch.zeros(2, input_width)).shape[1])
    body.train(was_training)
    return width
