"""Everything that changes during training, so that it can be saved and restored."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from cida.data import Batch
from cida.games import Game, Move
from cida.training.checkpointing import Checkpoint
from cida.training.optimizer import FusedAdamW
from cida.training.round_probe import MIN_ROUNDS_BETWEEN_PROBES, RoundProbe

__all__ = ["Callback", "Event", "EventLog", "TrainingState", "WeightAverage"]


@dataclass(frozen=True)
class Event:
    """What happened since the last event: mean losses, and the ceilings to compare them with.

    Parameters
    ----------
    step : int
        Rounds done.
    steps : int
        Rounds in all.
    seconds : float
        Time since training started.
    learning_rate : float
        Current step size.
    active_share : float
        Share of the rows that the curriculum has reached.
    losses : mapping of str to float, optional
        Mean of each loss since the last event.
    ceilings : mapping of str to float, optional
        Mean of each ceiling since the last event.
    health : mapping of str to float, optional
        Figures of the last round (`cida.training.round_probe`), measured in at most one round of
        fifteen; empty in other events.
    """

    step: int
    steps: int
    seconds: float
    learning_rate: float
    active_share: float
    losses: Mapping[str, float] = field(default_factory=dict)
    ceilings: Mapping[str, float] = field(default_factory=dict)
    health: Mapping[str, float] = field(default_factory=dict)


Callback = Callable[[Event], None]


class WeightAverage:
    """Exponential moving average of weights: the centre of oscillations, not the last point.

    The decay is ``min(decay, (1 + t) / (10 + t))`` after t updates, so that short runs are not tied
    to their start.
    """

    def __init__(self, modules: Iterable[nn.Module], decay: float) -> None:
        self.decay = decay
        self.modules = list(modules)
        self.refresh_weights()
        self.mean = [t.clone() for t in self.weights]
        self.n_updates = 0

    def refresh_weights(self) -> None:
        """Find the weights again after a network has moved to another device."""
        tensors = [t for m in self.modules for t in (*m.parameters(), *m.buffers())]
        self.weights = [t.detach() for t in tensors if t.is_floating_point()]

    def update(self) -> None:
        if self.decay <= 0:
            return
        self.n_updates += 1
        decay = min(self.decay, (1 + self.n_updates) / (10 + self.n_updates))
        torch._foreach_lerp_(self.mean, self.weights, 1 - decay)

    def apply(self) -> None:
        if self.decay > 0:
            torch._foreach_copy_(self.weights, self.mean)


class EventLog:
    """Means of the figures since the last event, handed to the callbacks ``events`` times a run."""

    def __init__(self, steps: int, n_events: int, callbacks: list[Callback]) -> None:
        self.steps = steps
        self.callbacks = callbacks
        self.steps_per_event = math.ceil(steps / max(1, n_events))
        self.start_time = time.perf_counter()
        self.looked = -MIN_ROUNDS_BETWEEN_PROBES
        self.events: list[Event] = []
        self._clear()

    def _clear(self) -> None:
        self.sums: dict[str, float] = {}
        self.ceilings: dict[str, float] = {}
        self.health: dict[str, float] = {}
        self.probe: RoundProbe | None = None
        self.rounds = 0

    def _is_due(self, step: int) -> bool:
        last = step == self.steps
        return bool(self.callbacks) and (step % self.steps_per_event == 0 or last)

    @contextmanager
    def probe_round(self, game: Game, source: Batch, pooled: Batch, step: int) -> Iterator[None]:
        """Inside, the round is looked at if an event comes after it and the last look is past."""
        if not self._is_due(step) or step - self.looked < MIN_ROUNDS_BETWEEN_PROBES:
            yield
            return
        with RoundProbe(game, source, pooled) as self.probe:
            yield
        self.looked, self.health, self.probe = step, self.probe.metrics(), None

    def add(self, move: Move) -> None:
        if not self.callbacks:
            return
        for name, value in move.metrics.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value.detach())
        for name, value in move.ceilings.items():
            self.ceilings[name] = self.ceilings.get(name, 0.0) + float(value)
        if self.probe is not None:
            self.probe.add(move)

    def step(self, step: int, rate: float, active: float) -> None:
        self.rounds += 1
        if not self._is_due(step):
            return
        self.emit(
            Event(
                step=step,
                steps=self.steps,
                seconds=time.perf_counter() - self.start_time,
                learning_rate=rate,
                active_share=active,
                losses={name: total / self.rounds for name, total in self.sums.items()},
                ceilings={name: total / self.rounds for name, total in self.ceilings.items()},
                health=self.health,
            )
        )
        self._clear()

    def emit(self, event: Event) -> None:
        self.events.append(event)
        for callback in self.callbacks:
            callback(event)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        counters = {name: getattr(self, name) for name in ("sums", "ceilings", "health", "rounds")}
        seconds = time.perf_counter() - self.start_time
        events = [asdict(event) for event in self.events]
        return {**counters, "looked": self.looked, "seconds": seconds, "told": events}

    def restore(self, values: Mapping[str, Any]) -> None:
        """Takes back what `words` gave; the events are told to whoever listens now."""
        for event in values["told"]:
            self.emit(Event(**event))
        self.start_time = time.perf_counter() - values["seconds"]
        for name in ("sums", "ceilings", "health", "rounds", "looked"):
            setattr(self, name, values[name])


@dataclass(frozen=True)
class TrainingState:
    """The players, their descents, the average, what is drawn next, and what was told."""

    game: Game
    optimizers: Mapping[str, FusedAdamW]
    weight_average: WeightAverage
    generator: torch.Generator
    event_log: EventLog

    def checkpoint(self, step: int) -> Checkpoint:
        """Where it stands after so many rounds."""
        tensors = {f"game.{name}": tensor for name, tensor in self.game.state().items()}
        tensors |= {f"average.{n}": tensor for n, tensor in enumerate(self.weight_average.mean)}
        tensors |= {"draws": self.generator.get_state(), "random": torch.get_rng_state()}
        for player, descent in self.optimizers.items():
            tensors |= {f"descent.{player}.{name}": t for name, t in descent.state().items()}
        return Checkpoint(
            step,
            tensors,
            {"updates": self.weight_average.n_updates, "log": self.event_log.to_dict()},
        )

    def final_checkpoint(self, step: int) -> Checkpoint:
        """What is left when the game is over: the players, and what was told."""
        tensors = {f"game.{name}": tensor for name, tensor in self.game.state().items()}
        return Checkpoint(step, tensors, {"finished": True, "log": self.event_log.to_dict()})

    def restore(self, checkpoint: Checkpoint) -> None:
        """Takes the game up again where it was put down."""
        self.game.restore(_strip_prefix("game.", checkpoint.tensors))
        self.event_log.restore(checkpoint.metadata["log"])
        if checkpoint.metadata.get("finished"):
            return
        means = _strip_prefix("average.", checkpoint.tensors)
        torch._foreach_copy_(self.weight_average.mean, [means[str(n)] for n in range(len(means))])
        self.weight_average.n_updates = checkpoint.metadata["updates"]
        for player, descent in self.optimizers.items():
            descent.restore(_strip_prefix(f"descent.{player}.", checkpoint.tensors))
        self.generator.set_state(checkpoint.tensors["draws"])
        torch.set_rng_state(checkpoint.tensors["random"])


def _strip_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
