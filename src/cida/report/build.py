"""Runs put in order: chapters of an experiment, its tasks, their methods, and their seeds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from cida.certificate import Certificate
from cida.methods import REFERENCE_METHOD
from cida.report.runs import Run
from cida.report.theme import N_LINE_STYLES, read_static
from cida.runs.fitted_run import FittedRun
from cida.runs.records import ExperimentText, Manifest, RunResult, TaskRecord
from cida.runs.run_folder import RunFolder
from cida.runs.snapshot import Snapshot


@dataclass(frozen=True)
class MethodView:
    """The runs of one recipe, a seed each; ``key`` is its name among the methods of its task."""

    key: str
    title: str
    runs: tuple[Run, ...]
    style: str = "s0"

    @property
    def is_oracle(self) -> bool:
        """Whether it saw the target's labels."""
        return self.runs[0].record.is_oracle

    @property
    def results(self) -> list[RunResult]:
        """The figures of its runs, under its key."""
        return [replace(run.result, method=self.key) for run in self.runs if run.result is not None]

    @property
    def snapshots(self) -> list[Snapshot]:
        """What its runs show."""
        return [run.snapshot for run in self.runs if run.snapshot is not None]

    @property
    def fitted_runs(self) -> list[FittedRun]:
        """Its trainings as the doctor sees them."""
        return [run.fitted_run for run in self.runs if run.fitted_run is not None]

    @property
    def has_encoding(self) -> bool:
        """Whether one of its runs has an encoding to look at."""
        return any(view.z is not None for view in self.snapshots)

    @property
    def has_expected(self) -> bool:
        """Whether expected scores were kept with one of its runs."""
        return any(view.expected for view in self.snapshots)

    @property
    def target_score(self) -> float | None:
        """The mean accuracy on the target, where it was scored."""
        scores = [row.target_score for row in self.results]
        return sum(scores) / len(scores) if scores else None

    @property
    def target_score_text(self) -> str:
        """The same in words."""
        return "" if self.target_score is None else f"target {100 * self.target_score:.1f} %"


@dataclass(frozen=True)
class TaskView:
    """Runs on the same data: the methods that can be compared."""

    name: str
    title: str
    methods: tuple[MethodView, ...]
    record: TaskRecord | None = None

    @property
    def results(self) -> list[RunResult]:
        """The figures of all runs, with the task's name where it is one of several."""
        return [row for method in self.methods for row in method.results]

    @property
    def snapshot(self) -> Snapshot | None:
        """The first, for what all have in common: the index, its space, the classes."""
        return next((view for method in self.methods for view in method.snapshots), None)

    @property
    def is_regression(self) -> bool:
        """Whether numbers are predicted."""
        if self.results:
            return self.results[0].metric == "r2"
        return self.snapshot is not None and self.snapshot.classes is None

    @property
    def is_user_table(self) -> bool:
        """Whether its runs are of `cida fit`."""
        return self.methods[0].runs[0].is_user_table

    @property
    def best_method(self) -> MethodView | None:
        """The best on the target of those that saw no target label."""
        scored_methods = [m for m in self.methods if m.target_score is not None]
        return max(scored_methods, key=lambda m: (not m.is_oracle, m.target_score), default=None)

    @property
    def has_best_method(self) -> bool:
        """Whether there is a best method that is no oracle."""
        return self.best_method is not None and not self.best_method.is_oracle

    @property
    def main_method(self) -> MethodView:
        """The method to look at first: the best, or where none was scored the first that adapts."""
        adaptive_methods = (m for m in self.methods if m.runs[0].method != REFERENCE_METHOD)
        return self.best_method or next(adaptive_methods, self.methods[0])

    def main_key(self, keys: Iterable[str]) -> str:
        """Of the methods with these keys, the one to look at first."""
        return self.main_method.key if self.main_method.key in keys else next(iter(keys))

    def others_label(self, count: int) -> str:
        """What is folded away, beside the one to look at first."""
        noun = "run" if self.is_user_table else "method"
        return f"The other {noun}" if count == 1 else f"The other {count} {noun}s"


@dataclass(frozen=True)
class Chapter:
    """The runs of one experiment, preset and protocol, or those of users' own tables."""

    experiment: str
    preset: str
    protocol: str
    text: ExperimentText
    tasks: tuple[TaskView, ...]
    manifest: Manifest | None = None
    folder: Path | None = None

    @property
    def has_user_tables(self) -> bool:
        """Whether its runs are of `cida fit`."""
        return self.tasks[0].is_user_table

    @property
    def is_simulated(self) -> bool:
        """Whether its people exist in a computer alone."""
        return any(run.record.is_simulated for run in self.runs)

    @property
    def methods(self) -> list[MethodView]:
        return [method for task in self.tasks for method in task.methods]

    @property
    def runs(self) -> list[Run]:
        return [run for method in self.methods for run in method.runs]

    @property
    def has_single_task(self) -> bool:
        """Whether it is an experiment of one task, whose rows do not name it."""
        return len(self.tasks) == 1 and not any(row.task for row in self.tasks[0].results)

    @property
    def method_titles(self) -> dict[str, str]:
        """How tables call each method, in their order."""
        return {m.key: m.title for m in self.methods}

    @property
    def name(self) -> str:
        """What it is called among others."""
        return f"{self.text.title}{f', preset {self.preset}' if self.preset else ''}"


