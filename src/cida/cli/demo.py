"""``cida demo``: the main job on embedded data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from cida.benchmarks.runner import Outcome, run_recipe, versions, write_results
from cida.benchmarks.tables import cells, result_lines
from cida.benchmarks.toys import DEMO, Points
from cida.cli.publish import rich_table
from cida.cli.reproduce import check_counts, check_methods, check_seed
from cida.datasets import circle
from cida.files import write_atomically
from cida.report import toy_report
from cida.training.progress import ProgressBar

__all__ = ["Demo"]


@dataclass(frozen=True)
class Demo:
    """Adapts across the Circle world with five methods and writes a report to open.

    Source-Only, CIDA, PCIDA, the histogram head and the default (the histogram head in the moving
    frame) learn from the labels of 6 domains and predict the other 24.

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

    def run(self, console: Console) -> int:
        """Trains, prints the table, writes the files and prints the report's path last."""
        check_methods(self.methods, DEMO)
        check_counts(seeds=self.seeds, steps=self.steps)
        check_seed(self.first_seed)
        outcomes = [outcome for seed in self._seeds for outcome in self._play(seed, console)]
        rows = [outcome.row for outcome in outcomes]
        write_results(self.out / "results.json", "circle", "demo", "training points", rows)
        facts = {
            "command": self._command(),
            "versions": versions(),
            "settings": {o.recipe.method: o.recipe.words() for o in outcomes},
        }
        page = toy_report(circle(seed=self.first_seed), outcomes, facts)
        write_atomically(self.out / "report.html", page.encode())
        titles = {outcome.recipe.method: outcome.recipe.title for outcome in outcomes}
        title = "Circle: accuracy %, 6 source and 24 target domains"
        console.print(rich_table(cells(result_lines(rows, titles)), title))
        console.print("The report, to open in a browser:")
        console.print(str((self.out / "report.html").resolve()), soft_wrap=True, highlight=False)
        return 0

    @property
    def _seeds(self) -> range:
        return range(self.first_seed, self.first_seed + self.seeds)

    def _play(self, seed: int, console: Console) -> list[Outcome]:
        sample = Points(circle(seed=seed))
        outcomes = []
        for name in self.methods:
            recipe = DEMO[name].with_settings(steps=self.steps)
            title = f"{recipe.title}, seed {seed}"
            with ProgressBar(f"{title:<26}", console) as bar:
                folder = self.out / f"{name}-seed{seed}"
                outcomes.append(run_recipe(recipe, sample, seed, folder, [bar]))
        return outcomes

    def _command(self) -> str:
        words = ["cida demo", f"--seeds {self.seeds}", f"--first-seed {self.first_seed}"]
        if self.steps is not None:
            words.append(f"--steps {self.steps}")
        return " ".join([*words, "--methods", *self.methods])
