"""What ``cida reproduce`` leaves behind: results, tables, figures and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console

from cida.cli.console import print_lines
from cida.cli.report import REPORT_FILE, save_report
from cida.experiments.jobs import JobResult
from cida.experiments.registry import TASK_SPECS
from cida.experiments.runner import load_completed_run, write_json, write_results
from cida.experiments.spec import Analysis, Experiment, Layout, TaskSpec
from cida.io.files import write_atomically
from cida.report import Manifest, read_runs, task_tables
from cida.report.result_tables import build_result_lines, build_table
from cida.report.tables import render_markdown, render_terminal
from cida.runs.records import RunResult
from cida.runs.result_table import ResultTable

# What table.md and the report have room for, and a terminal has not.
WIDE_ONLY_COLUMNS = ("source", "gain", "fresh std", "fresh all", "record")
MIN_COLUMNS_FOR_INTERVALS = 112
MIN_COLUMNS_FOR_PAPER = 118


def publish_report(
    manifest: Manifest, run_folders: Sequence[Path], folder: Path, console: Console
) -> None:
    """Writes the manifest and the report of these runs, and prints the path of the report."""
    manifest.save(folder)
    save_report(read_runs(run_folders), folder / REPORT_FILE, console)
    where = str((folder / REPORT_FILE).resolve())
    print_lines(console, "The report, to open in a browser:", where)


@dataclass(frozen=True)
class Publisher:
    """Writes the results of an experiment's finished runs into its folder."""

    experiment: Experiment
    preset: str
    protocol: str
    command: str
    folder: Path
    with_figures: bool
    job_results: Sequence[JobResult]

    def publish(self, console: Console) -> None:
        """Writes all files, prints the table and, last, the path of the report."""
        protocol = f"{self.protocol}: {self._tasks[0].protocols[self.protocol]}"
        is_simulated = any(data.is_simulated for data in self._data_by_task.values())
        write_results(
            self.folder / "results.json",
            self._results,
            benchmark=self.experiment.name,
            preset=self.preset,
            protocol=protocol,
            is_simulated=is_simulated,
        )
        is_one_task = self.experiment.layout is Layout.ONE_TASK
        publish = self._publish_task if is_one_task else self._publish_suite
        folders = [ended.job.folder for ended in self.job_results]
        manifest = replace(
            publish(console),
            runs=[str(folder.relative_to(self.folder)) for folder in folders],
            command=self.command,
            protocol=protocol,
            experiment=self.experiment.name,
            text=self.experiment.text,
            tasks=tuple(task.record for task in self._tasks),
            is_simulated=is_simulated,
            methods_as_rows=self.experiment.layout is Layout.METHODS_AS_ROWS,
            by_interval=self.experiment.by_interval,
            figures=self._draw_figures(),
        )
        publish_report(manifest, folders, self.folder, console)

    @cached_property
    def _results(self) -> list[RunResult]:
        return [ended.result for ended in self.job_results if ended.result is not None]

    @cached_property
    def _data_by_task(self) -> Mapping[str, Any]:
        """The data of each task's first run."""
        first_jobs = {ended.job.task_name: ended.job for ended in reversed(self.job_results)}
        return {name: first_jobs[name].task_data for name in reversed(first_jobs)}

    @property
    def _tasks(self) -> list[TaskSpec]:
        return [TASK_SPECS[name] for name in self._data_by_task]

    @property
    def _titles(self) -> dict[str, str]:
        return {ended.job.method: ended.job.recipe.title for ended in self.job_results}

    def _publish_task(self, console: Console) -> Manifest:
        """An experiment of one task: a line for each method."""
        (task,) = self._tasks
        by_interval = self.experiment.by_interval
        lines = build_result_lines(self._results, self._titles, task.published_scores, by_interval)
        rows = build_table(lines)
        write_atomically(self.folder / "table.md", render_markdown(rows).encode())
        hidden_columns: Sequence[str] = WIDE_ONLY_COLUMNS
        if by_interval:
            is_narrow = console.width < MIN_COLUMNS_FOR_INTERVALS
            hidden_columns = ("gain", "std", *(lines[0].interval_accuracies if is_narrow else ()))
        title = f"{self.experiment.name}, {self.preset}, protocol {self.protocol}: accuracy %"
        console.print(render_terminal(rows, title, hidden_columns))
        return Manifest()

    def _publish_suite(self, console: Console) -> Manifest:
        """An experiment of several tasks: a line for each task, as the paper has it."""
        records = [task.record for task in self._tasks]
        paper_rows = task_tables.build_paper_table(self._results, records, self._titles)
        detail_rows = task_tables.build_detail_table(self._results, records, self._titles)
        shown_rows = paper_rows
        if self.experiment.layout is Layout.METHODS_AS_ROWS:
            shown_rows = task_tables.transpose_table(paper_rows, True, use_task_names=True)
        analyze = self.experiment.analyze
        analysis = Analysis() if analyze is None else analyze(self.job_results)
        data = self._data_by_task
        sentences = [task_data.summary(TASK_SPECS[n].title) for n, task_data in data.items()]
        if any(task_data.is_simulated for task_data in data.values()):
            notice = "Simulated: nobody was recorded; the paper's numbers are of real people."
            sentences.insert(0, notice)
        sentences += task_tables.summarize_categorical_wins(self._results, records, self._titles)
        sentences += analysis.sentences
        for name, content in analysis.files.items():
            write_json(self.folder / name, content)
        bullet_list = "".join(f"- {sentence}\n" for sentence in sentences)
        tables = [shown_rows, *analysis.tables.values()]
        text = "\n".join([*map(render_markdown, tables), bullet_list, render_markdown(detail_rows)])
        write_atomically(self.folder / "table.md", text.encode())
        self._print_suite(paper_rows, analysis, console)
        print_lines(console, *sentences)
        return Manifest(sentences=sentences, tables=analysis.tables)

    def _print_suite(self, paper_rows: ResultTable, analysis: Analysis, console: Console) -> None:
        is_wide = console.width >= MIN_COLUMNS_FOR_PAPER
        for name, rows in analysis.tables.items():
            console.print(render_terminal(rows, name, () if is_wide else analysis.wide_columns))
        metrics = ", ".join(dict.fromkeys(task.metric for task in self._tasks))
        title = f"{self.experiment.name}, {self.preset}: {metrics} on the target, %"
        console.print(render_terminal(task_tables.transpose_table(paper_rows, is_wide), title))
        if is_wide and any(task.published_scores for task in self._tasks):
            console.print("In brackets the paper's, on real data.")
        legend = [f"({number}) {task.title}" for number, task in enumerate(self._tasks, 1)]
        print_lines(console, *legend)

    def _draw_figures(self) -> dict[str, str]:
        """The files of the figures, by title; matplotlib is only imported to draw."""
        if not self.with_figures:
            return {}
        runs: Sequence[Any] = self._results
        if self.experiment.layout is Layout.ONE_TASK:  # whose figures show what models predict
            runs = [load_completed_run(e.job.folder, e.job.recipe) for e in self.job_results]
        draw_figures = import_module(self.experiment.figures_module).draw_figures
        figures: dict[str, str] = draw_figures(self._data_by_task, runs, self.folder)
        return figures
