"""``cida demo``: the main job on embedded data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from cida import distributed
from cida.cli.arguments import check_counts, check_methods, check_seed
from cida.cli.console import folder_contents, print_json, titled_warnings, training_progress
from cida.cli.report import REPORT_FILE, save_report
from cida.datasets import make_circle
from cida.experiments.circle_sine.toy_tasks import DEMO_RECIPES, make_toy_data
from cida.experiments.commands import Demo
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
from cida.report.tables import render_terminal
from cida.runs.records import Origin

__all__ = ["DemoRun"]


@dataclass(frozen=True)
class DemoRun(Demo):
    """The command at work."""

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
        console.print(render_terminal(build_table(build_result_lines(results, titles)), title))
        console.print("The report, to open in a browser:")
        console.print(str((self.out / REPORT_FILE).resolve()), soft_wrap=True, highlight=False)
        if self.json:
            print_json("demo", **folder_contents(self.out))
        return 0

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
                training_progress(f"{title:<26}", console) as watchers,
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
