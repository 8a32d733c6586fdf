"""What ``cida reproduce`` leaves behind: results, tables, figures and the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from cida.cli.report import REPORT_FILE, save_report
from cida.experiments.circle_sine.toy_tasks import ToyTaskData
from cida.experiments.jobs import JobResult
from cida.experiments.real_tables.table_tasks import TableTaskData
from cida.experiments.registry import TASK_SPECS
from cida.experiments.runner import load_completed_run, write_json, write_results
from cida.experiments.selection.model_bank import SelectionTaskData
from cida.experiments.selection.validator_ranking import rank_validators
from cida.experiments.sleep.sleep_data import SleepTaskData
from cida.experiments.worlds.synthetic_tasks import SyntheticTaskData
from cida.io.files import write_atomically
from cida.report import Manifest, read_runs
from cida.report.result_tables import build_result_lines, build_table, render_markdown
from cida.report.task_tables import (
    build_detail_table,
    build_paper_table,
    summarize_categorical_wins,
    transpose_table,
)
from cida.runs.records import RunResult, TableLine, TaskRecord

__all__ = ["Publisher", "rich_table"]

# What table.md and the report have room for, and a terminal has not.
WIDE_ONLY_COLUMNS = ("source", "gain", "fresh std", "fresh all", "record")
VALIDATOR_TABLE_TITLE = "Validators against the truth"
MIN_COLUMNS_FOR_INTERVALS = 112
MIN_COLUMNS_FOR_PAPER = 118
SUITE_DATA_TYPES = (
    SelectionTaskData | SleepTaskData | TableTaskData | SyntheticTaskData
)  # data of experiments of several tasks


@dataclass(frozen=True)
class Publisher:
    """Writes what runs of one experiment found into its folder."""

    experiment: str
    preset: str
    protocol: str
    command: str
    folder: Path
    with_figures: bool

    def publish(self, job_results: Sequence[JobResult], console: Console) -> None:
        """Writes all files, prints the table and, last, the path of the report."""
        run_results = [ended.result for ended in job_results if ended.result is not None]
        first_jobs = {
            ended.job.task_name: ended.job for ended in reversed(job_results)
        }  # the first of each
        data_by_task = {name: first_jobs[name].task_data for name in reversed(first_jobs)}
        suite_data = {
            name: one for name, one in data_by_task.items() if isinstance(one, SUITE_DATA_TYPES)
        }
        simulated = any(task_data.is_simulated for task_data in suite_data.values())
        protocol = (
            f"{self.protocol}: {TASK_SPECS[job_results[0].job.task_name].protocols[self.protocol]}"
        )
        results_path = self.folder / "results.json"
        write_results(
            results_path,
            self.experiment,
            self.preset,
            protocol,
            run_results,
            simulated,
            _metric_name(list(data_by_task)),
        )
        if suite_data:
            manifest = self._publish_suite(run_results, job_results, suite_data, console)
        else:
            (sample,) = data_by_task.values()
            manifest = self._publish_task(run_results, job_results, sample, console)
        folders = [ended.job.folder for ended in job_results]
        run_paths = [str(folder.relative_to(self.folder)) for folder in folders]
        replace(manifest, runs=run_paths, command=self.command, protocol=protocol).save(self.folder)
        save_report(read_runs(folders), self.folder / REPORT_FILE, console)
        console.print("The report, to open in a browser:")
        path = str((self.folder / REPORT_FILE).resolve())
        console.print(path, soft_wrap=True, highlight=False)

    def _publish_task(
        self,
        run_results: list[RunResult],
        job_results: Sequence[JobResult],
        task_data: Any,
        console: Console,
    ) -> Manifest:
        """An experiment of one task: a line a method."""
        benchmark = TASK_SPECS[job_results[0].job.task_name]
        is_toy = isinstance(task_data, ToyTaskData)
        lines = build_result_lines(
            run_results,
            _method_titles(job_results),
            benchmark.published_scores,
            by_index=not is_toy,
        )
        table_rows = build_table(lines)
        write_atomically(self.folder / "table.md", render_markdown(table_rows).encode())
        completed_runs = [
            load_completed_run(ended.job.folder, ended.job.recipe) for ended in job_results
        ]
        if isinstance(task_data, ToyTaskData):
            figures = self._draw_figures(
                "cida.experiments.circle_sine.toy_figures", task_data.data, completed_runs
            )
        else:
            figures = self._draw_figures(
                "cida.experiments.rotating_mnist.rotating_figures", task_data, completed_runs
            )
        is_narrow = console.width < MIN_COLUMNS_FOR_INTERVALS
        hidden_columns = (
            WIDE_ONLY_COLUMNS
            if is_toy
            else ("gain", "std", *(lines[0].interval_accuracies if is_narrow else ()))
        )
        title = f"{self.experiment}, {self.preset}, protocol {self.protocol}: accuracy %"
        console.print(rich_table(table_rows, title, hidden_columns))
        return Manifest(figures=figures)

    def _publish_suite(
        self,
        run_results: list[RunResult],
        job_results: Sequence[JobResult],
        data_by_task: dict[str, Any],
        console: Console,
    ) -> Manifest:
        """An experiment of several tasks: a line a task, as the paper has it."""
        benchmarks = [TASK_SPECS[name].record for name in data_by_task]
        titles = _method_titles(job_results)
        paper_rows = build_paper_table(run_results, benchmarks, titles)
        detail_rows = build_detail_table(run_results, benchmarks, titles)
        (module, methods_as_rows) = next(
            (s.figures_module, s.methods_as_rows) for s in data_by_task.values()
        )
        shown_rows = (
            transpose_table(paper_rows, with_paper=True, use_task_names=True)
            if methods_as_rows
            else paper_rows
        )
        sentences = [
            *_data_sentences(data_by_task, benchmarks),
            *summarize_categorical_wins(run_results, benchmarks, titles),
        ]
        validator_rows = self._rank_validators(job_results, benchmarks, sentences, console)
        bullet_list = "".join(f"- {sentence}\n" for sentence in sentences)
        tables = [shown_rows, *([validator_rows] if validator_rows else [])]
        text = "\n".join([*map(render_markdown, tables), bullet_list, render_markdown(detail_rows)])
        write_atomically(self.folder / "table.md", text.encode())
        figures = self._draw_figures(module, data_by_task, run_results)
        title = (
            f"{self.experiment}, {self.preset}: {_metric_name(list(data_by_task))} on the target, %"
        )
        with_paper = console.width >= MIN_COLUMNS_FOR_PAPER
        console.print(rich_table(transpose_table(paper_rows, with_paper), title))
        if with_paper and any(benchmark.published_scores for benchmark in benchmarks):
            console.print("In brackets the paper's, on real data.")
        legend = [f"({number}) {b.title}" for number, b in enumerate(benchmarks, 1)]
        for sentence in (*legend, *sentences):
            console.print(sentence, soft_wrap=True, markup=False, highlight=False)
        simulated = any(sample.is_simulated for sample in data_by_task.values())
        return Manifest(
            is_simulated=simulated,
            methods_as_rows=methods_as_rows,
            sentences=sentences,
            tables={VALIDATOR_TABLE_TITLE: validator_rows} if validator_rows else {},
            figures=figures,
        )

    def _rank_validators(
        self,
        job_results: Sequence[JobResult],
        benchmarks: Sequence[TaskRecord],
        sentences: list[str],
        console: Console,
    ) -> list[TableLine]:
        """What validators say of a bank of runs; other experiments have nothing to judge."""
        if not all(isinstance(ended.job.task_data, SelectionTaskData) for ended in job_results):
            return []
        ranking = rank_validators(job_results)
        write_json(self.folder / "selection.json", ranking.to_dict())
        titles = {benchmark.name: benchmark.title for benchmark in benchmarks}
        sentences += ranking.summary(titles)
        table = ranking.to_table(titles)
        is_narrow = console.width < MIN_COLUMNS_FOR_PAPER
        hidden_columns = tuple(titles.values()) if is_narrow else ()
        console.print(rich_table(table, VALIDATOR_TABLE_TITLE, hidden_columns))
        return table

    def _draw_figures(self, module: str, data: Any, results: Sequence[Any]) -> dict[str, str]:
        """The files of the figures, by title; matplotlib is only touched where it is asked for."""
        if not self.with_figures:
            return {}
        figures_module = import_module(module)
        svg_by_title: dict[str, str] = figures_module.draw_figures(data, results, self.folder)
        files = {path.read_text(encoding="utf-8"): path.name for path in self.folder.glob("*.svg")}
        return {title: files[text] for title, text in svg_by_title.items()}


def _metric_name(names: Sequence[str]) -> str:
    """What the fields named accuracy hold; a regression's R2 is named."""
    regressions = [name for name in names if TASK_SPECS[name].regression]
    if not regressions:
        return "accuracy"
    return "r2" if len(regressions) == len(names) else f"accuracy, r2 of {' '.join(regressions)}"


def _method_titles(job_results: Sequence[JobResult]) -> dict[str, str]:
    return {ended.job.method: ended.job.recipe.title for ended in job_results}


def _data_sentences(data_by_task: dict[str, Any], benchmarks: Sequence[TaskRecord]) -> list[str]:
    """A sentence on the rows of each task."""
    sentences = []
    if any(sample.is_simulated for sample in data_by_task.values()):
        sentences.append("Simulated: nobody was recorded; the paper's numbers are of real people.")
    return [*sentences, *(data_by_task[b.name].summary(b.title) for b in benchmarks)]


def rich_table(rows: Sequence[TableLine], title: str, hidden_columns: Sequence[str] = ()) -> Table:
    """The table for the terminal."""
    shown_rows = [
        {name: c for name, c in line.items() if name not in hidden_columns} for line in rows
    ]
    table = Table(title=title)
    for number, name in enumerate(shown_rows[0]):
        table.add_column(name, justify="right" if number else "left", no_wrap=not number)
    for line in shown_rows:
        table.add_row(*(cell.replace("**", "") for cell in line.values()))
    return table
