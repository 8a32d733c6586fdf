"""All that changes while a game is played, so that it can be put down and taken up again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from cida.batch import Batch
from cida.games import Game, Move
from cida.training.descent import Descent
from cida.training.health import ROUNDS_APART, Look
from cida.training.resuming import State

__all__ = ["Average", "Callback", "Course", "Event", "Log"]


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


class Average:
    """An exponential moving average of weights: the middle of the swings rather than the last one.

    Decay ``min(decay, (1 + t) / (10 + t))`` after t updates, so that short runs are not anchored to
    their start.
    """

    def __init__(self, modules: Iterable[nn.Module], decay: float) -> None:
        self.decay = decay
        self.modules = list(modules)
        self.look_again()
        self.mean = [t.clone() for t in self.live]
        self.updates = 0

    def look_again(self) -> None:
        """Where the weights are, which change their place when a network changes its device."""
        tensors = [t for m in self.modules for t in (*m.parameters(), *m.buffers())]
        self.live = [t.detach() for t in tensors if t.is_floating_point()]

    def update(self) -> None:
        if self.decay <= 0:
            return
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        torch._foreach_lerp_(self.mean, self.live, 1 - decay)

    def apply(self) -> None:
        if self.decay > 0:
            torch._foreach_copy_(self.live, self.mean)


class Log:
    """Means of the figures since the last event, handed to the callbacks ``events`` times a run."""

    def __init__(self, steps: int, events: int, callbacks: list[Callback]) -> None:
        self.steps = steps
        self.callbacks = callbacks
        self.every = math.ceil(steps / max(1, events))
        self.started = time.perf_counter()
        self.looked = -ROUNDS_APART
        self.told: list[Event] = []
        self._clear()

    def _clear(self) -> None:
        self.sums: dict[str, float] = {}
        self.ceilings: dict[str, float] = {}
        self.health: dict[str, float] = {}
        self.look: Look | None = None
        self.rounds = 0

    def _due(self, step: int) -> bool:
        last = step == self.steps
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
        self.tell(
            Event(
                step=step,
                steps=self.steps,
                seconds=time.perf_counter() - self.started,
                learning_rate=rate,
                active=active,
                losses={name: total / self.rounds for name, total in self.sums.items()},
                ceilings={name: total / self.rounds for name, total in self.ceilings.items()},
                health=self.health,
            )
        )
        self._clear()

    def tell(self, event: Event) -> None:
        self.told.append(event)
        for callback in self.callbacks:
            callback(event)

    def words(self) -> dict[str, Any]:
        """All of it as JSON values."""
        since = {name: getattr(self, name) for name in ("sums", "ceilings", "health", "rounds")}
        seconds = time.perf_counter() - self.started
        told = [asdict(event) for event in self.told]
        return {**since, "looked": self.looked, "seconds": seconds, "told": told}

    def restore(self, words: Mapping[str, Any]) -> None:
        """Takes back what `words` gave; the events are told to whoever listens now."""
        for event in words["told"]:
            self.tell(Event(**event))
        self.started = time.perf_counter() - words["seconds"]
        for name in ("sums", "ceilings", "health", "rounds", "looked"):
            setattr(self, name, words[name])


@dataclass(frozen=True)
class Course:
    """The players, their descents, the average, what is drawn next, and what was told."""

    game: Game
    descents: Mapping[str, Descent]
    average: Average
    draws: torch.Generator
    log: Log

    def state(self, step: int) -> State:
        """Where it stands after so many rounds."""
        tensors = {f"game.{name}": tensor for name, tensor in self.game.state().items()}
        tensors |= {f"average.{n}": tensor for n, tensor in enumerate(self.average.mean)}
        tensors |= {"draws": self.draws.get_state(), "random": torch.get_rng_state()}
        for player, descent in self.descents.items():
            tensors |= {f"descent.{player}.{name}": t for name, t in descent.state().items()}
        return State(step, tensors, {"updates": self.average.updates, "log": self.log.words()})

    def finished(self, step: int) -> State:
        """What is left when the game is over: the players, and what was told."""
        tensors = {f"game.{name}": tensor for name, tensor in self.game.state().items()}
        return State(step, tensors, {"finished": True, "log": self.log.words()})

    def restore(self, state: State) -> None:
        """Takes the game up again where it was put down."""
        self.game.restore(_under("game.", state.tensors))
        self.log.restore(state.words["log"])
        if state.words.get("finished"):
            return
        means = _under("average.", state.tensors)
        torch._foreach_copy_(self.average.mean, [means[str(n)] for n in range(len(means))])
        self.average.updates = state.words["updates"]
        for player, descent in self.descents.items():
            descent.restore(_under(f"descent.{player}.", state.tensors))
        self.draws.set_state(state.tensors["draws"])
        torch.set_rng_state(state.tensors["random"])


def _under(start: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(start): t for name, t in tensors.items() if name.startswith(start)}
