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
from cida.experiments.jobs import Job, JobResult, run_jobs
from cida.experiments.publish import Publisher
from cida.experiments.registry import DATASET_BY_NAME, EXPERIMENTS
from cida.experiments.runner import ResumeOptions, format_command
from cida.experiments.spec import ComputeConfig, Experiment, PreparationRequest, TaskSpec
from cida.io.files import exclusive_lock
from cida.runs.run_folder import check_checkpoint_seconds
from cida.threads import single_threaded


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
            kept = f"finished runs are kept in {self.folder}"
            raise KeyboardInterrupt(f"interrupted; {kept}, --resume goes on.") from None
        except BrokenProcessPool:
            raise ChildProcessError(
                "a run's process was killed, perhaps because memory ran out; finished runs are "
                "kept: go on with --resume and fewer --jobs."
            ) from None
        completed = [ended for ended in job_results if ended.result is not None]
        failures = {e.job.label: e.failure for e in job_results if e.result is None}
        if completed:
            facts = (self._experiment, self.preset, self._protocol, self._command(), self.folder)
            Publisher(*facts, self.figures, completed).publish(console)
        for label, failure in failures.items():
            console.print(f"{label} failed: {failure}", style="red")
        if self.json:
            contents = folder_contents(self.folder) if completed else {}
            print_json("reproduce", failed=failures, **contents)
        return 1 if failures else 0

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

    def _check(self) -> None:
        check_name("NAME", self.name, EXPERIMENTS)
        check_name("preset", self.preset, self._first_task.presets)
        check_name("protocol", self._protocol, self._first_task.protocols)
        check_methods(self._methods, self._first_task.methods)
        check_counts(seeds=self.seeds, jobs=self.jobs, steps=self.steps)
        check_seed(self.first_seed)
        check_checkpoint_seconds(self.checkpoint_seconds)
        if self.tasks is not None:
            choices = [task.task_name for task in self._experiment.tasks]
            if len(choices) == 1:
                problem = f"tasks is for experiments that have several; {self.name} is one task"
                raise ValueError(f"{problem}.")
            for name in self.tasks or ("",):
                check_name("tasks", name, choices)
        if self.root is not None and not self._experiment.accepts_root:
            raise ValueError(f"root is for the sleep experiments; {self.name} brings its own data.")
        if self.figures and find_spec("matplotlib") is None:
            raise ImportError(
                "figures need matplotlib, which is not installed; pip install 'cida[plot]', or add "
                "--no-figures for tables and report alone."
            )

    def _prepare_data(self, console: Console) -> None:
        """Gets what is not there yet: here, where it is seen, for all runs."""
        for name in dict.fromkeys(t.download.name for t in self._tasks if t.download is not None):
            fetch_dataset(DATASET_BY_NAME[name], console)
        if self._experiment.prepare is None:
            return
        with progress_bar(console, transient=False) as bar:
            task = bar.add_task("data", total=1, completed=1)

            def on_progress(title: str, done: int, total: int) -> None:
                bar.update(task, description=title, completed=done, total=total)

            what = (self._tasks, self.first_seed, self._protocol, self.root)
            self._experiment.prepare(PreparationRequest(*what, self.jobs or 1, on_progress))

    def _jobs(self) -> list[Job]:
        resume_options = ResumeOptions(self.resume, self.checkpoint_seconds)
        settings = (self.steps, self.root, self.expected, self._machine, resume_options)
        return [
            Job(task.name, self.preset, self._protocol, method, seed, folder, *settings)
            for task in self._tasks
            for method in dict.fromkeys(self._methods)
            for seed in range(self.first_seed, self.first_seed + self.seeds)
            for folder in [self.folder / task.task_name / f"{method}-seed{seed}"]
        ]

    def _run_jobs(self, jobs: Sequence[Job], console: Console) -> list[JobResult]:
        with single_threaded():
            finished = {job: job.find_finished_result() for job in jobs if self.resume}
            # What is to be done is done by all ranks together.
            kept = (JobResult(*pair) for pair in finished.items())
            results = {k.job: k for k in kept if not distributed.any_rank(k.result is None)}
        remaining_jobs = [job for job in jobs if job not in results]
        with progress_bar(console, transient=False) as bar:
            title = f"{self.name}, {self.preset}"
            bar_task = bar.add_task(title, total=len(jobs), completed=len(results))

            def on_job_result(ended: JobResult) -> None:
                score = "failed" if ended.result is None else f"{ended.result.target_score:.1%}"
                bar.update(bar_task, advance=1, description=f"{ended.job.label}: {score}")

            for ended in run_jobs(remaining_jobs, self.jobs, on_job_result, self.scheduler):
                results[ended.job] = ended
        return [results[job] for job in jobs]

    def _command(self) -> str:
        return format_command(
            f"cida reproduce {self.name}",
            preset=self.preset,
            seeds=self.seeds,
            first_seed=self.first_seed or None,
            steps=self.steps,
            protocol=self.protocol,
            tasks=self.tasks,
            methods=self.methods,
            root=self.root,
            expected=self.expected,
            **self._machine.non_default_settings(),
        )
