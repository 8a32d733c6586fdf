"""``cida demo``: the main job on embedded data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from cida import distributed
from cida.cli.arguments import check_counts, check_methods, check_seed
from cida.cli.console import folder_contents, print_json, titled_warnings, training_progress
from cida.datasets import make_circle
from cida.experiments import runner
from cida.experiments.circle_sine.toy_tasks import DEMO_RECIPES, make_toy_data
from cida.experiments.commands import Demo
from cida.experiments.publish import publish_report
from cida.experiments.registry import EXPERIMENTS
from cida.io.files import exclusive_lock
from cida.report import Manifest
from cida.report.result_tables import build_result_lines, build_table
from cida.report.tables import render_terminal
from cida.runs.records import Origin


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
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        runs = [run for seed in seeds for run in self._run_seed(seed, console)]
        results = [run.result for run in runs]
        facts = {"benchmark": "circle", "preset": "demo", "protocol": "training points"}
        runner.write_results(self.out / "results.json", results, **facts, is_simulated=False)
        folders = [self._folder(run.recipe.method, run.result.seed) for run in runs]
        titles = {run.recipe.method: run.recipe.title for run in runs}
        title = "Circle: accuracy %, 6 source and 24 target domains"
        console.print(render_terminal(build_table(build_result_lines(results, titles)), title))
        experiment = EXPERIMENTS["circle"]
        manifest = Manifest(
            runs=[folder.name for folder in folders],
            command=self._command_line(self.seeds, self.first_seed, self.methods),
            protocol="training points",
            experiment=experiment.name,
            text=experiment.text,
            tasks=tuple(task.record for task in experiment.tasks),
        )
        publish_report(manifest, folders, self.out, console)
        if self.json:
            print_json("demo", **folder_contents(self.out))
        return 0

    def _run_seed(self, seed: int, console: Console) -> list[runner.CompletedRun]:
        task_data = make_toy_data(make_circle(seed=seed))
        completed_runs = []
        for name in self.methods:
            recipe = DEMO_RECIPES[name].with_settings(steps=self.steps)
            title, folder = f"{recipe.title}, seed {seed}", self._folder(name, seed)
            finished = self.resume and runner.load_finished_result(folder, recipe, task_data, seed)
            if not distributed.any_rank(not finished):
                completed_runs.append(runner.load_completed_run(folder, recipe))
                continue
            progress = training_progress(f"{title:<26}", console)
            with titled_warnings(title, console), progress as watchers:
                run = runner.run_recipe(
                    recipe,
                    task_data,
                    seed,
                    folder,
                    watchers,
                    Origin("circle", "demo", "", self._command_line(1, seed, (name,))),
                    with_expected_score=name == "default",  # by a second training
                    resume_options=runner.ResumeOptions(self.resume),
                )
                completed_runs.append(run)
        return completed_runs

    def _folder(self, method: str, seed: int) -> Path:
        return self.out / f"{method}-seed{seed}"

    def _command_line(self, seeds: int, first_seed: int, methods: tuple[str, ...]) -> str:
        flags = {"seeds": seeds, "first_seed": first_seed, "steps": self.steps, "methods": methods}
        return runner.format_command("cida demo", **flags)
