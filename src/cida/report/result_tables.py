"""Tables of results, the same in the terminal, in Markdown and in the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev
from typing import Any

from cida.methods import REFERENCE_METHOD
from cida.runs.records import PublishedScore, RunResult
from cida.runs.result_table import Cell, CellValue, ResultTable, RowRole, TableRow, percent


@dataclass(frozen=True)
class ResultLine:
    """One method over its seeds; accuracies are fractions, ``gain`` is over Source-Only."""

    title: str
    results: Sequence[RunResult]
    summary: Mapping[str, Any]
    gain: float | None
    published_score: PublishedScore | None
    by_index: bool

    @property
    def source_score(self) -> float:
        """The mean accuracy over source rows."""
        return mean(row.source_score for row in self.results)

    @property
    def target_score(self) -> float:
        """The mean accuracy over target rows."""
        return mean(row.target_score for row in self.results)

    @property
    def seconds(self) -> float:
        """How long a training took."""
        return mean(row.seconds for row in self.results)

    @property
    def n_seeds(self) -> int:
        """How many seeds it was run with."""
        return len(self.results)

    @property
    def interval_accuracies(self) -> dict[str, float]:
        """The mean over seeds in each interval of the target, by where it begins."""
        results = self.results if self.by_index else ()
        cells = zip(*(row.by_index[1:] for row in results), strict=True)
        return {f"{cell[0]['lo']:g}": mean(one["score"] for one in cell) for cell in cells}

    def cells(self) -> dict[str, CellValue]:
        """The cells by the names of their columns, scores in per cent."""
        cells: dict[str, CellValue] = {"method": self.title, "source": percent(self.source_score)}
        cells |= {name: percent(score) for name, score in self.interval_accuracies.items()}
        cells["target"] = percent(self.target_score)
        cells |= self._spread_cells("target_score", "")
        cells["gain"] = percent(self.gain, "+")
        if "fresh_target_score_mean" in self.summary:
            cells["all"] = percent(self.summary["all_score_mean"])
            cells["fresh"] = percent(self.summary["fresh_target_score_mean"])
            cells |= self._spread_cells("fresh_target_score", "fresh ")
            cells["fresh all"] = percent(self.summary["fresh_all_score_mean"])
            cells["record"] = Cell()
            if self.published_score is not None:
                note = f" ({self.published_score.scored_domains})"
                cells["record"] = replace(percent(self.published_score.accuracy), note=note)
        cells["seconds"] = Cell(self.seconds, ".0f")
        return cells

    def _spread_cells(self, name: str, prefix: str) -> dict[str, CellValue]:
        if self.n_seeds == 1:
            return {}
        names = {"std": f"{name}_std", "worst seed": f"{name}_worst"}
        return {f"{prefix}{column}": percent(self.summary[key]) for column, key in names.items()}


def build_result_lines(
    results: Sequence[RunResult],
    titles: Mapping[str, str],
    published_scores: Mapping[str, PublishedScore] | None = None,
    by_index: bool = False,
) -> list[ResultLine]:
    """A line a method; the gain is over Source-Only, where that was run.

    ``by_index`` gives each interval of the target along u a column of its own.
    """
    summaries = {line["method"]: line for line in summarize_results(results)}
    base = summaries.get(REFERENCE_METHOD, {}).get("target_score_mean")
    lines = []
    for method, summary in summaries.items():
        has_gain = base is not None and method != REFERENCE_METHOD
        gain = summary["target_score_mean"] - base if has_gain else None
        own = [row for row in results if row.method == method]
        published = (published_scores or {}).get(method)
        lines.append(ResultLine(titles[method], own, summary, gain, published, by_index))
    return lines


def build_table(lines: Sequence[ResultLine], best_method: str | None = None) -> ResultTable:
    """A row for each method, ours first, then those of the paper; every row has every column."""
    own = ResultTable.of(line.cells() for line in lines).rows
    # A method of one seed among others of several has no spread.
    empty = dict.fromkeys(max(own, key=lambda row: len(row.cells)).cells, Cell())
    rows: list[TableRow] = []
    for line, row in zip(lines, own, strict=True):
        role: RowRole = "best" if line.summary["method"] == best_method else "own"
        rows.append(TableRow({**empty, **row.cells}, role))
    rows += [
        TableRow({**empty, **_published_cells(line, line.published_score)}, "published")
        for line in lines
        if line.published_score is not None and line.published_score.by_index
    ]
    return ResultTable(tuple(rows))


def _published_cells(line: ResultLine, published: PublishedScore) -> dict[str, Cell]:
    source, *targets = map(percent, published.by_index)
    cells = {"method": Cell(f"paper: {line.title}"), "source": source}
    cells |= zip(line.interval_accuracies, targets, strict=True)
    return cells | {"target": percent(published.accuracy)}


def summarize_results(results: Iterable[RunResult]) -> list[dict[str, Any]]:
    """Mean, standard deviation and worst seed of each task's methods, in order of appearance."""
    groups: dict[tuple[str, str], list[RunResult]] = {}
    for result in results:
        groups.setdefault((result.task, result.method), []).append(result)
    lines: list[dict[str, Any]] = []
    for (task, method), group in groups.items():
        fresh = [row.fresh for row in group if row.fresh is not None]
        scores = {
            "target_score": [row.target_score for row in group],
            "all_score": [row.all_score for row in group],
            "fresh_target_score": [row["target_score"] for row in fresh],
            "fresh_all_score": [row["all_score"] for row in fresh],
        }
        line: dict[str, Any] = {"task": task} if task else {}
        line |= {"method": method, "seeds": len(group)}
        for name, values in scores.items():
            if values:
                line[f"{name}_mean"] = mean(values)
                line[f"{name}_std"] = stdev(values) if len(values) > 1 else 0.0
                line[f"{name}_worst"] = min(values)
        lines.append(line)
    return lines
