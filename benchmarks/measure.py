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

from cida.data import IndexedDataset
from cida.games import Game
from cida.training import Event, Trainer, TrainingConfig

__all__ = [
    "N_ROUNDS",
    "Effort",
    "Measurement",
    "RoundTimings",
    "mean_ms",
    "measure_interleaved",
    "read_clock",
    "run_in_subprocess",
    "step_ms",
]

N_ROUNDS = 7

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Effort:
    """How long is measured: steps of a round, and the processes of a plain loop's loaders."""

    steps: int = 200
    workers: int = 2

    def scaled_steps(self, divisor: int) -> int:
        """Steps for what takes so many times as long."""
        return max(2, self.steps // divisor)


@dataclass(frozen=True)
class Measurement:
    """One line of the table: a number with its unit, and the limit that it must keep, if any.

    The limit is the most that is right or, with ``least``, the least. ``beside`` says what the
    figure was made of.
    """

    name: str
    value: float
    unit: str
    limit: float | None = None
    is_minimum: bool = False
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        """Whether the limit is kept, to the digits that are shown; None where there is none."""
        if self.limit is None:
            return None
        rounded = round(self.value, 2)
        return rounded >= self.limit if self.is_minimum else rounded <= self.limit


class RoundTimings:
    """Milliseconds of several things, each measured once in every round."""

    def __init__(self, rounds: list[dict[str, float]]) -> None:
        self.round_times = rounds

    def median_ms(self, name: str) -> float:
        """The median over the rounds."""
        return median(times[name] for times in self.round_times)

    def median_ratio(self, over: str, under: str) -> float:
        """The median of the rounds' ratios: a slow moment of the machine hits both alike."""
        return median(times[over] / times[under] for times in self.round_times)


def measure_interleaved(
    measures: Mapping[str, Callable[[], float]], rounds: int = N_ROUNDS
) -> RoundTimings:
    """Takes each measure once a round, so that a slow moment of the machine hits all."""
    return RoundTimings(
        [{name: measure() for name, measure in measures.items()} for _ in range(rounds)]
    )


def read_clock() -> float:
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
    game: Game,
    rows: IndexedDataset,
    training: TrainingConfig,
    now: Callable[[], float] = time.perf_counter,
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


def run_in_subprocess(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """What the function gives, called in a process of its own; None where that is killed."""
    # A fresh interpreter: a forked one would share torch's threads with its parent.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(function, *args, **kwargs).result()
        except BrokenProcessPool:
            return None
