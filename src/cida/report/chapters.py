"""Runs put in order: chapters of an experiment, its tasks, their methods, and their seeds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from cida.benchmarks.catalogue import BENCHMARKS, EXPERIMENTS
from cida.benchmarks.recipes import Benchmark
from cida.benchmarks.runner import Row
from cida.diagnostics.view import View
from cida.report.palette import STYLES
from cida.report.runs import Run
from cida.report.story import STORY, Story
from cida.report.words import OWN_TABLES, Words, words_of

__all__ = ["Chapter", "Method", "Task", "chapters_of"]


@dataclass(frozen=True)
class Method:
    """The runs of one recipe, a seed each; ``key`` is its name among the methods of its task."""

    key: str
    title: str
    runs: tuple[Run, ...]
    style: str = "s0"

    @property
    def oracle(self) -> bool:
        """Whether it saw the target's labels."""
        return self.runs[0].oracle

    @property
    def rows(self) -> list[Row]:
        """The figures of its runs, under its key."""
        return [replace(run.row, method=self.key) for run in self.runs if run.row is not None]

    @property
    def views(self) -> list[View]:
        """What its runs show."""
        return [run.view for run in self.runs if run.view is not None]

    @property
    def target(self) -> float | None:
        """The mean accuracy on the target, where it was scored."""
        scores = [row.target_accuracy for row in self.rows]
        return sum(scores) / len(scores) if scores else None


@dataclass(frozen=True)
class Task:
    """Runs on the same data: the methods that can be compared."""

    name: str
    title: str
    methods: tuple[Method, ...]
    benchmark: Benchmark | None = None

    @property
    def rows(self) -> list[Row]:
        """The figures of all runs, with the task's name where it is one of several."""
        return [row for method in self.methods for row in method.rows]

    @property
    def view(self) -> View | None:
        """The first, for what all have in common: the index, its space, the classes."""
        return next((view for method in self.methods for view in method.views), None)

    @property
    def regression(self) -> bool:
        """Whether numbers are predicted."""
        if self.benchmark is not None:
            return self.benchmark.regression
        return self.view is not None and self.view.classes is None

    @property
    def best(self) -> Method | None:
        """The best on the target of those that saw no target label."""
        known = [m for m in self.methods if m.target is not None]
        return max(known, key=lambda m: (not m.oracle, m.target), default=None)

    @property
    def main(self) -> Method:
        """The method to look at first: the best, or where none was scored the first that adapts."""
        adapts = (m for m in self.methods if m.runs[0].method != "source-only")
        return self.best or next(adapts, self.methods[0])

    def others(self, count: int) -> str:
        """What is folded away, beside the one to look at first."""
        what = "run" if self.methods[0].runs[0].own_table else "method"
        return f"The other {what}" if count == 1 else f"The other {count} {what}s"


@dataclass(frozen=True)
class Chapter:
    """The runs of one experiment, preset and protocol, or those of users' own tables."""

    experiment: str
    preset: str
    protocol: str
    words: Words
    tasks: tuple[Task, ...]
    story: Story | None = None
    folder: Path | None = None
    simulated: bool = False

    @property
    def own_tables(self) -> bool:
        """Whether its runs are of `cida fit`."""
        return self.tasks[0].methods[0].runs[0].own_table

    @property
    def runs(self) -> list[Run]:
        return [run for task in self.tasks for method in task.methods for run in method.runs]

    @property
    def single(self) -> bool:
        """Whether it is an experiment of one task, whose rows do not name it."""
        return len(self.tasks) == 1 and not any(row.task for row in self.tasks[0].rows)

    @property
    def titles(self) -> dict[str, str]:
        """How tables call each method, in their order."""
        return {m.key: m.title for task in self.tasks for m in task.methods}


def chapters_of(runs: Iterable[Run]) -> list[Chapter]:
    """All runs in order; the same seed of the same recipe must not be there twice."""
    alike: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        experiment = "" if run.own_table else run.benchmark.partition("/")[0]
        preset, protocol = (str(run.origin.get(name, "")) for name in ("preset", "protocol"))
        alike.setdefault((experiment, preset, protocol), []).append(run)
    return [_chapter(*key, mine) for key, mine in alike.items()]


