"""The moment ladder: which head aligns what (Theorems 4.1 and 4.2, and Remark 4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from scipy.stats import norm
from torch import Tensor, nn

from cida.benchmarks.recipes import Benchmark, Preset, Settings
from cida.benchmarks.worlds import PROTOCOLS, WorldPoints
from cida.datasets.ladder import RUNGS, SHORTCUT_NOISE, ladder, quantile, side
from cida.discriminators import Discriminator, named_discriminator
from cida.games import named_game
from cida.games.dependence import Penalised
from cida.networks import PlainEncoder
from cida.space import Line, Space
from cida.training import isolated

__all__ = ["MOMENTS", "ShortcutNetworks", "StartPoints", "exact_rows", "start_gradient"]

Array = np.ndarray[Any, Any]

HIDDEN = (64, 64)
TRAINING_STEPS = 600


@dataclass(frozen=True)
class ShortcutNetworks:
    """An encoder that begins as ``z = x0``, the shortcut, with the means to learn anything else.

    Two units of each layer carry the positive and the negative part of x0; the others are drawn at
    random and not listened to yet.
    """

    hidden: tuple[int, int] = HIDDEN

    def encoder(self, space: Space, seed: int) -> nn.Module:
        """The encoder, the weights that are not listened to drawn with the seed."""
        with isolated(seed):
            encoder = PlainEncoder(3, self.hidden, 1)
        first, second, last = (m for m in encoder.body if isinstance(m, nn.Linear))
        with torch.no_grad():
            for layer, carried in ((first, [[1.0], [-1.0]]), (second, torch.eye(2).tolist())):
                layer.weight[:2] = 0
                layer.bias[:2] = 0
                layer.weight[:2, : len(carried[0])] = torch.tensor(carried)
            last.weight.zero_()
            last.bias.zero_()
            last.weight[0, :2] = torch.tensor([1.0, -1.0])
        return encoder


def exact_rows(rung: str, places: int = 600, levels: int = 6) -> tuple[Tensor, Tensor]:
    """x and u of the rung without the chance of a draw: every case at every place and noise.

    What is equal by design is equal here, up to the distance between places: a head that is blind
    to the rung has nothing to learn.
    """
    u = quantile((np.arange(places) + 0.5) / places)
    noise = SHORTCUT_NOISE * norm.ppf((np.arange(levels) + 0.5) / levels)
    cases = []
    for shortcut, first, second in product((-1, 1), repeat=3):
        here = u[
            np.isin(side(u, rung), [shortcut, 0] if first * second == shortcut else [shortcut])
        ]
        grid = np.stack(np.meshgrid(here, shortcut + noise, indexing="ij"), axis=-1).reshape(-1, 2)
        others = np.broadcast_to([first, second], grid.shape)
        cases.append(np.column_stack([grid[:, 1], others, grid[:, 0]]))
    rows = torch.from_numpy(np.concatenate(cases))
    return rows[:, :3].float(), rows[:, 3:]


def start_gradient(head: Discriminator, rung: str) -> float:
    """``|d V_d / d E|`` at ``z = x0``: what a discriminator at its best tells that encoder."""
    x, u = exact_rows(rung)
    space = Line().fit(u)
    encoder = ShortcutNetworks().encoder(space, 0)
    with isolated(0):
        with torch.no_grad():
            z = encoder(x)
        head.build(1, space, u)
        _play_its_best(head, z, u)
    return _norm(head.loss(head(encoder(x)), u).mean(), encoder)


def start_pull(kind: type[Penalised], rung: str) -> float:
    """The same for a game with a measure of dependence, which needs no adversary."""
    x, u = exact_rows(rung, 150, 4)
    space = Line().fit(u)
    game = kind(ShortcutNetworks().encoder(space, 0), nn.Identity(), space)
    return _norm(game.measure(game.encoder(x), space.embed(u).float()), game.encoder)


def _play_its_best(head: Discriminator, z: Tensor, u: Tensor) -> None:
    """Trains D on all rows at once with a rate that falls to nothing."""
    optimiser = torch.optim.Adam(head.parameters(), fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 5e-3, total_steps=TRAINING_STEPS)
    target = head.target(u).float()
    for _ in range(TRAINING_STEPS):
        optimiser.zero_grad()
        head.score(head(z), target).mean().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()


def _norm(value: Tensor, encoder: nn.Module) -> float:
    gradients = torch.autograd.grad(value, list(encoder.parameters()))
    return float(torch.cat([g.flatten() for g in gradients]).norm())


@dataclass(frozen=True)
class StartPoints(WorldPoints):
    """A rung whose runs begin at the shortcut; also told is what the head says to it there."""

    rung: str = ""

    def scores(self, model: Any) -> dict[str, Any]:
        found = super().scores(model)
        if model.discriminator is None:
            return found
        kind = named_game(model.game)
        if issubclass(kind, Penalised):
            gradient = start_pull(kind, self.rung)
        else:
            gradient = start_gradient(named_discriminator(model.discriminator), self.rung)
        return {**found, "more": {**found["more"], "gradient at the start": gradient}}


METHODS = (
    "source-only", "cida-l1", "cida", "pcida", "skew", "mixture", "flow", "histogram",
    "distance-correlation", "hsic", "oracle",
)  # fmt: skip

# Rows as they come: a balance along u would move the moments that the rungs hold equal. Chosen on
# seeds from 100.
BEST: Settings = {
    "index_in_encoder": False,
    "balance_bins": 1,
    "hidden": HIDDEN,
    "encoding_width": 8,
    "lambda_d": 10.0,
    "learning_rate": 1e-3,
    "steps": 1500,
}


def _rung(rung: str, title: str) -> Benchmark:
    name = f"moments/{rung}"

    def draw(seed: int, protocol: str) -> WorldPoints:
        world = ladder(rung, seed=seed)
        if protocol == "start":
            return StartPoints(world, name, rung=rung)
        return WorldPoints(world, name)

    return Benchmark(
        name=name,
        draw=draw,
        methods=METHODS,
        presets={
            "best": Preset(BEST, protocol="points"),
            "start": Preset(BEST, protocol="start", networks=ShortcutNetworks()),
        },
        protocols={
            **PROTOCOLS,
            "start": "as points, and the encoder begins as the shortcut, z = x0",
        },
        bins=30,
        domains=30,
        cua_stages=20,
        title=title,
        discriminator_hidden=(128, 128),
    )


MOMENTS = tuple(map(_rung, RUNGS, ("Mean", "Variance", "Skewness", "Whole distribution")))
