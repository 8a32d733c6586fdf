"""What every discriminator must do."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from cida.check.result import ENCODING_WIDTH, MIN_LEARNED_MARGIN, CheckResult, require, run_check
from cida.discriminators import Discriminator
from cida.spaces import Line, Periodic, Product, Space
from cida.training import seeded

__all__ = ["check_discriminator"]

Head = type[Discriminator]
N_CHECK_ROWS = 2048


@dataclass(frozen=True)
class CheckSetting:
    """A space, rows of u in it, and an encoding that reveals u."""

    name: str
    space: Space
    u: Tensor
    built_heads: dict[type, Discriminator] = field(default_factory=dict)

    @property
    def informative_encoding(self) -> Tensor:
        """z with the embedded u, slightly blurred, and noise in the other columns."""
        embedding = self.space.embed(self.u).float()
        embedding = embedding + 0.1 * torch.randn_like(embedding)
        noise = torch.randn(len(self.u), ENCODING_WIDTH - embedding.shape[1])
        return torch.cat([embedding, noise], dim=1)

    def build(self, kind: Head) -> Discriminator:
        """Return a new head; it is built once and copied, since its marginal fit takes time."""
        if kind not in self.built_heads:
            self.built_heads[kind] = kind().build(ENCODING_WIDTH, self.space, self.u)
        return copy.deepcopy(self.built_heads[kind])


def make_settings() -> Iterator[CheckSetting]:
    """An index on a line, on a circle, and of two columns, one of each."""
    years = 20 + 60 * torch.rand(N_CHECK_ROWS, 1, dtype=torch.float64)
    hours = 24 * torch.rand(N_CHECK_ROWS, 1, dtype=torch.float64)
    both = torch.cat([years, hours], dim=1)
    yield CheckSetting("line", Line().fit(years), years)
    yield CheckSetting("circle", Periodic(24), hours)
    yield CheckSetting("two columns", Product([Line(), Periodic(24)]).fit(both), both)


def check_discriminator(
    kind: Head, spaces: Collection[str] = ("line", "circle", "two columns")
) -> list[CheckResult]:
    """Run every check of a discriminator, on each space.

    Parameters
    ----------
    kind : type
        A subclass of `Discriminator` whose arguments have defaults.
    spaces : collection of str, default ("line", "circle", "two columns")
        Which of these spaces to use.

    Returns
    -------
    list of CheckResult
        One for each check and space.
    """
    with seeded(0):
        return [
            run_check(test, setting.name, partial(test, kind, setting))
            for setting in make_settings()
            if setting.name in spaces
            for test in DISCRIMINATOR_CHECKS
        ]


def gives_one_finite_number_a_row(kind: Head, setting: CheckSetting) -> None:
    head = setting.build(kind)
    for rows in (N_CHECK_ROWS, 1):
        z, u = setting.informative_encoding[:rows], setting.u[:rows]
        for name, values in {"loss": head.loss(head(z), u), "ceiling": head.ceiling(u)}.items():
            shape, dtype = tuple(values.shape), values.dtype
            require(shape == (rows,), f"{name} of {rows} rows has shape {shape}, not ({rows},)")
            require(bool(values.isfinite().all()), f"{name} of {rows} rows is not finite")
            require(dtype == torch.float32, f"{name} is {dtype}, not the float32 of the encoding")


def learns_the_index_from_an_informative_encoding(kind: Head, setting: CheckSetting) -> None:
    head, z = setting.build(kind), setting.informative_encoding
    _train_head(head, z[::2], setting.u[::2])
    with torch.no_grad():
        z, u = z[1::2], setting.u[1::2]
        below = float((head.ceiling(u) - head.loss(head(z), u)).mean())
    failure = f"after training it is only {below:.3g} below its ceiling on held-out rows"
    require(below > MIN_LEARNED_MARGIN, failure)


def sends_a_gradient_against_its_own_interest(kind: Head, setting: CheckSetting) -> None:
    head, z = setting.build(kind), setting.informative_encoding
    _train_head(head, z, setting.u, steps=100)
    z.requires_grad_()
    loss = head.loss(head(z), setting.u).mean()
    (gradient,) = torch.autograd.grad(loss, z)
    norm = gradient.norm()
    require(float(norm) > 1e-6, "the gradient that reaches the encoding is zero")
    with torch.no_grad():
        after = head.loss(head(z + gradient * (0.01 * math.sqrt(z.numel()) / norm)), setting.u)
    is_raised = float(after.mean()) > float(loss.detach())
    require(is_raised, "moving the encoding along the gradient does not raise the loss")


def no_constant_params_beat_the_marginal_fit(kind: Head, setting: CheckSetting) -> None:
    head = setting.build(kind)
    ceiling = float(head.ceiling(setting.u).mean())
    spread = head.blind.abs().mean() + 1
    for start in (head.blind, torch.zeros_like(head.blind), spread * torch.randn_like(head.blind)):
        best = _lowest_constant_loss(head, start, setting.u)
        failure = f"constant parameters score {best:.4g}, below the ceiling of {ceiling:.4g}"
        require(not best < ceiling - 0.01, failure)


def _lowest_constant_loss(head: Discriminator, start: Tensor, u: Tensor) -> float:
    """The lowest loss of constant parameters that is found from this start."""
    params = start.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([params], max_iter=60, line_search_fn="strong_wolfe")
    losses: list[float] = []

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = head.loss(params.expand(len(u), -1), u).mean()
        value.backward()  # type: ignore[no-untyped-call]
        losses.append(float(value.detach()))
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    return min(losses)


def stays_at_the_ceiling_on_a_constant_encoding(kind: Head, setting: CheckSetting) -> None:
    head = setting.build(kind)
    u, constant_encoding = setting.u, torch.zeros(N_CHECK_ROWS, ENCODING_WIDTH)
    _train_head(head, constant_encoding, u)
    with torch.no_grad():
        below = float((head.ceiling(u) - head.loss(head(constant_encoding), u)).mean())
        marginal_losses = head.loss(head.blind.expand(N_CHECK_ROWS, -1), u)
    failure = f"trained on a constant encoding it gets {below:.3g} below the ceiling"
    require(not below > 0.01, failure)
    is_same = torch.allclose(marginal_losses, head.ceiling(u), atol=1e-5)
    require(is_same, "the ceiling of a row is not the loss of the marginal parameters on that row")
    params, target = head(setting.informative_encoding), head.target(u).float()
    is_same = torch.allclose(head.loss(params, u), head.score(params, target), atol=1e-5)
    require(is_same, "loss(params, u) is not score(params, target(u)), which games use")


def fits_the_marginal_under_weights(kind: Head, setting: CheckSetting) -> None:
    head = setting.build(kind)
    ranks = setting.u[:, 0].argsort().argsort()
    repeats = ranks * 3 // N_CHECK_ROWS  # the higher u, the more often
    head.fit_marginal(setting.u, repeats.double())
    weighted_ceiling = float(head.ceiling(setting.u) @ repeats.float() / repeats.sum())
    repeated_rows = setting.u.repeat_interleave(repeats, dim=0)
    head.fit_marginal(repeated_rows)
    repeated_ceiling = float(head.ceiling(repeated_rows).mean())
    require(
        not abs(weighted_ceiling - repeated_ceiling) > 0.01,
        f"weighted rows give a ceiling of {weighted_ceiling:.4g}, repeated ones "
        f"{repeated_ceiling:.4g}",
    )


def comes_back_from_its_state(kind: Head, setting: CheckSetting) -> None:
    head, z = setting.build(kind), setting.informative_encoding
    _train_head(head, z, setting.u, steps=5)
    twin = setting.build(kind)
    twin.load_state_dict(head.state_dict())
    same_loss = torch.equal(head.loss(head(z), setting.u), twin.loss(twin(z), setting.u))
    is_same = same_loss and torch.equal(head.ceiling(setting.u), twin.ceiling(setting.u))
    require(is_same, "a copy that loads its state_dict gives other losses or another ceiling")


DISCRIMINATOR_CHECKS: list[Callable[[Head, CheckSetting], None]] = [
    gives_one_finite_number_a_row,
    learns_the_index_from_an_informative_encoding,
    sends_a_gradient_against_its_own_interest,
    no_constant_params_beat_the_marginal_fit,
    stays_at_the_ceiling_on_a_constant_encoding,
    fits_the_marginal_under_weights,
    comes_back_from_its_state,
]


def _train_head(head: Discriminator, z: Tensor, u: Tensor, steps: int = 300) -> None:
    optimizer = torch.optim.Adam(head.parameters(), lr=3e-3, fused=True)
    for _ in range(steps):
        rows = torch.randint(len(z), (128,))  # small batches, so that no row is memorised
        optimizer.zero_grad()
        head.loss(head(z[rows]), u[rows]).mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
