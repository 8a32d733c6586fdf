"""``cida reproduce``: the paper's experiments, over seeds, beside its numbers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from cida.benchmarks.grid import Done, Task, one_thread, run_grid
from cida.benchmarks.paper import RECORD
from cida.benchmarks.recipes import BENCHMARKS, METHODS, PRESETS
from cida.benchmarks.runner import read_outcome, versions, write_results
from cida.benchmarks.tables import ResultLine, markdown, result_lines
from cida.files import write_atomically
from cida.report import toy_report

__all__ = ["Reproduce", "check_counts", "check_methods", "rich_table"]


@dataclass(frozen=True)
class Reproduce:
    """Runs an experiment of the paper with every method over seeds, and writes table and figures.

    Example:  cida reproduce circle --seeds 5 --methods source-only dann histogram --jobs 2
    """

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    """The experiment: circle, sine."""

    seeds: int = 5
    """How many seeds, counted from --first-seed; each draws its own points and its own start."""

    methods: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")] = tuple(METHODS)
    """Which methods; all by default."""

    preset: str = "best"
    """best: our strongest recipe of each method; paper: the paper's settings, nothing added."""

    jobs: int = 1
    """How many runs at a time, with one thread each; the numbers are the same."""

    out: Path | None = None
    """The folder for runs, results.json, table.md, figures and report.html; by default
    runs/NAME-PRESET."""

    resume: bool = False
    """Keeps the runs that are finished in the folder and makes the others."""

    first_seed: int = 0
    """The first seed."""

    steps: int | None = None
    """Training steps of every method; fewer give a quicker look and a worse model."""

    figures: bool = True
    """Draws the figures as PNG and SVG too, for which matplotlib is needed."""

    def run(self, console: Console) -> int:
        """Makes the runs, prints the table, writes the files and prints the report's path last."""
        self._check()
        tasks = self._tasks()
        try:
            done = self._play(tasks, console)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                "interrupted; finished runs are kept, --resume goes on"
            ) from None
        except BrokenProcessPool:
            raise ChildProcessError(
                "a run's process was killed, perhaps for want of memory; finished runs are kept: "
                "go on with --resume and fewer --jobs."
            ) from None
        whole = [ended for ended in done if ended.row is not None]
        failed = [ended for ended in done if ended.row is None]
        if whole:
            self._write(whole, console)
        for ended in failed:
            task = ended.task
            console.print(f"{task.method}, seed {task.seed} failed: {ended.failure}", style="red")
        return 1 if failed else 0

    @property
    def _folder(self) -> Path:
        return self.out or Path("runs") / f"{self.name}-{self.preset}"

    def _check(self) -> None:
        if self.name not in BENCHMARKS:
            known = ", ".join(BENCHMARKS)
            raise ValueError(f"NAME is {self.name!r}; known experiments are {known}.")
        if self.preset not in PRESETS:
            raise ValueError(f"preset is {self.preset!r}; known are {', '.join(PRESETS)}.")
        check_methods(self.methods, METHODS)
        check_counts(seeds=self.seeds, jobs=self.jobs, steps=self.steps)
        if self.figures:
            _need_matplotlib()

    def _tasks(self) -> list[Task]:
        names = list(dict.fromkeys(self.methods))
        return [
            Task(
                self.name, self.preset, name, seed, self._folder / f"{name}-seed{seed}", self.steps
            )
            for name in names
            for seed in range(self.first_seed, self.first_seed + self.seeds)
        ]

    def _play(self, tasks: Sequence[Task], console: Console) -> list[Done]:
        with one_thread():
            kept = [Done(t, row) for t in tasks if self.resume and (row := t.finished())]
        found = {ended.task: ended for ended in kept}
        missing = [task for task in tasks if task not in found]
        with Progress(
            TextColumn("{task.description:<34}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        ) as bar:
            runs = bar.add_task(
                f"{self.name}, {self.preset}", total=len(tasks), completed=len(kept)
            )

            def watch(ended: Done) -> None:
                score = "failed" if ended.row is None else f"{ended.row.target_accuracy:.1%}"
                words = f"{ended.task.method}, seed {ended.task.seed}: {score}"
                bar.update(runs, advance=1, description=words)

            for ended in run_grid(missing, self.jobs, watch):
                found[ended.task] = ended
        return [found[task] for task in tasks]

    def _write(self, done: Sequence[Done], console: Console) -> None:
        rows = [ended.row for ended in done if ended.row is not None]
        protocol = "training points; fresh: a second draw of the same domains, scaled as the first"
        folder = self._folder
        write_results(folder / "results.json", self.name, self.preset, protocol, rows)
        titles = {ended.task.method: ended.task.recipe.title for ended in done}
        lines = result_lines(rows, titles, RECORD[self.name])
        write_atomically(folder / "table.md", markdown(lines).encode())
        world = done[0].task.world
        outcomes = [read_outcome(e.task.folder, e.task.recipe, e.task.world) for e in done]
        pictures: dict[str, str] = {}
        if self.figures:
            from cida.benchmarks.figures import draw_figures

            pictures = draw_figures(world, outcomes, folder)
        facts = {
            "command": self._command(),
            "versions": versions(),
            "settings": {o.recipe.method: o.recipe.words() for o in outcomes},
        }
        page = toy_report(world, outcomes, facts, pictures, RECORD[self.name])
        write_atomically(folder / "report.html", page.encode())
        console.print(rich_table(lines, f"{self.name}, {self.preset}: accuracy %", _WIDE))
        console.print("The report, to open in a browser:")
        console.print(str((folder / "report.html").resolve()), soft_wrap=True, highlight=False)

    def _command(self) -> str:
        words = [f"cida reproduce {self.name} --preset {self.preset} --seeds {self.seeds}"]
        if self.first_seed:
            words.append(f"--first-seed {self.first_seed}")
        if self.steps is not None:
            words.append(f"--steps {self.steps}")
        if self.methods != tuple(METHODS):
            words += ["--methods", *self.methods]
        return " ".join(words)


def check_methods(methods: Sequence[str], known: Collection[str]) -> None:
    """Refuses names that no recipe has."""
    unknown = [name for name in methods if name not in known]
    if unknown or not methods:
        raise ValueError(
            f"methods has {', '.join(unknown) or 'no name'}; known are {', '.join(known)}."
        )


def check_counts(**counts: int | None) -> None:
    """Refuses numbers below 1, by their flag."""
    for name, value in counts.items():
        if value is not None and value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1.")


def _need_matplotlib() -> None:
    if find_spec("matplotlib") is None:
        raise ImportError(
            "figures need matplotlib, which is not installed; pip install 'cida[plot]', or add "
            "--no-figures for tables and report alone."
        )


# What table.md and the report have room for, and a terminal has not.
_WIDE = ("source", "gain", "fresh std", "fresh all", "record")


def rich_table(lines: Sequence[ResultLine], title: str, without: Sequence[str] = ()) -> Table:
    """The table for the terminal."""
    cells = [
        {name: cell for name, cell in line.words().items() if name not in without} for line in lines
    ]
    table = Table(title=title)
    for name in cells[0]:
        first = name == "method"
        table.add_column(name, justify="left" if first else "right", no_wrap=first)
    for line in cells:
        table.add_row(*line.values())
    return table
