"""The headline: what each method came to, beside the published numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from cida.benchmarks.suites import detail_table, paper_table, turned
from cida.benchmarks.tables import Cells, ResultLine, cells, result_lines
from cida.report.chapters import Chapter, Task
from cida.report.parts import Part, folded, listed, soft, table
from cida.report.runs import Run
from cida.report.trust import FOUND, NONE, mean_expected

__all__ = ["best_words", "headline"]


def headline(chapter: Chapter) -> Part:
    """The table of the chapter, and what its columns are."""
    if chapter.own_tables:
        return _own_tables(chapter)
    return _one_task(chapter) if chapter.single else _suite(chapter)


def best_words(task: Task) -> str:
    """Which method is the best on the target, as HTML."""
    best = task.best
    if best is None or best.target is None or best.oracle:
        return ""
    what = "R²" if task.regression else "accuracy"
    return (
        f"Best on the target: <b>{escape(best.title)}</b>, {100 * best.target:.1f} %"
        f"{'' if what == 'accuracy' else f' ({what})'}."
    )


# --- an experiment of one task -------------------------------------------------------------------


def _one_task(chapter: Chapter) -> Part:
    (task,) = chapter.tasks
    records = task.benchmark.records if task.benchmark is not None else {}
    rows = task.rows
    intervals = chapter.experiment.startswith("rotating")
    lines = result_lines(rows, chapter.titles, records, by_index=intervals)
    found = cells(lines)
    best = task.best.title if task.best is not None else ""
    most = max(line.seeds for line in lines)
    seeds = f"{most} seed{'s' if most > 1 else ''}"
    notes = (
        f"{seeds}; accuracy in %, gain in points of target accuracy over Source-Only. Target "
        "labels serve for scoring, and to train an oracle."
    )
    more = chapter.words.columns if intervals or "fresh" in found[0] else ""
    html = table(found, f"{chapter.words.title}: accuracy in %", best) + soft(notes)
    return Part("Results", html + soft(more) + soft(_stories(lines)), tables={"results": found})


def _stories(lines: Sequence[ResultLine]) -> str:
    """Where the published numbers come from."""
    told = [f"{line.title}: {line.record.story}" for line in lines if line.record is not None]
    return f"{'; '.join(told)}." if told else ""


# --- several tasks -------------------------------------------------------------------------------


def _suite(chapter: Chapter) -> Part:
    benchmarks = [task.benchmark for task in chapter.tasks if task.benchmark is not None]
    named = {task.name: task for task in chapter.tasks}
    rows = [row for task in chapter.tasks for row in task.rows]
    known = {benchmark.name for benchmark in benchmarks}
    unknown = [name for name, task in named.items() if task.benchmark is None]
    unknown += [row.task for row in rows if row.task not in known]
    if unknown:
        raise ValueError(
            f"RUN has runs of the task {unknown[0]!r}, which this cida does not know; make the "
            "report with the version that made them."
        )
    found = paper_table(rows, benchmarks, chapter.titles)
    shown = turned(found, with_paper=True, named=True) if _line_a_method(chapter) else found
    details = detail_table(rows, benchmarks, chapter.titles)
    caption = f"{chapter.words.title}: on the target, in %"
    html = table(shown, caption) + soft(chapter.words.columns)
    tables: dict[str, Sequence[Cells]] = {"results": shown, "details": details}
    if chapter.story is not None:
        for name, extra in chapter.story.tables.items():
            html += table(extra, name)
        html += listed(chapter.story.sentences, "soft")
    html += folded("Every task and method", table(details, "Every task and method"))
    return Part("Results", html, tables=tables)


def _line_a_method(chapter: Chapter) -> bool:
    """As the experiment has it, or as there is room: the paper prints a line a task."""
    if chapter.story is not None:
        return chapter.story.line_a_method
    published = any(task.benchmark and task.benchmark.records for task in chapter.tasks)
    return not published and len(chapter.tasks) <= len(chapter.titles)


# --- users' own tables ---------------------------------------------------------------------------


def _own_tables(chapter: Chapter) -> Part:
    lines = []
    for task in chapter.tasks:
        for method in task.methods:
            run = method.runs[0]
            lines.append(
                {
                    "run" if len(chapter.runs) > 1 else "method": method.title,
                    **({"task": task.title} if len(chapter.tasks) > 1 else {}),
                    "seeds": str(run.words.get("seeds", "")),
                    "rows": _count(run.words.get("rows")),
                    "source rows": _count(run.words.get("source_rows")),
                    "held-out source": _held_out(run.words.get("figures")),
                    "does z tell the index?": _verdict(run),
                    "expected on the target": _expected(run),
                }
            )
    html = table(lines, "Each run in a line") + soft(chapter.words.columns)
    return Part("Results", html, tables={"results": lines})


def _count(number: Any) -> str:
    return f"{number:,}" if isinstance(number, int) else ""


def _held_out(figures: Any) -> str:
    scores: Mapping[str, float] = figures.get("scores", {}) if isinstance(figures, dict) else {}
    if "accuracy" in scores:
        return f"{100 * scores['accuracy']:.1f} %"
    words = f"error {scores['rmse']:.4g}" if "rmse" in scores else ""
    return f"{words}, R² {scores['r2']:.3f}" if "r2" in scores else words


def _verdict(run: Run) -> str:
    told = run.words.get("trust", {}).get("certificate", [])
    first = str(told[0]) if told else ""
    if first.startswith(FOUND):
        return "yes"
    return "none found" if first.startswith(NONE) else "not known"


def _expected(run: Run) -> str:
    cells = run.view.expected if run.view is not None else ()
    return mean_expected(cells) if cells else "not known"
