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
from cida.space import Space
from cida.space.base import thinned

__all__ = ["HALF_LOG_TURN", "VARIANCE_FLOOR", "Discriminator", "raw_variance", "variance_of"]

# In the units of the embedding, where V[u] is about 1: a spread of a hundredth of the whole range
# is as sharp as a belief may get, so that no likelihood runs away on an index of a few values.
VARIANCE_FLOOR = 1e-4
BLIND_ROWS = 20_000
HALF_LOG_TURN = 0.5 * math.log(2 * math.pi)  # the constant that eq. 3 drops


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
    sees_all = False  # whether two different p(u|z) always look different to it

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
        self.place(u)
        self.body, features = self.make_body(encoding_width)
        self.head = nn.Linear(features, self.belief_width)
        self.fit_blind(u)
        return self

    def make_body(self, inputs: int) -> tuple[nn.Module, int]:
        """The layers below the last one, for inputs of this width, and how many numbers they give.

        A game whose adversary is no belief about u takes these too: one capacity for all.
        """
        own = self.body
        body = MLP(inputs, self.hidden, batch_norm=self.batch_norm) if own is None else own
        return body, _output_width(body, inputs)

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that it was made with, but for the body."""
        names = [name for name in inspect.signature(type(self)).parameters if name != "body"]
        return {name: getattr(self, name, None) for name in names}

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.settings.items())

    def place(self, u: Tensor) -> None:
        """Called by ``build``: a head with anchors puts them down here."""

    @property
    @abstractmethod
    def belief_width(self) -> int:
        """How many numbers the belief about one row has."""

    @abstractmethod
    def score(self, params: Tensor, target: Tensor) -> Tensor:
        """``L_d``: how badly the beliefs ``params`` fit the target, one number a row."""

    @abstractmethod
    def best_constant(self, u: Tensor, weights: Tensor) -> Tensor:
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
    def fit_blind(self, u: Tensor, weights: Tensor | None = None) -> None:
        """Fits the best encoding-blind belief on the rows of u under the sampler's weights.

        Of very many rows every so manieth along u is enough.
        """
        weights = u.new_ones(len(u)) if weights is None else weights
        if len(u) > BLIND_ROWS:
            order = np.argsort(u[:, 0].numpy(), kind="stable")  # in half the memory of torch's
            kept = torch.from_numpy(order)[thinned(len(u), BLIND_ROWS)]
            u, weights = u[kept], weights[kept]
        share = weights.double() / weights.double().sum()
        self.blind = self.best_constant(u, share).to(torch.get_default_dtype())[None]

    @torch.no_grad()
    def ceiling(self, u: Tensor) -> Tensor:
        """The loss of the blind belief on these rows, one number a row."""
        return self.blind_score(self.target(u).to(self.blind.dtype))

    @torch.no_grad()
    def blind_score(self, target: Tensor) -> Tensor:
        """The ceiling of rows whose targets are at hand."""
        return self.score(self.blind.expand(len(target), -1), target)

    @property
    def embedding_width(self) -> int:
        assert self.space is not None, "build(...) sets the space"
        return self.space.embedding_width


def variance_of(raw: Tensor) -> Tensor:
    """A variance from an unbounded number: ``softplus(raw) + floor``."""
    return nn.functional.softplus(raw) + VARIANCE_FLOOR


def raw_variance(variance: Tensor) -> Tensor:
    """The unbounded number that `variance_of` turns into ``variance`` (floored)."""
    above = (variance - VARIANCE_FLOOR).clamp(min=1e-7)
    return above + torch.log(-torch.expm1(-above))


def _output_width(body: nn.Module, inputs: int) -> int:
    known = getattr(body, "output_width", None)
    if isinstance(known, int):
        return known
    was_training = body.training
    with torch.no_grad():
        width = int(body.eval()(torch.zeros(2, inputs)).shape[1])
    body.train(was_training)
    return width
