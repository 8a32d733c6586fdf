"""``cida reproduce``: the paper's experiments, over seeds, beside its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib.util import find_spec

from rich.console import Console

from cida import distributed
from cida.cli.arguments import check_counts, check_methods, check_name, check_seed
from cida.cli.console import folder_contents, print_json, progress_bar
from cida.experiments.commands import Reproduce
from cida.experiments.data_command import fetch_dataset
from cida.experiments.jobs import Job, JobResult, run_jobs, single_threaded
from cida.experiments.publish import Publisher
from cida.experiments.registry import DATASET_BY_NAME, EXPERIMENTS
from cida.experiments.runner import ResumeOptions
from cida.experiments.spec import ComputeConfig, Experiment, PreparationRequest, TaskSpec
from cida.io.files import exclusive_lock
from cida.runs.run_folder import check_checkpoint_seconds

__all__ = ["ReproduceRun"]


@dataclass(frozen=True)
class ReproduceRun(Reproduce):
    """The command at work."""

    def run(self, console: Console) -> int:
        """Makes the runs, prints the table, writes the files and prints the report's path last."""
        self._check()
        with exclusive_lock(self.folder, self.folder / ".lock"):
            return self._run(console)

    def _run(self, console: Console) -> int:
        self._prepare_data(console)
        jobs = self._jobs()
        try:
            job_results = self._run_jobs(jobs, console)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"interrupted; finished runs are kept in {self.folder}, --resume goes on."
            ) from None
        except BrokenProcessPool:
            raise ChildProcessError(
                "a run's process was killed, perhaps for want of memory; finished runs are kept: "
                "go on with --resume and fewer --jobs."
            ) from None
        completed = [ended for ended in job_results if ended.result is not None]
        failed = [ended for ended in job_results if ended.result is None]
        if completed:
            self._publish(completed, console)
        for ended in failed:
            console.print(f"{ended.job.label} failed: {ended.failure}", style="red")
        if self.json:
            failures = {ended.job.label: ended.failure for ended in failed}
            print_json(
                "reproduce", failed=failures, **(folder_contents(self.folder) if completed else {})
            )
        return 1 if failed else 0

    @property
    def _experiment(self) -> Experiment:
        return EXPERIMENTS[self.name]

    @property
    def _first_task(self) -> TaskSpec:
        """All tasks of an experiment have the same methods, presets and protocols."""
        return self._experiment.tasks[0]

    @property
    def _tasks(self) -> list[TaskSpec]:
        all_tasks = self._experiment.tasks
        return [t for t in all_tasks if self.tasks is None or t.task_name in self.tasks]

    @property
    def _protocol(self) -> str:
        return self.protocol or self._first_task.presets[self.preset].protocol

    @property
    def _methods(self) -> Sequence[str]:
        return self._first_task.methods if self.methods is None else self.methods

    @property
    def _machine(self) -> ComputeConfig:
        return ComputeConfig(self.device, self.precision, self.compile)

    def _publish(self, job_results: Sequence[JobResult], console: Console) -> None:
        Publisher(
            self._experiment,
            self.preset,
            self._protocol,
            self._command(),
            self.folder,
            self.figures,
            job_results,
        ).publish(console)

    def _check(self) -> None:
        check_name("NAME", self.name, EXPERIMENTS)
        check_name("preset", self.preset, self._first_task.presets)
        check_name("protocol", self._protocol, self._first_task.protocols)
        check_methods(self._methods, self._first_task.methods)
        check_counts(seeds=self.seeds, jobs=self.jobs, steps=self.steps)
        check_seed(self.first_seed)
        check_checkpoint_seconds(self.checkpoint_seconds)
        if self.tasks is not None:
            _check_tasks(self.name, self.tasks)
        if self.root is not None and not self._experiment.accepts_root:
            raise ValueError(f"root is for the sleep experiments; {self.name} brings its own data.")
        if self.figures:
            _check_matplotlib_installed()

    def _prepare_data(self, console: Console) -> None:
        """Gets what is not there yet: here, where it is seen, for all runs."""
        for name in dict.fromkeys(t.download.name for t in self._tasks if t.download is not None):
            fetch_dataset(DATASET_BY_NAME[name], console)
        if self._experiment.prepare is None:
            return
        with progress_bar(console, transient=False) as bar:
            bar_task = bar.add_task("data", total=1, completed=1)

            def on_progress(description: str, done: int, total: int) -> None:
                bar.update(bar_task, description=description, completed=done, total=total)

            self._experiment.prepare(
                PreparationRequest(
                    self._tasks,
                    self.first_seed,
                    self._protocol,
                    self.root,
                    self.jobs or 1,
                    on_progress,
                )
            )

    def _jobs(self) -> list[Job]:
        names = list(dict.fromkeys(self._methods))
        return [
            Job(
                benchmark.name,
                self.preset,
                self._protocol,
                name,
                seed,
                self.folder / benchmark.task_name / f"{name}-seed{seed}",
                self.steps,
                self.root,
                self.expected,
                self._machine,
                ResumeOptions(self.resume, self.checkpoint_seconds),
            )
            for benchmark in self._tasks
            for name in names
            for seed in range(self.first_seed, self.first_seed + self.seeds)
        ]

    def _run_jobs(self, jobs: Sequence[Job], console: Console) -> list[JobResult]:
        with single_threaded():
            finished_results = {task: task.find_finished_result() for task in jobs if self.resume}
            # What is to be done is done by all ranks together.
            kept_results = [
                JobResult(t, row)
                for t, row in finished_results.items()
                if not distributed.any_rank(row is None)
            ]
        results_by_job = {ended.job: ended for ended in kept_results}
        remaining_jobs = [task for task in jobs if task not in results_by_job]
        with progress_bar(console, transient=False) as bar:
            bar_task = bar.add_task(
                f"{self.name}, {self.preset}", total=len(jobs), completed=len(kept_results)
            )

            def on_job_result(ended: JobResult) -> None:
                score = "failed" if ended.result is None else f"{ended.result.target_score:.1%}"
                description = f"{ended.job.label}: {score}"
                bar.update(bar_task, advance=1, description=description)

            for ended in run_jobs(remaining_jobs, self.jobs, on_job_result, self.scheduler):
                results_by_job[ended.job] = ended
        return [results_by_job[task] for task in jobs]

    def _command(self) -> str:
        parts = [f"cida reproduce {self.name} --preset {self.preset} --seeds {self.seeds}"]
        if self.first_seed:
            parts.append(f"--first-seed {self.first_seed}")
        if self.steps is not None:
            parts.append(f"--steps {self.steps}")
        if self.protocol is not None:
            parts.append(f"--protocol {self.protocol}")
        if self.tasks is not None:
            parts += ["--tasks", *self.tasks]
        if self.methods is not None:
            parts += ["--methods", *self.methods]
        if self.root is not None:
            parts += ["--root", str(self.root)]
        if self.expected:
            parts.append("--expected")
        parts += self._machine.to_flags()
        return " ".join(parts)


def _check_matplotlib_installed() -> None:
    if find_spec("matplotlib") is None:
        raise ImportError(
            "figures need matplotlib, which is not installed; pip install 'cida[plot]', or add "
            "--no-figures for tables and report alone."
        )


def _check_tasks(experiment: str, tasks: Sequence[str]) -> None:
    choices = [benchmark.task_name for benchmark in EXPERIMENTS[experiment].tasks]
    if len(choices) == 1:
        raise ValueError(f"tasks is for experiments that have several; {experiment} is one task.")
    for name in tasks or ("",):
        check_name("tasks", name, choices)
