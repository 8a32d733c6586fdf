"""What ``cida reproduce`` leaves behind: results, tables, figures and the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from cida.benchmarks.catalogue import BENCHMARKS
from cida.benchmarks.grid import Done
from cida.benchmarks.judging import judge
from cida.benchmarks.recipes import Benchmark
from cida.benchmarks.runner import Row, read_outcome, write_json, write_results
from cida.benchmarks.selection import BankRows
from cida.benchmarks.sleep import Nights
from cida.benchmarks.suites import detail_table, paper_table, turned, verdicts
from cida.benchmarks.tables import Cells, cells, markdown, result_lines
from cida.benchmarks.tabular import TableRows
from cida.benchmarks.toys import Points
from cida.benchmarks.worlds import WorldPoints
from cida.cli.report import REPORT, leave_report
from cida.files import write_atomically
from cida.report import Story, read_runs

__all__ = ["Publisher", "rich_table"]

# What table.md and the report have room for, and a terminal has not.
WIDE = ("source", "gain", "fresh std", "fresh all", "record")
JUDGED = "Validators against the truth"
ROOM_FOR_INTERVALS = 112
ROOM_FOR_PAPER = 118
SUITES = BankRows | Nights | TableRows | WorldPoints  # data of experiments of several tasks


@dataclass(frozen=True)
class Publisher:
    """Writes what runs of one experiment found into its folder."""

    experiment: str
    preset: str
    protocol: str
    command: str
    folder: Path
    figures: bool

    def publish(self, done: Sequence[Done], console: Console) -> None:
        """Writes all files, prints the table and, last, the path of the report."""
        rows = [ended.row for ended in done if ended.row is not None]
        tasks = {ended.task.benchmark: ended.task for ended in reversed(done)}  # the first of each
        samples = {name: tasks[name].sample for name in reversed(tasks)}
        suite = {name: one for name, one in samples.items() if isinstance(one, SUITES)}
        simulated = any(sample.simulated for sample in suite.values())
        protocol = f"{self.protocol}: {BENCHMARKS[done[0].task.benchmark].protocols[self.protocol]}"
        results = self.folder / "results.json"
        write_results(
            results, self.experiment, self.preset, protocol, rows, simulated, _metric(list(samples))
        )
        if suite:
            story = self._suite(rows, done, suite, console)
        else:
            (sample,) = samples.values()
            story = self._one(rows, done, sample, console)
        folders = [ended.task.folder for ended in done]
        places = [str(folder.relative_to(self.folder)) for folder in folders]
        replace(story, runs=places, command=self.command, protocol=protocol).write(self.folder)
        leave_report(read_runs(folders), self.folder / REPORT, console)
        console.print("The report, to open in a browser:")
        path = str((self.folder / REPORT).resolve())
        console.print(path, soft_wrap=True, highlight=False)

    def _one(self, rows: list[Row], done: Sequence[Done], sample: Any, console: Console) -> Story:
        """An experiment of one task: a line a method."""
        benchmark = BENCHMARKS[done[0].task.benchmark]
        toy = isinstance(sample, Points)
        lines = result_lines(rows, _titles(done), benchmark.records, by_index=not toy)
        found = cells(lines)
        write_atomically(self.folder / "table.md", markdown(found).encode())
        outcomes = [read_outcome(ended.task.folder, ended.task.recipe) for ended in done]
        if isinstance(sample, Points):
            pictures = self._draw("figures", sample.world, outcomes)
        else:
            pictures = self._draw("rotating_figures", sample, outcomes)
        narrow = console.width < ROOM_FOR_INTERVALS
        without = WIDE if toy else ("gain", "std", *(lines[0].intervals if narrow else ()))
        title = f"{self.experiment}, {self.preset}, protocol {self.protocol}: accuracy %"
        console.print(rich_table(found, title, without))
        return Story(pictures=pictures)

    def _suite(
        self,
        rows: list[Row],
        done: Sequence[Done],
        samples: dict[str, Any],
        console: Console,
    ) -> Story:
        """An experiment of several tasks: a line a task, as the paper has it."""
        benchmarks: list[Benchmark] = [BENCHMARKS[name] for name in samples]
        titles = _titles(done)
        table = paper_table(rows, benchmarks, titles)
        details = detail_table(rows, benchmarks, titles)
        (module, line_a_method) = next((s.figures, s.line_a_method) for s in samples.values())
        shown = turned(table, with_paper=True, named=True) if line_a_method else table
        words = [*_about(samples, benchmarks), *verdicts(rows, benchmarks, titles)]
        judged = self._judge(done, benchmarks, words, console)
        told = "".join(f"- {sentence}\n" for sentence in words)
        tables = [shown, *([judged] if judged else [])]
        text = "\n".join([*map(markdown, tables), told, markdown(details)])
        write_atomically(self.folder / "table.md", text.encode())
        pictures = self._draw(module, samples, rows)
        title = f"{self.experiment}, {self.preset}: {_metric(list(samples))} on the target, %"
        with_paper = console.width >= ROOM_FOR_PAPER
        console.print(rich_table(turned(table, with_paper), title))
        if with_paper and any(benchmark.records for benchmark in benchmarks):
            console.print("In brackets the paper's, on real data.")
        legend = [f"({number}) {b.title}" for number, b in enumerate(benchmarks, 1)]
        for sentence in (*legend, *words):
            console.print(sentence, soft_wrap=True, markup=False, highlight=False)
        simulated = any(sample.simulated for sample in samples.values())
        return Story(
            simulated=simulated,
            line_a_method=line_a_method,
            sentences=words,
            tables={JUDGED: judged} if judged else {},
            pictures=pictures,
        )

    def _judge(
        self,
        done: Sequence[Done],
        benchmarks: Sequence[Benchmark],
        words: list[str],
        console: Console,
    ) -> list[Cells]:
        """What validators say of a bank of runs; other experiments have nothing to judge."""
        if not all(isinstance(ended.task.sample, BankRows) for ended in done):
            return []
        verdict = judge(done)
        write_json(self.folder / "selection.json", verdict.words())
        titles = {benchmark.name: benchmark.title for benchmark in benchmarks}
        words += verdict.sentences(titles)
        table = verdict.table(titles)
        narrow = console.width < ROOM_FOR_PAPER
        without = tuple(titles.values()) if narrow else ()
        console.print(rich_table(table, JUDGED, without))
        return table

    def _draw(self, module: str, data: Any, found: Sequence[Any]) -> dict[str, str]:
        """The files of the figures, by title; matplotlib is only touched where it is asked for."""
        if not self.figures:
            return {}
        drawing = import_module(f"cida.benchmarks.{module}")
        pictures: dict[str, str] = drawing.draw_figures(data, found, self.folder)
        files = {path.read_text(encoding="utf-8"): path.name for path in self.folder.glob("*.svg")}
        return {title: files[text] for title, text in pictures.items()}


def _metric(names: Sequence[str]) -> str:
    """What the fields named accuracy hold; a regression's R2 is named."""
    regressions = [name for name in names if BENCHMARKS[name].regression]
    if not regressions:
        return "accuracy"
    return "r2" if len(regressions) == len(names) else f"accuracy, r2 of {' '.join(regressions)}"


def _titles(done: Sequence[Done]) -> dict[str, str]:
    return {ended.task.method: ended.task.recipe.title for ended in done}


def _about(samples: dict[str, Any], benchmarks: Sequence[Benchmark]) -> list[str]:
    """A sentence on the rows of each task."""
    found = []
    if any(sample.simulated for sample in samples.values()):
        found.append("Simulated: nobody was recorded; the paper's numbers are of real people.")
    return [*found, *(samples[b.name].about(b.title) for b in benchmarks)]


def rich_table(found: Sequence[Cells], title: str, without: Sequence[str] = ()) -> Table:
    """The table for the terminal."""
    shown = [{name: c for name, c in line.items() if name not in without} for line in found]
    table = Table(title=title)
    for number, name in enumerate(shown[0]):
        table.add_column(name, justify="right" if number else "left", no_wrap=not number)
    for line in shown:
        table.add_row(*(cell.replace("**", "") for cell in line.values()))
    return table