@dataclass(frozen=True)
class ReportView:
    """All chapters, and the certificates that were made for them, by the folder of the run."""

    chapters: Sequence[Chapter]
    certificates: Mapping[Path, Certificate] = field(default_factory=dict)

    def certificate(self, run: Run) -> Certificate | None:
        """The certificate that was kept with a fit, or that was made for the report."""
        fit = run.record.fit
        return self.certificates.get(run.folder) if fit is None else fit.certificate


def group_runs(runs: Iterable[Run]) -> list[Chapter]:
    """All runs in order; the same seed of the same recipe must not be there twice."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        experiment = "" if run.is_user_table else run.task.partition("/")[0]
        origin = run.record.origin
        groups.setdefault((experiment, origin.preset, origin.protocol), []).append(run)
    return [_chapter(*key, group) for key, group in groups.items()]


def _chapter(experiment: str, preset: str, protocol: str, runs: Sequence[Run]) -> Chapter:
    folders = {RunFolder(run.folder).manifest_folder for run in runs}  # of the experiment
    folder = folders.pop() if len(folders) == 1 else None
    manifest = Manifest.load(folder) if folder is not None else None
    text = manifest.text if manifest is not None else ExperimentText(experiment or "Runs")
    records = {task.name: task for task in manifest.tasks} if manifest is not None else {}
    by_task: dict[str, list[Run]] = {name: [] for name in records}
    for run in runs:
        by_task.setdefault(_user_task_key(run) if run.is_user_table else run.task, []).append(run)
    groups = {name: group for name, group in by_task.items() if group}
    if runs[0].is_user_table:
        text = ExperimentText(**json.loads(read_static("user_tables.json")))
        tasks = [_user_table_task(group, runs) for group in groups.values()]
    else:
        tasks = [_task(records.get(n) or TaskRecord(n, n), group) for n, group in groups.items()]
    if folder and manifest and not manifest.has_exactly_runs(folder, [r.folder for r in runs]):
        manifest = None
    return Chapter(experiment, preset, protocol, text, tuple(tasks), manifest, folder)


def _user_task_key(run: Run) -> str:
    """Runs of `cida fit` can be compared if file, label and index are the same."""
    fit = run.record.fit
    assert fit is not None
    return json.dumps([run.record.data, fit.data.label, fit.data.index_names])


def _user_table_task(runs: Sequence[Run], all_runs: Sequence[Run]) -> TaskView:
    """The runs of one table in the order given; of several each has the name of its folder."""
    fit = runs[0].record.fit
    assert fit is not None
    title = f"{fit.data.label} along {', '.join(fit.data.index_names)}"
    methods: list[MethodView] = []
    for run in runs:
        name = run.title
        if len(all_runs) > 1:
            name = f"{_distinguishing_path(run, all_runs)} ({name})"
        n_earlier = sum(method.runs[0].method == run.method for method in methods)
        methods.append(_method(run.method, n_earlier, name, (run,), len(methods)))
    return TaskView(title, title, tuple(methods))


def _task(record: TaskRecord, runs: Sequence[Run]) -> TaskView:
    """A method a recipe; recipes of one name that differ are told apart by their folders."""
    variants: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        settings = json.dumps(run.settings, sort_keys=True)
        variants.setdefault(run.method, {}).setdefault(settings, []).append(run)
    # Source-Only leads where no table says otherwise, and what is not in the table comes last.
    rank = {REFERENCE_METHOD: -1} | {name: place for place, name in enumerate(record.methods)}
    methods: list[MethodView] = []
    for name in sorted(variants, key=lambda name: rank.get(name, len(rank))):
        groups = [sorted(group, key=lambda run: run.seed) for group in variants[name].values()]
        for number, group in enumerate(groups):
            _check_seeds(group)
            title = group[0].title
            if len(groups) > 1:
                title = f"{title} ({_distinguishing_path(group[0], [g[0] for g in groups])})"
            methods.append(_method(name, number, title, tuple(group), len(methods)))
    return TaskView(record.name, record.title, tuple(methods), record)


def _method(
    name: str, n_earlier: int, title: str, runs: tuple[Run, ...], number: int
) -> MethodView:
    """With a key of its own; a colour of its own, and from the seventh on a dash as well."""
    key = f"{name} {n_earlier + 1}" if n_earlier else name
    place = number % N_LINE_STYLES
    dash = " other" if place >= N_LINE_STYLES // 2 else ""
    return MethodView(key, title, runs, f"s{place}{dash}")


def _distinguishing_path(run: Run, candidates: Sequence[Run]) -> str:
    """The last part of the run's path in which they differ, or as much of its end as they need."""
    paths = [one.folder.resolve().parts for one in candidates]
    parts = run.folder.resolve().parts
    for position in (-1, -2):
        if len({path[position] for path in paths}) == len(paths):
            return parts[position]
    ends = (n for n in range(2, len(parts)) if len({path[-n:] for path in paths}) == len(paths))
    return "/".join(parts[-next(ends, len(parts)) :])


def _check_seeds(runs: Sequence[Run]) -> None:
    for first, second in pairwise(runs):
        if first.seed == second.seed:
            raise ValueError(
                f"RUN has seed {first.seed} of {first.title} twice, in {first.folder} and "
                f"{second.folder}; leave one out."
            )
