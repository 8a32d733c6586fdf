"""Many runs, several at a time, here or on a cluster: one process each, one thread each."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from cida.benchmarks.catalogue import BENCHMARKS
from cida.benchmarks.places import (
    Cluster,
    Processes,
    connected,
    interrupts_held_back,
    leave_if_unwanted,
)
from cida.benchmarks.recipes import AS_USUAL, Machine, Recipe, Sample, recipes
from cida.benchmarks.runner import (
    FROM_THE_START,
    Resuming,
    Row,
    finished_row,
    holds_row,
    run_recipe,
)
from cida.diagnostics.view import VIEW, read_view
from cida.estimators import CidaWarning
from cida.training import CheckpointWarning
from cida.training.checkpoint import ModelFileError
from cida.words import JobError

__all__ = ["Done", "Task", "one_thread", "run_grid"]

PATIENCE = 30.0  # seconds for a file of another machine to show up in a shared folder


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
            self.recipe,
            self.sample,
            self.seed,
            self.folder,
            callbacks=[leave_if_unwanted],
            origin=self.origin,
            expected=asked,
            resuming=self.resuming,
        )
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


def run_grid(
    tasks: Sequence[Task],
    jobs: int | None,
    watch: Callable[[Done], None],
    scheduler: str | None = None,
) -> list[Done]:
    """Makes all runs, ``jobs`` at a time; ``watch`` hears of each as it ends.

    They are made in processes of this machine or, if the address of a Dask ``scheduler`` is given,
    by the workers of its cluster: all of them if ``jobs`` is None. Each has one thread, here and
    there, so that the numbers depend on neither. A run that fails is told and the others go on.
    """
    if not tasks:
        return []
    # Who makes a run may work in another folder.
    given = {_absolute(task): task for task in tasks}
    done: dict[Task, Done] = {}
    with _place(jobs, scheduler) as parallel, closing(_endings(parallel, given)) as endings:
        for ended in endings:
            if scheduler is not None:
                _check_visible(ended)
            task = given[ended.task]
            done[task] = replace(ended, task=task)
            watch(done[task])
    return [done[task] for task in tasks]


def _absolute(task: Task) -> Task:
    root = None if task.root is None else task.root.absolute()
    return replace(task, folder=task.folder.absolute(), root=root)


@contextmanager
def _place(jobs: int | None, scheduler: str | None) -> Iterator[Parallel]:
    """joblib, set to this machine or to the cluster."""
    told = {"return_as": "generator_unordered", "batch_size": 1}
    with warnings.catch_warnings():
        # That runs are cancelled when one fails, and that a process is replaced when it has grown.
        warnings.filterwarnings("ignore", module="joblib")
        if scheduler is None:
            yield Parallel(jobs or 1, backend=Processes(), **told)
            return
        with connected(scheduler) as client:
            at_once = "all" if jobs is None else jobs
            yield Parallel(2, backend=Cluster(client), pre_dispatch=at_once, **told)


def _endings(parallel: Parallel, tasks: Iterable[Task]) -> Generator[Done, None, None]:
    with interrupts_held_back():
        endings = parallel(delayed(_play)(task) for task in tasks)
    yield from endings


def _check_visible(ended: Done) -> None:
    """Refuses to go on if a run that ended on the cluster left nothing here."""
    if ended.row is None:
        return
    end = time.monotonic() + PATIENCE  # a shared folder may show new files late
    while not holds_row(ended.task.folder, ended.row):
        if time.monotonic() > end:
            raise JobError(
                f"{ended.task.words} ended on the cluster, but is not in {ended.task.folder} here; "
                "give --out a folder that workers see under the same path."
            )
        time.sleep(0.1)


def _play(task: Task) -> Done:
    with one_thread(), warnings.catch_warnings():
        # Between many runs nobody could tell whose they are: the report names each with its run.
        warnings.simplefilter("ignore", CidaWarning)
        warnings.simplefilter("always", CheckpointWarning)  # which names its run by the folder
        try:
            return Done(task, task.play())
        except FloatingPointError as error:  # the game ran away: a result of its kind
            return Done(task, None, str(error))


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, torch, BLAS and OpenMP compute with one thread; the numbers before are put back."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(threads)
