"""Many runs, several at a time, here or on a cluster: one process each, one thread each."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from cida.errors import CommandError
from cida.estimators import CidaWarning
from cida.experiments import runner
from cida.experiments.backends import iterate_results, stop_if_cancelled
from cida.experiments.registry import TASK_SPECS
from cida.experiments.spec import DEFAULT_COMPUTE, ComputeConfig, Recipe, TaskData, build_recipes
from cida.io.tensors import ModelFileError
from cida.runs.records import Origin, RunResult
from cida.runs.snapshot import SNAPSHOT_FILE, load_snapshot
from cida.threads import single_threaded
from cida.training import CheckpointWarning

SHARED_FOLDER_TIMEOUT_SECONDS = 30.0  # for a file of another machine to show up


@dataclass(frozen=True)
class Job:
    """One run to make: a method of a benchmark, in a preset, with a seed, into a folder."""

    task_name: str
    preset: str
    protocol: str
    method: str
    seed: int
    folder: Path
    steps: int | None = None
    data_root: Path | None = None
    with_expected_score: bool = False
    compute: ComputeConfig = DEFAULT_COMPUTE
    resume_options: runner.ResumeOptions = runner.NO_RESUME

    @property
    def label(self) -> str:
        """How it is called while it runs."""
        task = TASK_SPECS[self.task_name].task_name
        return f"{task}{', ' if task else ''}{self.method}, seed {self.seed}"

    @property
    def recipe(self) -> Recipe:
        recipe = build_recipes(TASK_SPECS[self.task_name], self.preset)[self.method]
        return recipe.with_settings(steps=self.steps, **self.compute.non_default_settings())

    @property
    def task_data(self) -> TaskData:
        """The data that this seed draws, from the user's own folder if there is one."""
        root_args = () if self.data_root is None else (self.data_root,)
        return TASK_SPECS[self.task_name].draw_data(self.seed, self.protocol, *root_args)

    def find_finished_result(self) -> RunResult | None:
        """What an earlier run of the very same task found, if it came to its end."""
        result = runner.load_finished_result(self.folder, self.recipe, self.task_data, self.seed)
        if not (self.with_expected_score and self.recipe.has_expected_score):
            return result
        try:  # what is to be expected has to be told, too
            return result if load_snapshot(self.folder / SNAPSHOT_FILE).expected else None
        except (OSError, ModelFileError):
            return None

    def run(self) -> RunResult:
        """Makes the run."""
        return runner.run_recipe(
            self.recipe,
            self.task_data,
            self.seed,
            self.folder,
            callbacks=[stop_if_cancelled],
            origin=self.origin,
            with_expected_score=self.with_expected_score and self.recipe.has_expected_score,
            resume_options=self.resume_options,
        ).result

    @property
    def origin(self) -> Origin:
        """What the run is of, and the command that makes it alone."""
        experiment, _, task = self.task_name.partition("/")
        command = runner.format_command(
            f"cida reproduce {experiment}",
            preset=self.preset,
            protocol=self.protocol,
            tasks=task or None,
            methods=self.method,
            seeds=1,
            first_seed=self.seed,
            steps=self.steps,
            root=self.data_root,
            expected=self.with_expected_score,
            **self.compute.non_default_settings(),
        )
        return Origin(self.task_name, self.preset, self.protocol, command)


@dataclass(frozen=True)
class JobResult:
    """What became of a task: its row, or the sentence it failed with."""

    job: Job
    result: RunResult | None
    failure: str = ""


def run_jobs(
    job_list: Sequence[Job],
    n_jobs: int | None,
    on_result: Callable[[JobResult], None],
    scheduler: str | None = None,
) -> list[JobResult]:
    """Makes all runs, ``jobs`` at a time; ``watch`` hears of each as it ends.

    They are made in processes of this machine or, if the address of a Dask ``scheduler`` is given,
    by the workers of its cluster: all of them if ``jobs`` is None. Each has one thread, here and
    there, so that the numbers depend on neither. A run that fails is told and the others go on.
    """
    if not job_list:
        return []
    # Who makes a run may work in another folder.
    original_jobs = {
        replace(j, folder=j.folder.absolute(), data_root=j.data_root and j.data_root.absolute()): j
        for j in job_list
    }
    results: dict[Job, JobResult] = {}
    with closing(iterate_results(_run_job, original_jobs, n_jobs, scheduler)) as job_results:
        for job_result in job_results:
            if scheduler is not None:
                _check_result_visible(job_result)
            task = original_jobs[job_result.job]
            results[task] = replace(job_result, job=task)
            on_result(results[task])
    return [results[task] for task in job_list]


def _check_result_visible(job_result: JobResult) -> None:
    """Refuses to go on if a run that ended on the cluster left nothing here."""
    if job_result.result is None:
        return
    job, deadline = job_result.job, time.monotonic() + SHARED_FOLDER_TIMEOUT_SECONDS
    # A shared folder may show new files late.
    while not runner.has_result(job.folder, job_result.result):
        if time.monotonic() > deadline:
            raise CommandError(
                f"{job.label} ended on the cluster, but is not in {job.folder} here; "
                "give --out a folder that workers see under the same path."
            )
        time.sleep(0.1)


def _run_job(job: Job) -> JobResult:
    with single_threaded(), warnings.catch_warnings():
        # Between many runs nobody could tell whose they are: the report names each with its run.
        warnings.simplefilter("ignore", CidaWarning)
        warnings.simplefilter("always", CheckpointWarning)  # which names its run by the folder
        try:
            return JobResult(job, job.run())
        except FloatingPointError as error:  # the game ran away: a result of its kind
            return JobResult(job, None, str(error))
