"""The headline: what each method came to, beside the published numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cida.report.blocks import Html, Section
from cida.report.build import Chapter
from cida.report.result_tables import build_result_lines, build_table
from cida.report.runs import Run
from cida.report.sections.trust_section import find_dependence, format_mean_expected
from cida.report.task_tables import build_detail_table, build_paper_table, transpose_table
from cida.runs.fit_record import FitFigures
from cida.runs.records import Manifest
from cida.runs.result_table import Cell, CellValue, ResultTable

VERDICTS = {True: "yes", False: "none found", None: "not known"}


def build_results_section(chapter: Chapter) -> Section:
    """The table of the chapter, and what its columns are."""
    if chapter.has_user_tables:
        return _build_user_tables_section(chapter)
    build_section = _build_task_section if chapter.has_single_task else _build_suite_section
    return build_section(chapter)


def _build_task_section(chapter: Chapter) -> Section:
    """An experiment of one task."""
    (task,) = chapter.tasks
    published = task.record.published_scores if task.record is not None else {}
    by_interval = chapter.manifest is not None and chapter.manifest.by_interval
    lines = build_result_lines(task.results, chapter.method_titles, published, by_interval)
    table = build_table(lines, task.best_method.key if task.best_method is not None else None)
    has_note = by_interval or "fresh" in table.columns
    note = chapter.text.columns_note if has_note else ""
    notes = Html("task_notes", lines=lines, columns_note=note)
    return _section(table, f"{chapter.text.title}: accuracy in %", "", [notes])


def _section(table: ResultTable, caption: str, note: str, blocks: Sequence[Html] = ()) -> Section:
    headline = Html("captioned_table", rows=table, caption=caption, note=note)
    return Section("Results", [headline, *blocks], tables={"results": table})


def _build_suite_section(chapter: Chapter) -> Section:
    """An experiment of several tasks."""
    records = [task.record for task in chapter.tasks if task.record is not None]
    results = [row for task in chapter.tasks for row in task.results]
    table = build_paper_table(results, records, chapter.method_titles)
    if _has_method_rows(chapter):
        table = transpose_table(table, with_paper=True, use_task_names=True)
    details = build_detail_table(results, records, chapter.method_titles)
    manifest = chapter.manifest if chapter.manifest is not None else Manifest()
    suite = Html("suite", manifest=manifest, detail_table=details)
    caption = f"{chapter.text.title}: on the target, in %"
    section = _section(table, caption, chapter.text.columns_note, [suite])
    return replace(section, tables={"results": table, "details": details})


def _has_method_rows(chapter: Chapter) -> bool:
    """As the experiment has it, or as there is room: the paper prints a line a task."""
    if chapter.manifest is not None:
        return chapter.manifest.methods_as_rows
    is_published = any(task.record and task.record.published_scores for task in chapter.tasks)
    return not is_published and len(chapter.tasks) <= len(chapter.method_titles)


def _build_user_tables_section(chapter: Chapter) -> Section:
    """Users' own tables."""
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
                    "rows": Cell(fit.data.source.n_rows + fit.data.target.n_rows, ","),
                    "source rows": Cell(fit.data.source.n_rows, ","),
                    "source, as trained": _score_cell(fit.figures),
                    "does z tell the index?": VERDICTS[find_dependence(fit.certificate)],
                    "expected on the target": _expected_cell(run),
                }
            )
    return _section(ResultTable.of(lines), "Each run in a line", chapter.text.columns_note)


def _score_cell(figures: FitFigures) -> Cell:
    if figures.metric == "accuracy":
        return Cell(100 * figures.train_score, ".1f", note=" %")
    return Cell(f"error {figures.train_score:.4g}")


def _expected_cell(run: Run) -> Cell:
    cells = run.snapshot.expected if run.snapshot is not None else ()
    return Cell(display=format_mean_expected(cells) if cells else "not known")