def _chapter(experiment: str, preset: str, protocol: str, runs: Sequence[Run]) -> Chapter:
    own = runs[0].own_table
    by_task: dict[str, list[Run]] = {}
    for run in runs:
        by_task.setdefault(_own_task(run) if own else run.benchmark, []).append(run)
    order = [benchmark.name for benchmark in EXPERIMENTS.get(experiment, ())]
    names = sorted(by_task, key=lambda name: order.index(name) if name in order else len(order))
    tasks = tuple(
        _own_table(by_task[name], runs) if own else _task(name, by_task[name]) for name in names
    )
    folder = _story_folder(runs)
    told = Story.read(folder) if folder is not None else None
    whole = (
        told is not None and told.is_of(folder, [run.folder for run in runs]) if folder else False
    )
    return Chapter(
        experiment,
        preset,
        protocol,
        OWN_TABLES if own else words_of(experiment),
        tasks,
        told if whole else None,
        folder,
        simulated=told.simulated if told is not None else _sleeps_in_a_computer(runs),
    )


def _story_folder(runs: Sequence[Run]) -> Path | None:
    """The folder of the experiment that all these runs are of."""
    places = {
        next((p for p in run.folder.resolve().parents[:2] if (p / STORY).is_file()), None)
        for run in runs
    }
    return places.pop() if len(places) == 1 else None


def _sleeps_in_a_computer(runs: Sequence[Run]) -> bool:
    """Sleep experiments without a folder of the user's own are of simulated people."""
    return any(r.benchmark.startswith("sleep-") and "--root" not in r.command for r in runs)


def _own_task(run: Run) -> str:
    """Runs of `cida fit` can be compared if file, label and index are the same."""
    table = run.words.get("table", {})
    return json.dumps([run.words.get("data"), table.get("label"), table.get("index")])


def _own_table(runs: Sequence[Run], every: Sequence[Run]) -> Task:
    """The runs of one table in the order given; of several each has the name of its folder."""
    table = runs[0].words.get("table", {})
    title = f"{table.get('label', '')} along {', '.join(table.get('index', ()))}"
    methods: list[Method] = []
    for run in runs:
        before = sum(method.runs[0].method == run.method for method in methods)
        key = run.method if before == 0 else f"{run.method} {before + 1}"
        name = f"{_place(run, every)} ({run.title})" if len(every) > 1 else run.title
        methods.append(Method(key, name, (run,), _style(len(methods))))
    return Task(title, title, tuple(methods))


def _task(name: str, runs: Sequence[Run]) -> Task:
    benchmark = BENCHMARKS.get(name)
    order = benchmark.methods if benchmark is not None else ()
    title = benchmark.title if benchmark is not None and benchmark.title else name
    return Task(name, title, _methods(runs, order), benchmark)


def _methods(runs: Sequence[Run], order: Sequence[str]) -> tuple[Method, ...]:
    """One a recipe; recipes of one name that differ are told apart by their folders."""
    variants: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        settings = json.dumps(run.settings, sort_keys=True)
        variants.setdefault(run.method, {}).setdefault(settings, []).append(run)
    # Source-Only leads where no table says otherwise, and what is not in the table comes last.
    first = {"source-only": -1}
    rank = first | {name: place for place, name in enumerate(order)}
    found: list[Method] = []
    for method in sorted(variants, key=lambda name: rank.get(name, len(rank))):
        several = list(variants[method].values())
        for number, mine in enumerate(several):
            mine.sort(key=lambda run: run.seed)
            _check_seeds(mine)
            title = mine[0].title
            if len(several) > 1:
                title = f"{title} ({_place(mine[0], [runs[0] for runs in several])})"
            key = method if number == 0 else f"{method} {number + 1}"
            found.append(Method(key, title, tuple(mine), _style(len(found))))
    return tuple(found)


def _style(number: int) -> str:
    """A colour of its own, and from the seventh on a dash as well."""
    return f"s{number % STYLES}" + (" other" if number % STYLES >= STYLES // 2 else "")


def _place(run: Run, several: Sequence[Run]) -> str:
    """The last part of the run's path in which they differ, or as much of its end as they need."""
    paths = [one.folder.resolve().parts for one in several]
    mine = run.folder.resolve().parts
    for place in (-1, -2):
        if len({path[place] for path in paths}) == len(paths):
            return mine[place]
    ends = (n for n in range(2, len(mine)) if len({path[-n:] for path in paths}) == len(paths))
    return "/".join(mine[-next(ends, len(mine)) :])


def _check_seeds(runs: Sequence[Run]) -> None:
    for one, other in pairwise(runs):
        if one.seed == other.seed:
            raise ValueError(
                f"RUN has seed {one.seed} of {one.title} twice, in {one.folder} and "
                f"{other.folder}; leave one out."
            )
