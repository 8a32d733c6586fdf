"""What training reports: events, and the log that makes them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from cida.data import Batch
from cida.games import Game, Move
from cida.training.round_probe import MIN_ROUNDS_BETWEEN_PROBES, RoundProbe

__all__ = ["Callback", "Event", "EventLog"]


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

_RESTORED_ATTRIBUTES = ("sums", "ceilings", "health", "rounds", "last_probe_step")


class EventLog:
    """Means of the figures since the last event, handed to the callbacks ``events`` times a run."""

    def __init__(self, steps: int, n_events: int, callbacks: list[Callback]) -> None:
        self.steps = steps
        self.callbacks = callbacks
        self.steps_per_event = math.ceil(steps / max(1, n_events))
        self.start_time = time.perf_counter()
        self.last_probe_step = -MIN_ROUNDS_BETWEEN_PROBES
        self.events: list[Event] = []
        self._clear()

    def _clear(self) -> None:
        self.sums: dict[str, float] = {}
        self.ceilings: dict[str, float] = {}
        self.health: dict[str, float] = {}
        self.probe: RoundProbe | None = None
        self.rounds = 0

    def _is_due(self, step: int) -> bool:
        return bool(self.callbacks) and (step % self.steps_per_event == 0 or step == self.steps)

    @contextmanager
    def probe_round(self, game: Game, source: Batch, pooled: Batch, step: int) -> Iterator[None]:
        """Inside, the round is probed if an event follows and the last probe is long enough ago."""
        if not self._is_due(step) or step - self.last_probe_step < MIN_ROUNDS_BETWEEN_PROBES:
            yield
            return
        with RoundProbe(game, source, pooled) as self.probe:
            yield
        self.last_probe_step, self.health, self.probe = step, self.probe.metrics(), None

    def add(self, move: Move) -> None:
        if not self.callbacks:
            return
        for sums, values in ((self.sums, move.metrics), (self.ceilings, move.ceilings)):
            for name, value in values.items():
                sums[name] = sums.get(name, 0.0) + float(value.detach())
        if self.probe is not None:
            self.probe.add(move)

    def step(self, step: int, rate: float, active: float) -> None:
        self.rounds += 1
        if not self._is_due(step):
            return
        seconds = time.perf_counter() - self.start_time
        losses = {name: total / self.rounds for name, total in self.sums.items()}
        ceilings = {name: total / self.rounds for name, total in self.ceilings.items()}
        self.emit(Event(step, self.steps, seconds, rate, active, losses, ceilings, self.health))
        self._clear()

    def emit(self, event: Event) -> None:
        self.events.append(event)
        for callback in self.callbacks:
            callback(event)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values, for a checkpoint."""
        return {
            **{name: getattr(self, name) for name in _RESTORED_ATTRIBUTES},
            "seconds": time.perf_counter() - self.start_time,
            "events": [asdict(event) for event in self.events],
        }

    def restore(self, values: Mapping[str, Any]) -> None:
        """Restore what `to_dict` returned; the callbacks get all events again."""
        for event in values["events"]:
            self.emit(Event(**event))
        self.start_time = time.perf_counter() - values["seconds"]
        for name in _RESTORED_ATTRIBUTES:
            setattr(self, name, values[name])
