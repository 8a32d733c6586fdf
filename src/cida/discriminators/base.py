"""The contract of a discriminator: parameters of p(u|z), their loss, and its ceiling."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from cida.indexing import evenly_spaced
from cida.networks import MLP
from cida.spaces import Space

__all__ = [
    "HALF_LOG_TWO_PI",
    "VARIANCE_FLOOR",
    "Discriminator",
    "raw_from_variance",
    "variance_from_raw",
]

# In the units of the embedding, where V[u] is about 1: a standard deviation of a hundredth of the
# range is as sharp as a distribution may get, so that no likelihood diverges on an index of few
# values.
VARIANCE_FLOOR = 1e-4
MAX_MARGINAL_FIT_ROWS = 20_000
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)  # the constant that eq. 3 drops


class Discriminator(nn.Module, ABC):
    """``D(z)``: the parameters of a distribution of u given z (section 3.1), and ``L_d``, its loss.

    The largest loss that an encoder can force on an optimal discriminator is that of the best
    parameters that ignore z, the *marginal fit*. Its loss is the *ceiling*: `fit_marginal` finds
    the parameters on all active rows, and `ceiling` scores them on the rows of a batch.

    A subclass defines ``params_width`` (how many parameters a row has), `score` (their loss) and
    `marginal_params` (the best constant parameters). It may also define `target`, if its parameters
    do not describe the embedding of u, and `place_anchors`.

    Parameters
    ----------
    body : torch.nn.Module, optional
        Your own module from z to features; by default an `MLP` with the widths of ``hidden``.
    hidden : tuple of int, default (128, 128, 128)
        Widths of the default body.

    Attributes
    ----------
    aligns_all_moments : bool
        Whether two different distributions p(u|z) always have different losses.
    blind : Tensor of shape (1, params_width)
        The parameters of the marginal fit.
    space : Space or None
        The space of the index; None before `build`.

    See Also
    --------
    cida.check : Tests whether a discriminator of your own keeps the contract.
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
        """Make the layers, once the width of z, the space and the index values are known.

        Parameters
        ----------
        encoding_width : int
            Number of columns of the input, which is z or z and more.
        space : Space
            The fitted space of the index.
        u : Tensor of shape (rows, width)
            Raw index values, for anchors and the marginal fit.

        Returns
        -------
        Discriminator
            This discriminator.
        """
        self.space = space
        self.place_anchors(u)
        self.body, features = self.make_body(encoding_width)
        self.head = nn.Linear(features, self.params_width)
        self.fit_marginal(u)
        return self

    def make_body(self, input_width: int) -> tuple[nn.Module, int]:
        """Return the layers below the last one, and how many features they give.

        A game whose adversary predicts no distribution of u uses them too, so that all adversaries
        have the same capacity.

        Parameters
        ----------
        input_width : int
            Number of columns of the input.

        Returns
        -------
        tuple of (torch.nn.Module, int)
            The layers and the number of features.
        """
        body = self.body
        if body is None:
            body = MLP(input_width, self.hidden, batch_norm=self.batch_norm)
        return body, _infer_output_width(body, input_width)

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments, except the body."""
        names = [name for name in inspect.signature(type(self)).parameters if name != "body"]
        return {name: getattr(self, name, None) for name in names}

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.settings.items())

    def place_anchors(self, u: Tensor) -> None:
        """Place the anchors of a head that has any; called by `build`.

        Parameters
        ----------
        u : Tensor of shape (rows, width)
            Raw index values.
        """

    @property
    @abstractmethod
    def params_width(self) -> int:
        """Number of parameters of the predicted distribution of one row."""

    @abstractmethod
    def score(self, params: Tensor, target: Tensor) -> Tensor:
        """``L_d``: the loss of the parameters against the target, one number a row.

        Parameters
        ----------
        params : Tensor of shape (rows, params_width)
            What D predicts.
        target : Tensor
            What `target` returned for the same rows.

        Returns
        -------
        Tensor of shape (rows,)
            The loss of each row.
        """

    @abstractmethod
    def marginal_params(self, u: Tensor, weights: Tensor) -> Tensor:
        """Return the constant parameters with the lowest weighted mean loss on u.

        Parameters
        ----------
        u : Tensor of shape (rows, width)
            Raw index values.
        weights : Tensor of shape (rows,)
            Weights that sum to 1, as float64.

        Returns
        -------
        Tensor of shape (params_width,)
            The parameters.
        """

    def target(self, u: Tensor) -> Tensor:
        """Return what the parameters of each row are scored against: the embedding of u.

        Parameters
        ----------
        u : Tensor of shape (rows, width)
            Raw index values.

        Returns
        -------
        Tensor of shape (rows, columns)
            The targets.
        """
        return self.built_space.embed(u)

    def loss(self, params: Tensor, u: Tensor) -> Tensor:
        """``L_d``: the loss of the parameters against the raw index, one number a row.

        Parameters
        ----------
        params : Tensor of shape (rows, params_width)
            What D predicts.
        u : Tensor of shape (rows, width)
            Raw index values.

        Returns
        -------
        Tensor of shape (rows,)
            The loss of each row.
        """
        return self.score(params, self.target(u).to(params.dtype))

    def forward(self, z: Tensor) -> Tensor:
        """``D(z)``: the parameters of the distribution of u for each row.

        Parameters
        ----------
        z : Tensor of shape (rows, encoding_width)
            Encodings.

        Returns
        -------
        Tensor of shape (rows, params_width)
            The parameters.
        """
        assert self.body is not None, "build(...) makes the layers"
        params: Tensor = self.head(self.body(z))
        return params

    @torch.no_grad()
    def fit_marginal(self, u: Tensor, weights: Tensor | None = None) -> None:
        """Fit the parameters that ignore z, and keep them for the ceiling.

        Of more than 20,000 rows an evenly spaced subset along u is used.

        Parameters
        ----------
        u : Tensor of shape (rows, width)
            Raw index values of the active rows.
        weights : Tensor of shape (rows,), optional
            How often the sampler draws each row; equal by default.
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
        """Return the loss of the marginal fit on these rows.

        Parameters
        ----------
        u : Tensor of shape (rows, width)
            Raw index values.

        Returns
        -------
        Tensor of shape (rows,)
            The loss of each row.
        """
        return self.marginal_loss(self.target(u).to(self.blind.dtype))

    @torch.no_grad()
    def marginal_loss(self, target: Tensor) -> Tensor:
        """Return the ceiling of rows whose targets were computed before.

        Parameters
        ----------
        target : Tensor
            What `target` returned.

        Returns
        -------
        Tensor of shape (rows,)
            The loss of each row.
        """
        return self.score(self.blind.expand(len(target), -1), target)

    @property
    def built_space(self) -> Space:
        """The space of the index, after `build`."""
        assert self.space is not None, "build(...) sets the space"
        return self.space

    @property
    def embedding_width(self) -> int:
        """Number of columns of the embedded index."""
        return self.built_space.embedding_width


def variance_from_raw(raw: Tensor) -> Tensor:
    """A variance from an unbounded number: ``softplus(raw) + floor``."""
    return nn.functional.softplus(raw) + VARIANCE_FLOOR


def raw_from_variance(variance: Tensor) -> Tensor:
    """The unbounded number that `variance_from_raw` turns into ``variance`` (floored)."""
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
