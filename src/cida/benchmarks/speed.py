"""How much time the training loop adds to what the networks need anyway."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np
import torch
from torch import nn

from cida.batch import Batch, Rows
from cida.datasets import circle
from cida.estimators import CIDAClassifier
from cida.games import Adversarial, cross_entropy
from cida.games.base import frozen, joined
from cida.training import Event, Trainer, Training, isolated

__all__ = ["ROUNDS", "StepTime", "mean_ms", "step_ms", "step_over_floor"]

ROUNDS = 7


@dataclass(frozen=True)
class StepTime:
    """Milliseconds of a full training step and of its floor, medians over interleaved rounds."""

    name: str
    step_ms: float
    floor_ms: float
    ratio: float


def step_over_floor(head: str, steps: int = 200) -> StepTime:
    """A full step (data, game, optimisers) against its floor, on Circle with the default networks.

    The floor is a bare loop over one fixed batch: the same forward passes, losses, backward passes
    and optimiser steps in the same order, and nothing else.
    """
    training = Training(steps=2 * steps, events=2)
    with isolated(0):
        rows, game = _circle_game(head)
        floor = _floor(game, rows, training)
        pairs = []
        for _ in range(ROUNDS):  # taken in turns, so that a slow moment of the machine hits both
            pairs.append((step_ms(game, rows, training), mean_ms(floor, steps)))
    return StepTime(
        name=f"circle, {head}",
        step_ms=median(step for step, _ in pairs),
        floor_ms=median(bare for _, bare in pairs),
        ratio=median(step / bare for step, bare in pairs),
    )


def _circle_game(head: str) -> tuple[Rows, Adversarial]:
    world = circle()
    u = torch.from_numpy(world.u)[:, None]
    rows = Rows(
        torch.from_numpy(world.x.astype(np.float32)),
        torch.from_numpy(world.y),
        u,
        torch.from_numpy(world.source),
    )
    model = CIDAClassifier(head, index_in_encoder=False, steps=1, random_state=0)
    game = model.fit(world.x, world.training_labels, domain_index=world.u).game_
    assert isinstance(game, Adversarial)
    return rows, game


def _floor(game: Adversarial, rows: Rows, training: Training) -> Callable[[], None]:
    source: Batch = rows[rows.sources[: training.source_batch_size]]
    everyone: Batch = rows[torch.arange(training.batch_size)]
    x, _ = joined(source, everyone)
    target = game.discriminator.target(everyone.u).to(x.dtype)
    rate = training.learning_rate
    head = game.discriminator
    discriminate = torch.optim.Adam(head.parameters(), rate, fused=True)
    players: list[nn.Parameter] = game.players()["encoder"]
    encode = torch.optim.Adam(players, rate, fused=True)

    def step() -> None:
        z_source, z = torch.split(game.encoder(x), [len(source), len(everyone)])
        for _ in range(game.discriminator_steps):
            discriminate.zero_grad()
            head.score(head(z.detach()), target).mean().backward()  # type: ignore[no-untyped-call]
            discriminate.step()
        with frozen(head):
            adversarial = head.score(head(z), target).mean()
        prediction = cross_entropy(game.predictor(z_source), source.y).mean()
        encode.zero_grad()
        (prediction - adversarial).backward()  # type: ignore[no-untyped-call]
        encode.step()

    return step


def step_ms(game: Adversarial, rows: Rows, training: Training) -> float:
    """Milliseconds a step of a training of two events, from that half-way to that at the end.

    Setting up is not part of a step.
    """
    events: list[Event] = []
    Trainer(training, [events.append]).run(game, rows)
    half, end = events
    return 1000 * (end.seconds - half.seconds) / (end.step - half.step)


def mean_ms(action: Callable[[], object], times: int) -> float:
    """Milliseconds that the action takes, over so many times."""
    started = time.perf_counter()
    for _ in range(times):
        action()
    return 1000 * (time.perf_counter() - started) / times
