"""Many runs, several at a time: one process each, one thread each."""

from __future__ import annotations

import multiprocessing
import signal
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from cida.benchmarks.catalogue import BENCHMARKS
from cida.benchmarks.recipes import AS_USUAL, Machine, Recipe, Sample, recipes
from cida.benchmarks.runner import FROM_THE_START, Resuming, Row, finished_row, run_recipe
from cida.diagnostics.view import VIEW, read_view
from cida.estimators import CidaWarning
from cida.training import CheckpointWarning
from cida.training.checkpoint import ModelFileError

__all__ = ["Done", "Task", "one_thread", "run_grid"]


@dataclass(frozen=True)
class Task:
    """One run to make: a method of a benchmark, in a preset, with a seed, into a folder."""

    benchmark: str
    preset: str
    protocol: str
    method: str
    seed: int
    folder: Path
    steps: int | None = None
    root: Path | None = None
    expected: bool = False
    machine: Machine = AS_USUAL
    resuming: Resuming = FROM_THE_START

    @property
    def words(self) -> str:
        """How it is called while it runs."""
        task = BENCHMARKS[self.benchmark].task
        return f"{task}{', ' if task else ''}{self.method}, seed {self.seed}"

    @property
    def recipe(self) -> Recipe:
        known = recipes(BENCHMARKS[self.benchmark], self.preset)
        return known[self.method].with_settings(steps=self.steps, **self.machine.settings())

    @property
    def sample(self) -> Sample:
        """The data that this seed draws, from the user's own folder if there is one."""
        own = () if self.root is None else (self.root,)
        return BENCHMARKS[self.benchmark].draw(self.seed, self.protocol, *own)

    def finished(self) -> Row | None:
        """What an earlier run of the very same task found, if it came to its end."""
        row = finished_row(self.folder, self.recipe, self.sample, self.seed)
        return row if row is None or self._has_expected() else None

    def _has_expected(self) -> bool:
        """Whether what is to be expected was told, where that is asked for and can be."""
        if not self.expected or not self.recipe.tells_expected:
            return True
        try:
            return bool(read_view(self.folder / VIEW).expected)
        except (OSError, ModelFileError):
            return False

    def play(self) -> Row:
        """Makes the run."""
        asked = self.expected and self.recipe.tells_expected
        found = run_recipe(
            self.recipe, self.sample, self.seed, self.folder, origin=self.origin, expected=asked,
            resuming=self.resuming,
        )  # fmt: skip
        return found.row

    @property
    def origin(self) -> dict[str, str]:
        """What the run is of, and the command that makes it alone."""
        experiment, _, task = self.benchmark.partition("/")
        words = [f"cida reproduce {experiment} --preset {self.preset}"]
        words.append(f"--protocol {self.protocol}")
        words += [f"--tasks {task}"] if task else []
        words += [f"--methods {self.method} --seeds 1 --first-seed {self.seed}"]
        words += [] if self.steps is None else [f"--steps {self.steps}"]
        words += [] if self.root is None else [f"--root {self.root}"]
        words += ["--expected"] if self.expected else []
        words += self.machine.flags()
        return {
            "benchmark": self.benchmark,
            "preset": self.preset,
            "protocol": self.protocol,
            "command": " ".join(words),
        }


@dataclass(frozen=True)
class Done:
    """What became of a task: its row, or the sentence it failed with."""

    task: Task
    row: Row | None
    failure: str = ""


def run_grid(tasks: Sequence[Task], jobs: int, watch: Callable[[Done], None]) -> list[Done]:
    """Makes all runs, ``jobs`` at a time; ``watch`` hears of each as it ends.

    Each has one thread, in one process or in many, so that the numbers do not depend on ``jobs``.
    A run that fails is told and the others go on.
    """
    done: dict[Task, Done] = {}
    with closing(_in_turn(tasks) if jobs == 1 else _side_by_side(tasks, jobs)) as endings:
        for ended in endings:
            done[ended.task] = ended
            watch(ended)
    return [done[task] for task in tasks]


def _in_turn(tasks: Sequence[Task]) -> Generator[Done, None, None]:
    with one_thread():
        for task in tasks:
            yield _play(task)


def _side_by_side(tasks: Sequence[Task], jobs: int) -> Generator[Done, None, None]:
    # Fresh interpreters: a forked one would share torch's threads with its parent.
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, context, initializer=_start_worker)
    try:
        with _interrupts_held_back():
            waiting: set[Future[Done]] = {pool.submit(_play, task) for task in tasks}
        while waiting:
            ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ended:
                yield future.result()
    except BaseException:
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Processes that are started inside never hear of Ctrl-C; ours is told when it is left.

    A worker that is still importing would answer with a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker() -> None:
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to tell
    signal.signal(signal.SIGTERM, _stop)


def _stop(*_: object) -> None:
    raise SystemExit(1)  # rather than be killed: half-written files are removed on the way out


def _play(task: Task) -> Done:
    with warnings.catch_warnings():
        # Between many runs nobody could tell whose they are: the report names each with its run.
        warnings.simplefilter("ignore", CidaWarning)
        warnings.simplefilter("always", CheckpointWarning)  # which names its run by the folder
        try:
            return Done(task, task.play())
        except FloatingPointError as error:  # the game ran away: a result of its kind
            return Done(task, None, str(error))


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, torch computes with one thread; the number before is put back."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
