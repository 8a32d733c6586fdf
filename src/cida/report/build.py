"""Runs put in order: chapters of an experiment, its tasks, their methods, and their seeds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from cida.methods import REFERENCE_METHOD
from cida.report.notices import USER_TABLES_TEXT
from cida.report.runs import Run
from cida.report.theme import N_LINE_STYLES
from cida.runs.records import MANIFEST_FILE, ExperimentText, Manifest, RunResult, TaskRecord
from cida.runs.snapshot import Snapshot

__all__ = ["Chapter", "MethodView", "TaskView", "group_runs"]


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
        return self.runs[0].is_oracle

    @property
    def results(self) -> list[RunResult]:
        """The figures of its runs, under its key."""
        return [replace(run.result, method=self.key) for run in self.runs if run.result is not None]

    @property
    def snapshots(self) -> list[Snapshot]:
        """What its runs show."""
        return [run.snapshot for run in self.runs if run.snapshot is not None]

    @property
    def target_score(self) -> float | None:
        """The mean accuracy on the target, where it was scored."""
        scores = [row.target_score for row in self.results]
        return sum(scores) / len(scores) if scores else None


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
    def best_method(self) -> MethodView | None:
        """The best on the target of those that saw no target label."""
        scored_methods = [m for m in self.methods if m.target_score is not None]
        return max(scored_methods, key=lambda m: (not m.is_oracle, m.target_score), default=None)

    @property
    def main_method(self) -> MethodView:
        """The method to look at first: the best, or where none was scored the first that adapts."""
        adaptive_methods = (m for m in self.methods if m.runs[0].method != REFERENCE_METHOD)
        return self.best_method or next(adaptive_methods, self.methods[0])

    def others_label(self, count: int) -> str:
        """What is folded away, beside the one to look at first."""
        noun = "run" if self.methods[0].runs[0].is_user_table else "method"
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
    is_simulated: bool = False

    @property
    def has_user_tables(self) -> bool:
        """Whether its runs are of `cida fit`."""
        return self.tasks[0].methods[0].runs[0].is_user_table

    @property
    def runs(self) -> list[Run]:
        return [run for task in self.tasks for method in task.methods for run in method.runs]

    @property
    def has_single_task(self) -> bool:
        """Whether it is an experiment of one task, whose rows do not name it."""
        return len(self.tasks) == 1 and not any(row.task for row in self.tasks[0].results)

    @property
    def method_titles(self) -> dict[str, str]:
        """How tables call each method, in their order."""
        return {m.key: m.title for task in self.tasks for m in task.methods}


def group_runs(runs: Iterable[Run]) -> list[Chapter]:
    """All runs in order; the same seed of the same recipe must not be there twice."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        experiment = "" if run.is_user_table else run.task.partition("/")[0]
        origin = run.record.origin
        groups.setdefault((experiment, origin.preset, origin.protocol), []).append(run)
    return [_chapter(*key, mine) for key, mine in groups.items()]


def _chapter(experiment: str, preset: str, protocol: str, runs: Sequence[Run]) -> Chapter:
    is_user_table = runs[0].is_user_table
    by_task: dict[str, list[Run]] = {}
    for run in runs:
        by_task.setdefault(_user_task_key(run) if is_user_table else run.task, []).append(run)
    folder = _manifest_folder(runs)
    manifest = Manifest.load(folder) if folder is not None else None
    task_records = {task.name: task for task in manifest.tasks} if manifest is not None else {}
    order = list(task_records)
    names = sorted(by_task, key=lambda name: order.index(name) if name in order else len(order))
    tasks = tuple(
        _user_table_task(by_task[name], runs)
        if is_user_table
        else _task(task_records.get(name) or TaskRecord(name, name), by_task[name])
        for name in names
    )
    is_complete = (
        manifest is not None and manifest.has_exactly_runs(folder, [run.folder for run in runs])
        if folder
        else False
    )
    return Chapter(
        experiment,
        preset,
        protocol,
        _chapter_text(experiment, is_user_table, manifest),
        tasks,
        manifest if is_complete else None,
        folder,
        is_simulated=any(run.record.is_simulated for run in runs),
    )


def _chapter_text(
    experiment: str, is_user_table: bool, manifest: Manifest | None
) -> ExperimentText:
    if is_user_table:
        return USER_TABLES_TEXT
    return manifest.text if manifest is not None else ExperimentText(experiment or "Runs")


def _manifest_folder(runs: Sequence[Run]) -> Path | None:
    """The folder of the experiment that all these runs are of."""
    folders = {
        next((p for p in run.folder.resolve().parents[:2] if (p / MANIFEST_FILE).is_file()), None)
        for run in runs
    }
    return folders.pop() if len(folders) == 1 else None


def _user_task_key(run: Run) -> str:
    """Runs of `cida fit` can be compared if file, label and index are the same."""
    fit = run.record.fit
    assert fit is not None
    return json.dumps([run.record.data, fit.label, fit.index_names])


def _user_table_task(runs: Sequence[Run], all_runs: Sequence[Run]) -> TaskView:
    """The runs of one table in the order given; of several each has the name of its folder."""
    fit = runs[0].record.fit
    assert fit is not None
    title = f"{fit.label} along {', '.join(fit.index_names)}"
    methods: list[MethodView] = []
    for run in runs:
        n_earlier = sum(method.runs[0].method == run.method for method in methods)
        key = run.method if n_earlier == 0 else f"{run.method} {n_earlier + 1}"
        name = (
            f"{_distinguishing_path(run, all_runs)} ({run.title})"
            if len(all_runs) > 1
            else run.title
        )
        methods.append(MethodView(key, name, (run,), _style(len(methods))))
    return TaskView(title, title, tuple(methods))


def _task(record: TaskRecord, runs: Sequence[Run]) -> TaskView:
    return TaskView(record.name, record.title, _methods(runs, record.methods), record)


def _methods(runs: Sequence[Run], order: Sequence[str]) -> tuple[MethodView, ...]:
    """One a recipe; recipes of one name that differ are told apart by their folders."""
    variants: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        settings = json.dumps(run.settings, sort_keys=True)
        variants.setdefault(run.method, {}).setdefault(settings, []).append(run)
    # Source-Only leads where no table says otherwise, and what is not in the table comes last.
    first = {REFERENCE_METHOD: -1}
    rank = first | {name: place for place, name in enumerate(order)}
    methods: list[MethodView] = []
    for method in sorted(variants, key=lambda name: rank.get(name, len(rank))):
        recipe_groups = list(variants[method].values())
        for number, group in enumerate(recipe_groups):
            group.sort(key=lambda run: run.seed)
            _check_seeds(group)
            title = group[0].title
            if len(recipe_groups) > 1:
                title = (
                    f"{title} "
                    f"({_distinguishing_path(group[0], [runs[0] for runs in recipe_groups])})"
                )
            key = method if number == 0 else f"{method} {number + 1}"
            methods.append(MethodView(key, title, tuple(group), _style(len(methods))))
    return tuple(methods)


def _style(number: int) -> str:
    """A colour of its own, and from the seventh on a dash as well."""
    return f"s{number % N_LINE_STYLES}" + (
        " other" if number % N_LINE_STYLES >= N_LINE_STYLES // 2 else ""
    )


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
