"""``cida demo``: the main job on embedded data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import tyro
from rich.console import Console

from cida import ranks
from cida.benchmarks.runner import (
    Outcome,
    Resuming,
    finished_row,
    read_outcome,
    run_recipe,
    write_results,
)
from cida.benchmarks.tables import cells, result_lines
from cida.benchmarks.toys import DEMO, Points
from cida.cli.bars import watching
from cida.cli.output import folder_words, named_warnings, print_json
from cida.cli.publish import rich_table
from cida.cli.report import REPORT, leave_report
from cida.cli.reproduce import check_counts, check_methods, check_seed
from cida.datasets import circle
from cida.files import claimed
from cida.report import Story, read_runs

__all__ = ["Demo"]


@dataclass(frozen=True)
class Demo:
    """Adapts across the Circle world with five methods and writes a report to open.

    Source-Only, CIDA, PCIDA, the histogram head and the default (the histogram head in the moving
    frame) learn from the labels of 6 domains and predict the other 24.

    Example:  cida demo

    Example:  cida demo --seeds 5 --methods source-only histogram
    """

    out: Path = Path("runs/demo")
    """The folder for models, events, results.json and report.html."""

    seeds: int = 1
    """How many seeds, counted from --first-seed; each draws its own points and its own start."""

    first_seed: int = 0
    """The first seed."""

    steps: int | None = None
    """Training steps of every method; fewer give a quicker look and a worse model."""

    methods: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")] = tuple(DEMO)
    """Which methods to run: source-only, cida, pcida, histogram, default."""

    resume: bool = False
    """Keeps the runs that are finished in the folder, goes on with one that was cut off, and makes
    the others."""

    json: bool = False
    """Print one JSON object for programs; whatever else is said goes to stderr."""

    interrupted: ClassVar[str] = (
        "interrupted; what is done is kept: the same command with --resume goes on."
    )

    def run(self, console: Console) -> int:
        """Trains, prints the table, writes the files and prints the report's path last."""
        check_methods(self.methods, DEMO)
        check_counts(seeds=self.seeds, steps=self.steps)
        check_seed(self.first_seed)
        with claimed(self.out, self.out / ".lock"):
            return self._run(console)

    def _run(self, console: Console) -> int:
        outcomes = [outcome for seed in self._seeds for outcome in self._play(seed, console)]
        rows = [outcome.row for outcome in outcomes]
        write_results(self.out / "results.json", "circle", "demo", "training points", rows)
        folders = [self._folder(o.recipe.method, o.row.seed) for o in outcomes]
        names = [folder.name for folder in folders]
        Story(names, self._command(), "training points").write(self.out)
        leave_report(read_runs(folders), self.out / REPORT, console)
        titles = {outcome.recipe.method: outcome.recipe.title for outcome in outcomes}
        title = "Circle: accuracy %, 6 source and 24 target domains"
        console.print(rich_table(cells(result_lines(rows, titles)), title))
        console.print("The report, to open in a browser:")
        console.print(str((self.out / REPORT).resolve()), soft_wrap=True, highlight=False)
        if self.json:
            print_json("demo", **folder_words(self.out))
        return 0

    @property
    def folder(self) -> Path:
        """Where runs are made."""
        return self.out

    @property
    def _seeds(self) -> range:
        return range(self.first_seed, self.first_seed + self.seeds)

    def _play(self, seed: int, console: Console) -> list[Outcome]:
        sample = Points(circle(seed=seed))
        outcomes = []
        for name in self.methods:
            recipe = DEMO[name].with_settings(steps=self.steps)
            title = f"{recipe.title}, seed {seed}"
            kept = self.resume and finished_row(self._folder(name, seed), recipe, sample, seed)
            if not ranks.anywhere(not kept):
                outcomes.append(read_outcome(self._folder(name, seed), recipe))
                continue
            with (
                named_warnings(title, console),
                watching(f"{title:<26}", console) as watchers,
            ):
                folder, origin = self._folder(name, seed), self._origin(name, seed)
                # What to expect of the default is told too, by a second training.
                outcomes.append(
                    run_recipe(
                        recipe,
                        sample,
                        seed,
                        folder,
                        watchers,
                        origin,
                        name == "default",
                        Resuming(self.resume),
                    )
                )
        return outcomes

    def _folder(self, method: str, seed: int) -> Path:
        return self.out / f"{method}-seed{seed}"

    def _origin(self, method: str, seed: int) -> dict[str, str]:
        """What a run is of, and the command that makes it alone."""
        command = self._words(1, seed, (method,))
        return {"benchmark": "circle", "preset": "demo", "protocol": "", "command": command}

    def _command(self) -> str:
        return self._words(self.seeds, self.first_seed, self.methods)

    def _words(self, seeds: int, first: int, methods: tuple[str, ...]) -> str:
        words = ["cida demo", f"--seeds {seeds}", f"--first-seed {first}"]
        if self.steps is not None:
            words.append(f"--steps {self.steps}")
        return " ".join([*words, "--methods", *methods])
