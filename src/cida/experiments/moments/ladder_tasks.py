"""The moment ladder: which head aligns what (Theorems 4.1 and 4.2, and Remark 4.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from scipy.stats import norm
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from cida.datasets import ladder
from cida.discriminators import Discriminator, make_discriminator
from cida.experiments.folder_files import load_recipes
from cida.experiments.spec import TaskSpec
from cida.experiments.task_data import DependenceTaskData
from cida.games import get_game_class
from cida.games.dependence_penalty import DependencePenalty
from cida.networks import PlainEncoder
from cida.spaces import Line, Space
from cida.training import seeded

Metrics = dict[str, float]
MOMENT_HIDDEN = (64, 64)
DISCRIMINATOR_TRAINING_STEPS = 1000
N_SHORTCUT_VALUES, N_INDEX_VALUES = 25, 300  # values of x0 and of u in an exact rung


@dataclass(frozen=True)
class ShortcutNetworks:
    """An encoder that begins as ``z = x0``, the shortcut, with the means to learn anything else.

    Two units of each layer carry the positive and the negative part of x0; the others are drawn at
    random and not listened to yet.
    """

    hidden: tuple[int, int] = MOMENT_HIDDEN

    def encoder(self, space: Space, seed: int) -> nn.Module:
        """The encoder, the weights that are not listened to drawn with the seed."""
        with seeded(seed):
            encoder = PlainEncoder(3, self.hidden, 1)
        first, second, last = (m for m in encoder.body if isinstance(m, nn.Linear))
        with torch.no_grad():
            for layer, weights in ((first, [[1.0], [-1.0]]), (second, torch.eye(2).tolist())):
                layer.weight[:2] = 0
                layer.bias[:2] = 0
                layer.weight[:2, : len(weights[0])] = torch.tensor(weights)
            last.weight.zero_()
            last.bias.zero_()
            last.weight[0, :2] = torch.tensor([1.0, -1.0])
        return encoder


@dataclass(frozen=True)
class LadderDistribution:
    """A rung without the chance of a draw: cases x, places u and the chance of each pair.

    Cases are all values of the switches at a grid of x0, ordered by it; what is equal by design is
    equal here, up to the distance between places, so that a head that is blind to the rung has
    nothing to learn.
    """

    x: Tensor
    u: Tensor
    probability: Tensor

    @classmethod
    def from_rung(cls, rung: str) -> LadderDistribution:
        grid = np.linspace(-2.5, 2.5, N_SHORTCUT_VALUES)
        x = np.array([(x0, *others) for x0 in grid for others in product((-1, 1), repeat=2)])
        u = ladder.index_quantile((np.arange(N_INDEX_VALUES) + 0.5) / N_INDEX_VALUES)
        side = ladder.shortcut_side(u, rung)
        shortcut = np.where(side == 0, x[:, 1:].prod(axis=1)[:, None], side)
        probability = norm.pdf(x[:, :1], shortcut, ladder.SHORTCUT_NOISE)
        parts = (u[:, None], probability / probability.sum())
        return cls(torch.from_numpy(x).float(), *map(torch.from_numpy, parts))

    def marginal_over_switches(self) -> tuple[Tensor, Tensor]:
        """The distinct values of x0, and the chance of each with each place."""
        by_switches = self.probability.view(N_SHORTCUT_VALUES, 4, N_INDEX_VALUES)
        return self.x[::4, :1], by_switches.sum(1).float()


def discriminator_start_metrics(head: Discriminator, rung: str, seed: int) -> Metrics:
    """What a discriminator at its best sees at ``z = x0``, and what it tells that encoder.

    How far it gets below its ceiling, and ``|d V_d / d E|``.
    """
    distribution = LadderDistribution.from_rung(rung)
    space = Line().fit(distribution.u)
    encoder = ShortcutNetworks().encoder(space, seed)
    with seeded(seed):
        head.build(1, space, distribution.u)
        target = head.target(distribution.u).float()
        z, probability = distribution.marginal_over_switches()
        _train_discriminator(head, lambda: _adversarial_value(head, z, target, probability))
    z, probability = encoder(distribution.x), distribution.probability.float()
    value = _adversarial_value(head, z, target, probability)
    return {
        "seen at the start": float(head.marginal_loss(target).mean() - value.detach()),
        "gradient at the start": _gradient_norm(value, encoder),
    }


def _adversarial_value(head: Discriminator, z: Tensor, target: Tensor, p: Tensor) -> Tensor:
    """``V_d``: the loss of each belief at each place, by the chance of the pair."""
    params = head(z).repeat_interleave(len(target), dim=0)
    return head.score(params, target.repeat(len(z), 1)) @ p.flatten()


def dependence_start_metrics(kind: type[DependencePenalty], rung: str, seed: int) -> Metrics:
    """The same for a game with a measure of dependence, which needs no adversary."""
    data = ladder.make_ladder(rung, seed=seed)
    u = torch.from_numpy(data.u)[:, None]
    space = Line().fit(u)
    game = kind(ShortcutNetworks().encoder(space, seed), nn.Identity(), space)
    z = game.encoder(torch.from_numpy(data.x).float())
    dependence = game.measure_dependence(z, space.embed(u).float())
    return {
        "seen at the start": float(dependence.detach()),
        "gradient at the start": _gradient_norm(dependence, game.encoder),
    }


def _train_discriminator(discriminator: Discriminator, value: Callable[[], Tensor]) -> None:
    """Trains D on all there is at once, at a rate that falls to nothing."""
    optimizer = torch.optim.Adam(discriminator.parameters(), fused=True)
    schedule = OneCycleLR(optimizer, 5e-3, total_steps=DISCRIMINATOR_TRAINING_STEPS)
    for _ in range(DISCRIMINATOR_TRAINING_STEPS):
        optimizer.zero_grad()
        value().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()


def _gradient_norm(value: Tensor, encoder: nn.Module) -> float:
    gradients = torch.autograd.grad(value, list(encoder.parameters()))
    return float(torch.cat([g.flatten() for g in gradients]).norm())


@dataclass(frozen=True)
class ShortcutTaskData(DependenceTaskData):
    """A rung whose runs begin at the shortcut; also told is what the head says to it there."""

    rung: str = ""

    def evaluate(self, model: Any) -> dict[str, Any]:
        metrics = super().evaluate(model)
        if model.discriminator is None:
            return metrics
        game_class = get_game_class(model.game)
        if issubclass(game_class, DependencePenalty):
            at_start = dependence_start_metrics(game_class, self.rung, model.random_state)
        else:
            head = make_discriminator(model.discriminator)
            at_start = discriminator_start_metrics(head, self.rung, model.random_state)
        return {**metrics, "extra_metrics": {**metrics["extra_metrics"], **at_start}}


RECIPES = load_recipes(__package__, {"start": ShortcutNetworks()})


def _ladder_task(rung: str, title: str) -> TaskSpec:
    name = f"moments/{rung}"

    def draw(seed: int, protocol: str) -> DependenceTaskData:
        data = ladder.make_ladder(rung, seed=seed)
        if protocol == "start":
            return ShortcutTaskData(data, name, rung=rung)
        return DependenceTaskData(data, name)

    return TaskSpec(name, draw, *RECIPES, title=title, discriminator_hidden=(128, 128))


TITLES = ("Mean", "Variance", "Skewness", "Whole distribution")
MOMENTS = tuple(map(_ladder_task, ladder.SWITCH_POINTS_BY_MOMENT, TITLES))
