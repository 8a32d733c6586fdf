"""``cida reproduce``: the paper's experiments, over seeds, beside its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from cida import distributed
from cida.cli.arguments import check_counts, check_methods, check_name, check_seed
from cida.cli.bars import runs_bar
from cida.cli.output import folder_contents, print_json
from cida.experiments.data_command import fetch_dataset
from cida.experiments.jobs import Job, JobResult, run_jobs, single_threaded
from cida.experiments.publish import Publisher
from cida.experiments.registry import EXPERIMENTS
from cida.experiments.runner import ResumeOptions
from cida.experiments.spec import ComputeConfig, Experiment, PreparationRequest, TaskSpec
from cida.io.files import exclusive_lock
from cida.runs.run_folder import check_checkpoint_seconds

__all__ = ["Reproduce"]


@dataclass(frozen=True)
class Reproduce:
    """Runs an experiment of the paper with every method over seeds, and writes table and figures.

    Example:  cida reproduce circle --seeds 5 --methods source-only dann histogram --jobs 2

    Example:  cida reproduce rotating-digits --seeds 2 --resume
    """

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    """The experiment: circle, sine, rotating-mnist, rotating-digits (no download), sleep-intra,
    sleep-cross, sleep-multi, nhanes, king-county, support2; moments: the moment ladder; worlds: the
    default in small worlds; selection: which of many runs each validator keeps; restarts: the best
    of four games."""

    seeds: int = 5
    """How many seeds, counted from --first-seed; each draws its own points and its own start."""

    methods: Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="NAME ...")] = None
    """Which methods: source-only, adda, dann, cdann, mdd, cua, cida, pcida, histogram, oracle; for
    points also cida-l1, mixture; for digits also dann-merged, histogram-line, von-mises,
    von-mises-mixture; for sleep also source-only-along; for tables logistic, boosting, these and
    source-only with -windows behind, and conditional; for moments cida-l1, cida, pcida, skew,
    mixture, flow, histogram, distance-correlation, hsic; for worlds histogram, given-prediction,
    distance-correlation, default; for both source-only, oracle; for selection a head and a weight,
    such as l2-0.2; for restarts default, restarts. All by default."""

    preset: str = "best"
    """best: our strongest recipe of each method; paper: the paper's settings, nothing added. For
    rotating-mnist also accurate: a larger network, trained longer; steady: the paper's networks in
    our game. For moments best, and start: the encoder begins as the shortcut. For worlds,
    selection and restarts best alone."""

    protocol: str | None = None
    """For digits, clean: other digits are scored than trained on; paper: the same images are;
    development: training digits held out are scored. By default the preset's own."""

    jobs: int | None = None
    """How many runs at a time, with one thread each; the numbers are the same. By default 1, on a
    cluster as many as it has workers."""

    scheduler: Annotated[str | None, tyro.conf.arg(metavar="ADDRESS")] = None
    """The address that dask scheduler prints, such as tcp://10.0.0.1:8786: the workers of that
    cluster make the runs, and must see the folder of --out under the same path."""

    out: Path | None = None
    """The folder for runs, results.json, table.md, figures and report.html; by default
    runs/NAME-PRESET."""

    resume: bool = False
    """Keeps the runs that are finished in the folder, goes on with those that were cut off, and
    makes the others."""

    checkpoint_seconds: float = 30.0
    """Seconds between two checkpoints of a run's training."""

    first_seed: int = 0
    """The first seed."""

    steps: int | None = None
    """Training steps of every method; fewer give a quicker look and a worse model."""

    tasks: Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="NAME ...")] = None
    """Which tasks of an experiment that has several, such as shhs-extrapolation. All by default."""

    root: Path | None = None
    """For sleep: the folder with your own stores, shhs, mesa and sof, as cida data prepare-nsrr
    makes them. Without it the cohorts are simulated at first use."""

    expected: bool = False
    """Also tell the accuracy to expect on the target, without its labels; every run is then
    trained a second time."""

    device: str = "cpu"
    """Where to train: cpu or cuda."""

    precision: str = "float32"
    """What the encoder computes in while it is trained: float32 or bf16."""

    compile: bool = False
    """Lets torch compile the encoder for the training."""

    figures: bool = True
    """Draws the figures as PNG and SVG too, for which matplotlib is needed."""

    json: bool = False
    """Print one JSON object for programs; whatever else is said goes to stderr."""

    def run(self, console: Console) -> int:
        """Makes the runs, prints the table, writes the files and prints the report's path last."""
        self._check()
        with exclusive_lock(self._folder, self._folder / ".lock"):
            return self._run(console)

    def _run(self, console: Console) -> int:
        self._prepare_data(console)
        jobs = self._jobs()
        try:
            job_results = self._run_jobs(jobs, console)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"interrupted; finished runs are kept in {self._folder}, --resume goes on."
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
                "reproduce", failed=failures, **(folder_contents(self._folder) if completed else {})
            )
        return 1 if failed else 0

    @property
    def _folder(self) -> Path:
        suffix = "" if self.protocol is None else f"-{self.protocol}"
        return self.out or Path("runs") / f"{self.name}-{self.preset}{suffix}"

    @property
    def folder(self) -> Path:
        """Where runs are made."""
        return self._folder

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
            self._folder,
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
        for dataset in {t.download.name: t.download for t in self._tasks if t.download}.values():
            fetch_dataset(dataset, console)
        if self._experiment.prepare is None:
            return
        with runs_bar(console) as bar:
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
                self._folder / benchmark.task_name / f"{name}-seed{seed}",
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
        with runs_bar(console) as bar:
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
