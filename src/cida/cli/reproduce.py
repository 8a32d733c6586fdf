"""``cida reproduce``: the paper's experiments, over seeds, beside its numbers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from cida.benchmarks.catalogue import BENCHMARKS
from cida.benchmarks.grid import Done, Task, one_thread, run_grid
from cida.benchmarks.recipes import Benchmark
from cida.benchmarks.runner import Outcome, read_outcome, versions, write_results
from cida.benchmarks.tables import ResultLine, cells, markdown, result_lines
from cida.benchmarks.toys import Points
from cida.cli.data import fetch
from cida.datasets import DOWNLOADS
from cida.files import write_atomically
from cida.report import rotating_report, toy_report

__all__ = ["Reproduce", "check_counts", "check_methods", "check_seed", "rich_table"]


@dataclass(frozen=True)
class Reproduce:
    """Runs an experiment of the paper with every method over seeds, and writes table and figures.

    Example:  cida reproduce circle --seeds 5 --methods source-only dann histogram --jobs 2
    """

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    """The experiment: circle, sine, rotating-mnist, rotating-digits (no download)."""

    seeds: int = 5
    """How many seeds, counted from --first-seed; each draws its own points and its own start."""

    methods: Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="NAME ...")] = None
    """Which methods: source-only, adda, dann, cdann, mdd, cua, cida, pcida, histogram, oracle; for
    points also cida-l1, mixture; for digits also dann-merged, histogram-line. All by default."""

    preset: str = "best"
    """best: our strongest recipe of each method; paper: the paper's settings, nothing added. For
    rotating-mnist also accurate: a larger network, trained longer; steady: the paper's networks in
    our game."""

    protocol: str | None = None
    """For digits, clean: other digits are scored than trained on; paper: the same images are;
    development: training digits held out are scored. By default the preset's own."""

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
        if self._benchmark.download:  # here, where it is seen, and once for all runs
            fetch(DOWNLOADS[self._benchmark.download], console)
        tasks = self._tasks()
        try:
            done = self._play(tasks, console)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                "interrupted; finished runs are kept, --resume goes on."
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
        other = "" if self.protocol is None else f"-{self.protocol}"
        return self.out or Path("runs") / f"{self.name}-{self.preset}{other}"

    @property
    def _benchmark(self) -> Benchmark:
        return BENCHMARKS[self.name]

    @property
    def _protocol(self) -> str:
        return self.protocol or self._benchmark.presets[self.preset].protocol

    @property
    def _methods(self) -> Sequence[str]:
        return self._benchmark.methods if self.methods is None else self.methods

    def _check(self) -> None:
        check_name("NAME", self.name, BENCHMARKS)
        check_name("preset", self.preset, self._benchmark.presets)
        check_name("protocol", self._protocol, self._benchmark.protocols)
        check_methods(self._methods, self._benchmark.methods)
        check_counts(seeds=self.seeds, jobs=self.jobs, steps=self.steps)
        check_seed(self.first_seed)
        if self.figures:
            _need_matplotlib()

    def _tasks(self) -> list[Task]:
        names = list(dict.fromkeys(self._methods))
        return [
            Task(
                self.name,
                self.preset,
                self._protocol,
                name,
                seed,
                self._folder / f"{name}-seed{seed}",
                self.steps,
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
        folder, benchmark = self._folder, self._benchmark
        protocol = f"{self._protocol}: {benchmark.protocols[self._protocol]}"
        write_results(folder / "results.json", self.name, self.preset, protocol, rows)
        titles = {ended.task.method: ended.task.recipe.title for ended in done}
        sample = done[0].task.sample
        toy = isinstance(sample, Points)
        lines = result_lines(rows, titles, benchmark.records, by_index=not toy)
        write_atomically(folder / "table.md", markdown(lines).encode())
        outcomes = [read_outcome(ended.task.folder, ended.task.recipe) for ended in done]
        facts = {
            "command": self._command(),
            "protocol": protocol,
            "versions": versions(),
            "settings": {o.recipe.method: o.recipe.words() for o in outcomes},
        }
        if isinstance(sample, Points):
            pictures = self._draw("figures", sample.world, outcomes)
            page = toy_report(sample.world, outcomes, facts, pictures, benchmark.records)
        else:
            pictures = self._draw("rotating_figures", sample, outcomes)
            page = rotating_report(self.name, lines, outcomes, facts, pictures)
        write_atomically(folder / "report.html", page.encode())
        title = f"{self.name}, {self.preset}, protocol {self._protocol}: accuracy %"
        console.print(rich_table(lines, title, _WIDE if toy else _too_wide(lines, console)))
        console.print("The report, to open in a browser:")
        console.print(str((folder / "report.html").resolve()), soft_wrap=True, highlight=False)

    def _draw(self, module: str, data: Any, outcomes: Sequence[Outcome]) -> dict[str, str]:
        """The figures, by title; matplotlib is only touched where it is asked for."""
        if not self.figures:
            return {}
        drawing = import_module(f"cida.benchmarks.{module}")
        pictures: dict[str, str] = drawing.draw_figures(data, outcomes, self._folder)
        return pictures

    def _command(self) -> str:
        words = [f"cida reproduce {self.name} --preset {self.preset} --seeds {self.seeds}"]
        if self.first_seed:
            words.append(f"--first-seed {self.first_seed}")
        if self.steps is not None:
            words.append(f"--steps {self.steps}")
        if self.protocol is not None:
            words.append(f"--protocol {self.protocol}")
        if self.methods is not None:
            words += ["--methods", *self.methods]
        return " ".join(words)


def check_name(flag: str, name: str, known: Collection[str]) -> None:
    """Refuses a name that is not known."""
    if name not in known:
        raise ValueError(f"{flag} is {name!r}; known: {', '.join(known)}.")


def check_seed(first_seed: int) -> None:
    """Refuses seeds that no generator takes."""
    if first_seed < 0:
        raise ValueError(f"first_seed is {first_seed}; it must not be negative.")


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
ROOM_FOR_INTERVALS = 112


def _too_wide(lines: Sequence[ResultLine], console: Console) -> tuple[str, ...]:
    """In a narrow terminal the intervals along u are left to table.md and the report."""
    narrow = console.width < ROOM_FOR_INTERVALS
    return ("gain", "std", *(lines[0].intervals if narrow else ()))


def rich_table(lines: Sequence[ResultLine], title: str, without: Sequence[str] = ()) -> Table:
    """The table for the terminal."""
    found = [
        {name: cell for name, cell in line.items() if name not in without} for line in cells(lines)
    ]
    table = Table(title=title)
    for name in found[0]:
        first = name == "method"
        table.add_column(name, justify="left" if first else "right", no_wrap=first)
    for line in found:
        table.add_row(*line.values())
    return table
