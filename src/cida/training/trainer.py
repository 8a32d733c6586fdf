"""The training loop: steps, schedule, curriculum, averaging, events. It knows no method."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from cida.batch import Batch, Rows
from cida.games import Game, Move
from cida.training.curriculum import Curriculum, Sampler
from cida.training.health import ROUNDS_APART, Look

__all__ = ["Callback", "Event", "NonFiniteLossError", "Trainer", "Training", "isolated"]


@dataclass(frozen=True)
class Training:
    """Every choice of the trainer."""

    steps: int = 6000
    batch_size: int = 128
    source_batch_size: int = 64
    learning_rate: float = 5e-4
    schedule: Literal["cosine", "constant"] = "cosine"
    weight_decay: float = 0.0
    averaging: float = 0.999
    curriculum: float = 0.0
    stages: int = 20
    balance_bins: int = 30
    seed: int = 0
    events: int = 100


@dataclass(frozen=True)
class Event:
    """What happened since the last event: mean losses, and the ceilings to read them against.

    ``health`` has figures of the round that the event came after (`cida.training.health`), but of
    one round in fifteen at most: short runs have events without.
    """

    step: int
    steps: int
    seconds: float
    learning_rate: float
    active: float
    losses: Mapping[str, float] = field(default_factory=dict)
    ceilings: Mapping[str, float] = field(default_factory=dict)
    health: Mapping[str, float] = field(default_factory=dict)


Callback = Callable[[Event], None]


class NonFiniteLossError(FloatingPointError):
    """A player's loss became NaN or infinite; the message says whose, when and what to try."""


class Trainer:
    """Plays a game for a number of steps and leaves the averaged weights in its players.

    The same seed and thread count give the same weights, bit for bit, on a CPU. The global random
    state is left as it was found.
    """

    def __init__(self, training: Training, callbacks: Iterable[Callback] = ()) -> None:
        self.training = training
        self.callbacks = list(callbacks)

    def run(self, game: Game, rows: Rows) -> None:
        with isolated(self.training.seed):
            self._run(game.train(), rows)
        game.eval()

    def _run(self, game: Game, rows: Rows) -> None:
        t = self.training
        generator = torch.Generator().manual_seed(t.seed)
        sampler = Sampler(rows, game.space, t.balance_bins, generator)
        curriculum = Curriculum(self._distance(game, rows), t.steps, t.curriculum, t.stages)
        optimisers = {
            name: torch.optim.AdamW(
                parameters, t.learning_rate, weight_decay=t.weight_decay, fused=True
            )
            for name, parameters in game.players().items()
        }
        average = Average([game.encoder, game.predictor], t.averaging)
        log = _Log(t, self.callbacks)
        stage = -1

        for step in range(t.steps):
            if curriculum.stage(step) != stage:
                stage = curriculum.stage(step)
                active = curriculum.active(stage)
                if step == 0 or len(active) > len(sampler.active):
                    sampler.activate(active)
                    game.enter_stage(rows, sampler.active, sampler.weights)
                del active  # of very many rows it is large
            game.progress(step / t.steps)
            rate = t.learning_rate * self._decay(step)
            source = rows[sampler.source(t.source_batch_size)]
            everyone = rows[sampler.everyone(t.batch_size, game.newest_share)]
            with log.looking(game, source, everyone, step + 1):
                for move in game.moves(source, everyone):
                    self._check(move, step)
                    optimiser = optimisers[move.player]
                    optimiser.param_groups[0]["lr"] = rate
                    optimiser.zero_grad(set_to_none=True)
                    move.total.backward()  # type: ignore[no-untyped-call]
                    optimiser.step()
                    log.add(move)
            average.update()
            log.step(step + 1, rate, len(sampler.active) / len(rows))

        self._check_weights(game)
        average.apply()

    def _distance(self, game: Game, rows: Rows) -> Tensor:
        if self.training.curriculum <= 0:
            return torch.zeros(()).expand(len(rows))
        return game.space.distance_to_set(rows.u, rows.u[rows.sources])

    def _check_weights(self, game: Game) -> None:
        """The last step may break weights after the last loss was looked at."""
        for player, parameters in game.players().items():
            if not all(bool(p.isfinite().all()) for p in parameters):
                raise NonFiniteLossError(
                    f"the {player}'s weights are not finite after step {self.training.steps}; try "
                    f"a lower learning_rate (now {self.training.learning_rate:g})."
                )

    def _decay(self, step: int) -> float:
        if self.training.schedule == "constant":
            return 1.0
        return max(0.01, 0.5 * (1 + math.cos(math.pi * step / self.training.steps)))

    def _check(self, move: Move, step: int) -> None:
        for player, loss in move.losses.items():
            value = float(loss.detach())
            if not math.isfinite(value):
                raise NonFiniteLossError(
                    f"the {player}'s loss became {value} at step {step + 1} of "
                    f"{self.training.steps}; try a lower learning_rate (now "
                    f"{self.training.learning_rate:g}) or a lower lambda_d, and look for extreme "
                    "values in X."
                )


