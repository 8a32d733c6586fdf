"""``cida demo``: the main job on embedded data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import tyro
from rich.console import Console

from cida import distributed
from cida.cli.arguments import check_counts, check_methods, check_seed
from cida.cli.bars import watching
from cida.cli.output import folder_contents, print_json, titled_warnings
from cida.cli.report import REPORT_FILE, save_report
from cida.datasets import make_circle
from cida.experiments.circle_sine.toy_tasks import DEMO_RECIPES, make_toy_data
from cida.experiments.publish import rich_table
from cida.experiments.registry import EXPERIMENTS
from cida.experiments.runner import (
    CompletedRun,
    ResumeOptions,
    load_completed_run,
    load_finished_result,
    run_recipe,
    write_results,
)
from cida.io.files import exclusive_lock
from cida.report import Manifest, read_runs
from cida.report.result_tables import build_result_lines, build_table
from cida.runs.records import Origin

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

    methods: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")] = tuple(DEMO_RECIPES)
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
        check_methods(self.methods, DEMO_RECIPES)
        check_counts(seeds=self.seeds, steps=self.steps)
        check_seed(self.first_seed)
        with exclusive_lock(self.out, self.out / ".lock"):
            return self._run(console)

    def _run(self, console: Console) -> int:
        completed_runs = [
            outcome for seed in self._seeds for outcome in self._run_seed(seed, console)
        ]
        results = [outcome.result for outcome in completed_runs]
        write_results(self.out / "results.json", "circle", "demo", "training points", results)
        folders = [self._folder(o.recipe.method, o.result.seed) for o in completed_runs]
        names = [folder.name for folder in folders]
        experiment = EXPERIMENTS["circle"]
        Manifest(
            runs=names,
            command=self._command(),
            protocol="training points",
            experiment=experiment.name,
            text=experiment.text,
            tasks=tuple(task.record for task in experiment.tasks),
        ).save(self.out)
        save_report(read_runs(folders), self.out / REPORT_FILE, console)
        titles = {outcome.recipe.method: outcome.recipe.title for outcome in completed_runs}
        title = "Circle: accuracy %, 6 source and 24 target domains"
        console.print(rich_table(build_table(build_result_lines(results, titles)), title))
        console.print("The report, to open in a browser:")
        console.print(str((self.out / REPORT_FILE).resolve()), soft_wrap=True, highlight=False)
        if self.json:
            print_json("demo", **folder_contents(self.out))
        return 0

    @property
    def folder(self) -> Path:
        """Where runs are made."""
        return self.out

    @property
    def _seeds(self) -> range:
        return range(self.first_seed, self.first_seed + self.seeds)

    def _run_seed(self, seed: int, console: Console) -> list[CompletedRun]:
        task_data = make_toy_data(make_circle(seed=seed))
        completed_runs = []
        for name in self.methods:
            recipe = DEMO_RECIPES[name].with_settings(steps=self.steps)
            title = f"{recipe.title}, seed {seed}"
            finished_result = self.resume and load_finished_result(
                self._folder(name, seed), recipe, task_data, seed
            )
            if not distributed.any_rank(not finished_result):
                completed_runs.append(load_completed_run(self._folder(name, seed), recipe))
                continue
            with (
                titled_warnings(title, console),
                watching(f"{title:<26}", console) as watchers,
            ):
                folder, origin = self._folder(name, seed), self._origin(name, seed)
                # What to expect of the default is told too, by a second training.
                completed_runs.append(
                    run_recipe(
                        recipe,
                        task_data,
                        seed,
                        folder,
                        watchers,
                        origin,
                        name == "default",
                        ResumeOptions(self.resume),
                    )
                )
        return completed_runs

    def _folder(self, method: str, seed: int) -> Path:
        return self.out / f"{method}-seed{seed}"

    def _origin(self, method: str, seed: int) -> Origin:
        """What a run is of, and the command that makes it alone."""
        command = self._command_line(1, seed, (method,))
        return Origin("circle", "demo", "", command)

    def _command(self) -> str:
        return self._command_line(self.seeds, self.first_seed, self.methods)

    def _command_line(self, seeds: int, first_seed: int, methods: tuple[str, ...]) -> str:
        parts = ["cida demo", f"--seeds {seeds}", f"--first-seed {first_seed}"]
        if self.steps is not None:
            parts.append(f"--steps {self.steps}")
        return " ".join([*parts, "--methods", *methods])
