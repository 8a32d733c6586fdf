"""The headline: what each method came to, beside the published numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from cida.report.blocks import Section, render_details, render_list, render_note
from cida.report.build import Chapter, TaskView
from cida.report.result_tables import ResultLine, build_result_lines, build_table
from cida.report.runs import Run
from cida.report.sections.trust_section import find_dependence, format_mean_expected
from cida.report.tables import render_html
from cida.report.task_tables import build_detail_table, build_paper_table, transpose_table
from cida.runs.result_table import Cell, CellValue, ResultTable

__all__ = ["build_results_section", "render_best_method"]


def build_results_section(chapter: Chapter) -> Section:
    """The table of the chapter, and what its columns are."""
    if chapter.has_user_tables:
        return _build_user_tables_section(chapter)
    return (
        _build_task_section(chapter) if chapter.has_single_task else _build_suite_section(chapter)
    )


def render_best_method(task: TaskView) -> str:
    """Which method is the best on the target, as HTML."""
    best = task.best_method
    if best is None or best.target_score is None or best.is_oracle:
        return ""
    metric_name = "R²" if task.is_regression else "accuracy"
    return (
        f"Best on the target: <b>{escape(best.title)}</b>, {100 * best.target_score:.1f} %"
        f"{'' if metric_name == 'accuracy' else f' ({metric_name})'}."
    )


# --- an experiment of one task -------------------------------------------------------------------


def _build_task_section(chapter: Chapter) -> Section:
    (task,) = chapter.tasks
    records = task.record.published_scores if task.record is not None else {}
    results = task.results
    intervals = chapter.manifest is not None and chapter.manifest.by_interval
    lines = build_result_lines(results, chapter.method_titles, records, by_index=intervals)
    best = task.best_method.key if task.best_method is not None else None
    table = build_table(lines, best)
    n_seeds = max(line.n_seeds for line in lines)
    seeds = f"{n_seeds} seed{'s' if n_seeds > 1 else ''}"
    notes = (
        f"{seeds}; accuracy in %, gain in points of target accuracy over Source-Only. Target "
        "labels serve for scoring, and to train an oracle."
    )
    columns_note = chapter.text.columns_note if intervals or "fresh" in table.columns else ""
    html = render_html(table, f"{chapter.text.title}: accuracy in %") + render_note(notes)
    return Section(
        "Results",
        html + render_note(columns_note) + render_note(_published_sources(lines)),
        tables={"results": table},
    )


def _published_sources(lines: Sequence[ResultLine]) -> str:
    """Where the published numbers come from."""
    sources = [
        f"{line.title}: {line.published_score.source_note}"
        for line in lines
        if line.published_score is not None
    ]
    return f"{'; '.join(sources)}." if sources else ""


# --- several tasks -------------------------------------------------------------------------------


def _build_suite_section(chapter: Chapter) -> Section:
    benchmarks = [task.record for task in chapter.tasks if task.record is not None]
    results = [row for task in chapter.tasks for row in task.results]
    paper_rows = build_paper_table(results, benchmarks, chapter.method_titles)
    result_rows = (
        transpose_table(paper_rows, with_paper=True, use_task_names=True)
        if _has_method_rows(chapter)
        else paper_rows
    )
    details = build_detail_table(results, benchmarks, chapter.method_titles)
    caption = f"{chapter.text.title}: on the target, in %"
    html = render_html(result_rows, caption) + render_note(chapter.text.columns_note)
    tables: dict[str, ResultTable] = {"results": result_rows, "details": details}
    if chapter.manifest is not None:
        for name, extra in chapter.manifest.tables.items():
            html += render_html(extra, name)
        html += render_list(chapter.manifest.sentences, "soft")
    html += render_details("Every task and method", render_html(details, "Every task and method"))
    return Section("Results", html, tables=tables)


def _has_method_rows(chapter: Chapter) -> bool:
    """As the experiment has it, or as there is room: the paper prints a line a task."""
    if chapter.manifest is not None:
        return chapter.manifest.methods_as_rows
    is_published = any(task.record and task.record.published_scores for task in chapter.tasks)
    return not is_published and len(chapter.tasks) <= len(chapter.method_titles)


# --- users' own tables ---------------------------------------------------------------------------


def _build_user_tables_section(chapter: Chapter) -> Section:
    lines: list[dict[str, CellValue]] = []
    for task in chapter.tasks:
        for method in task.methods:
            run = method.runs[0]
            fit = run.record.fit
            assert fit is not None
            lines.append(
                {
                    "run" if len(chapter.runs) > 1 else "method": method.title,
                    **({"task": task.title} if len(chapter.tasks) > 1 else {}),
                    "seeds": fit.n_members,
                    "rows": Cell(fit.n_rows, ","),
                    "source rows": Cell(fit.n_source_rows, ","),
                    "held-out source": _score_cell(fit.scores),
                    "does z tell the index?": _VERDICTS[find_dependence(fit.certificate)],
                    "expected on the target": _expected_cell(run),
                }
            )
    table = ResultTable.of(lines)
    html = render_html(table, "Each run in a line") + render_note(chapter.text.columns_note)
    return Section("Results", html, tables={"results": table})


_VERDICTS = {True: "yes", False: "none found", None: "not known"}


def _score_cell(scores: Mapping[str, float]) -> Cell:
    if "accuracy" in scores:
        return Cell(100 * scores["accuracy"], ".1f", note=" %")
    text = f"error {scores['rmse']:.4g}" if "rmse" in scores else ""
    return Cell(f"{text}, R² {scores['r2']:.3f}" if "r2" in scores else text)


def _expected_cell(run: Run) -> Cell:
    cells = run.snapshot.expected if run.snapshot is not None else ()
    return Cell(display=format_mean_expected(cells) if cells else "not known")