class Average:
    """An exponential moving average of weights: the middle of the swings rather than the last one.

    Decay ``min(decay, (1 + t) / (10 + t))`` after t updates, so that short runs are not anchored to
    their start.
    """

    def __init__(self, modules: Iterable[nn.Module], decay: float) -> None:
        self.decay = decay
        tensors = [t for m in modules for t in (*m.parameters(), *m.buffers())]
        self.live = [t.detach() for t in tensors if t.is_floating_point()]
        self.mean = [t.clone() for t in self.live]
        self.updates = 0

    def update(self) -> None:
        if self.decay <= 0:
            return
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        torch._foreach_lerp_(self.mean, self.live, 1 - decay)

    def apply(self) -> None:
        if self.decay > 0:
            torch._foreach_copy_(self.live, self.mean)


class _Log:
    """Means of the figures since the last event, handed to the callbacks ``events`` times a run."""

    def __init__(self, training: Training, callbacks: list[Callback]) -> None:
        self.training = training
        self.callbacks = callbacks
        self.every = math.ceil(training.steps / max(1, training.events))
        self.started = time.perf_counter()
        self.looked = -ROUNDS_APART
        self._clear()

    def _clear(self) -> None:
        self.sums: dict[str, float] = {}
        self.ceilings: dict[str, float] = {}
        self.health: dict[str, float] = {}
        self.look: Look | None = None
        self.rounds = 0

    def _due(self, step: int) -> bool:
        last = step == self.training.steps
        return bool(self.callbacks) and (step % self.every == 0 or last)

    @contextmanager
    def looking(self, game: Game, source: Batch, everyone: Batch, step: int) -> Iterator[None]:
        """Inside, the round is looked at if an event comes after it and the last look is past."""
        if not self._due(step) or step - self.looked < ROUNDS_APART:
            yield
            return
        with Look(game, source, everyone) as self.look:
            yield
        self.looked, self.health, self.look = step, self.look.figures(), None

    def add(self, move: Move) -> None:
        if not self.callbacks:
            return
        for name, value in move.figures.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value.detach())
        for name, value in move.ceilings.items():
            self.ceilings[name] = self.ceilings.get(name, 0.0) + float(value)
        if self.look is not None:
            self.look.add(move)

    def step(self, step: int, rate: float, active: float) -> None:
        self.rounds += 1
        if not self._due(step):
            return
        event = Event(
            step=step,
            steps=self.training.steps,
            seconds=time.perf_counter() - self.started,
            learning_rate=rate,
            active=active,
            losses={name: total / self.rounds for name, total in self.sums.items()},
            ceilings={name: total / self.rounds for name, total in self.ceilings.items()},
            health=self.health,
        )
        for callback in self.callbacks:
            callback(event)
        self._clear()


@contextmanager
def isolated(seed: int) -> Iterator[None]:
    """Inside, torch's random state is seeded and its default dtype float32; both are put back."""
    dtype = torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # the CPU's alone: no other is put back
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
