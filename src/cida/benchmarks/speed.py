"""How speed is measured: figures with their limits, interleaved rounds, processes of their own."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from statistics import median
from typing import ParamSpec, TypeVar

import torch

from cida.batch import Rows
from cida.games import Game
from cida.training import Event, Trainer, Training

__all__ = [
    "ROUNDS",
    "Effort",
    "Figure",
    "Times",
    "clock",
    "in_a_child",
    "in_turns",
    "mean_ms",
    "step_ms",
]

ROUNDS = 7

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Effort:
    """How long is measured: steps of a round, and the processes of a plain loop's loaders."""

    steps: int = 200
    workers: int = 2

    def share(self, one_in: int) -> int:
        """Steps for what takes so many times as long."""
        return max(2, self.steps // one_in)


@dataclass(frozen=True)
class Figure:
    """One line of the table: a number with its unit, and the limit that it must keep, if any.

    The limit is the most that is right or, with ``least``, the least. ``beside`` says what the
    figure was made of.
    """

    what: str
    value: float
    unit: str
    limit: float | None = None
    least: bool = False
    beside: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the limit is kept, to the digits that are shown; None where there is none."""
        if self.limit is None:
            return None
        shown = round(self.value, 2)
        return shown >= self.limit if self.least else shown <= self.limit


class Times:
    """Milliseconds of several things, each measured once in every round."""

    def __init__(self, rounds: list[dict[str, float]]) -> None:
        self.rounds = rounds

    def ms(self, name: str) -> float:
        """The median over the rounds."""
        return median(times[name] for times in self.rounds)

    def ratio(self, over: str, under: str) -> float:
        """The median of the rounds' ratios: a slow moment of the machine hits both alike."""
        return median(times[over] / times[under] for times in self.rounds)


def in_turns(measures: Mapping[str, Callable[[], float]], rounds: int = ROUNDS) -> Times:
    """Takes each measure once a round, so that a slow moment of the machine hits all."""
    return Times([{name: take() for name, take in measures.items()} for _ in range(rounds)])


def clock() -> float:
    """Seconds: the processor's that this process had where torch has one thread, else the wall's.

    With one thread the two are the same on an idle machine, and on a busy one what others do does
    not count. Several threads wait for each other, which only the wall's sees.
    """
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def mean_ms(
    action: Callable[[], object], times: int, now: Callable[[], float] = time.perf_counter
) -> float:
    """Milliseconds that the action takes by this clock, over so many times."""
    started = now()
    for _ in range(times):
        action()
    return 1000 * (now() - started) / times


def step_ms(
    game: Game, rows: Rows, training: Training, now: Callable[[], float] = time.perf_counter
) -> float:
    """Milliseconds a step of a training of two events, from that half-way to that at the end.

    Setting up is not part of a step.
    """
    events: list[tuple[int, float]] = []

    def note(event: Event) -> None:
        events.append((event.step, now()))

    Trainer(training, [note]).run(game, rows)
    (first, half), (last, end) = events
    return 1000 * (end - half) / (last - first)


def in_a_child(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """What the function gives, called in a process of its own; None where that is killed."""
    # A fresh interpreter: a forked one would share torch's threads with its parent.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(function, *args, **kwargs).result()
        except BrokenProcessPool:
            return None
