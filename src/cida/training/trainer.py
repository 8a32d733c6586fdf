"""The training loop: steps, schedule, curriculum, averaging, events. It knows no method."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from cida import ranks
from cida.batch import Rows
from cida.games import Game, Move
from cida.scratch import few
from cida.training.course import Average, Callback, Course, Event, Log
from cida.training.curriculum import Curriculum, Sampler
from cida.training.descent import Descent
from cida.training.precision import Precision, computing
from cida.training.resuming import Checkpoints, Stopping

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
    device: str = "cpu"
    precision: Precision = "float32"
    compile: bool = False


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
        checkpoints = Checkpoints.asked_for(game, rows, self.training)
        t = self.training
        with (
            isolated(ranks.own_seed(t.seed)),
            computing(game.encoder, t.precision, t.compile),
            Stopping(checkpoints) as stopping,
        ):
            self._run(game.train(), rows, checkpoints, stopping)
        game.eval()

    def _run(
        self, game: Game, rows: Rows, checkpoints: Checkpoints | None, stopping: Stopping
    ) -> None:
        t = self.training
        device = ranks.own_device(t.device)
        course = self._course(game.to(device))
        sampler = Sampler(rows, game.space, t.balance_bins, course.draws)
        curriculum = Curriculum(self._distance(game, rows), t.steps, t.curriculum, t.stages)
        stage = -1
        start = self._resume(course, checkpoints)
        for past in range(curriculum.stage(start - 1) + 1 if 0 < start < t.steps else 0):
            stage = past  # the game has been through it
            _widen(sampler, curriculum, stage)

        for step in range(start, t.steps):
            if curriculum.stage(step) != stage:
                stage = curriculum.stage(step)
                if _widen(sampler, curriculum, stage):
                    with _on_cpu(course, device):
                        game.enter_stage(rows, sampler.active, sampler.weights)
            game.progress(step / t.steps)
            rate = t.learning_rate * self._decay(step)
            source = rows[ranks.mine(sampler.source(t.source_batch_size))].to(device)
            everyone = rows[ranks.mine(sampler.everyone(t.batch_size, game.newest_share))].to(
                device
            )
            with course.log.looking(game, source, everyone, step + 1):
                for move in game.moves(source, everyone):
                    self._check(move, step)
                    self._make(move, course, rate)
            course.average.update()
            course.log.step(step + 1, rate, len(sampler.active) / len(rows))
            if checkpoints is not None and step + 1 < t.steps:
                stop = stopping.wanted(step)
                if stop or checkpoints.due(step):
                    checkpoints.keep(course.state(step + 1))
                if stop:
                    stopping.obey()

        if start < t.steps:
            self._finish(course, checkpoints)
        game.cpu()

    def _course(self, game: Game) -> Course:
        t = self.training
        descents = {name: Descent(own, t.weight_decay) for name, own in game.players().items()}
        average = Average([game.encoder, game.predictor], t.averaging)
        draws = torch.Generator().manual_seed(t.seed)
        return Course(game, descents, average, draws, Log(t.steps, t.events, self.callbacks))

    def _resume(self, course: Course, checkpoints: Checkpoints | None) -> int:
        """How many rounds are done; the course is put where it stood after them."""
        state = None if checkpoints is None else checkpoints.latest()
        if state is None:
            return 0
        course.restore(state)
        return state.step

    def _make(self, move: Move, course: Course, rate: float) -> None:
        """One player's step."""
        descent = course.descents[move.player]
        descent.forget()
        move.total.backward()  # type: ignore[no-untyped-call]
        if ranks.count() > 1:
            ranks.average(descent.gradients)
        descent.step(rate)
        course.log.add(move)

    def _finish(self, course: Course, checkpoints: Checkpoints | None) -> None:
        self._check_weights(course.game)
        course.average.apply()
        # Statistics of batches are each rank's own.
        ranks.average(b for b in course.game.buffers() if b.is_floating_point())
        if checkpoints is not None:
            checkpoints.keep(course.finished(self.training.steps))

    def _distance(self, game: Game, rows: Rows) -> Tensor:
        if self.training.curriculum <= 0:
            return torch.zeros(()).expand(len(rows))
        return game.space.distance_to_set(rows.u, rows.u[few(rows.sources)])

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


def _widen(sampler: Sampler, curriculum: Curriculum, stage: int) -> bool:
    """Enters a stage of the curriculum; whether there are rows that were not there before."""
    active = curriculum.active(stage)
    if stage and len(active) <= len(sampler.active):
        return False
    sampler.activate(active)
    return True


@contextmanager
def _on_cpu(course: Course, device: torch.device) -> Iterator[None]:
    """Inside, the game is where the rows are: what it fits to all of them is fitted there."""
    if device.type == "cpu":
        yield
        return
    course.game.cpu()
    yield
    course.game.to(device)
    course.average.look_again()


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
