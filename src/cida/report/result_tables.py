"""Tables of results, the same in the terminal, in Markdown and in the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean, stdev
from typing import Any

from cida.methods import REFERENCE_METHOD
from cida.runs.records import PublishedScore, RunResult
from cida.runs.result_table import Cell, CellValue, ResultTable, RowRole, TableRow, percent

__all__ = [
    "ResultLine",
    "build_result_lines",
    "build_table",
    "summarize_results",
]


@dataclass(frozen=True)
class ResultLine:
    """One method over its seeds; accuracies are fractions."""

    title: str
    source_score: float
    gain: float | None
    seconds: float
    summary: Mapping[str, Any]
    published_score: PublishedScore | None = None
    interval_accuracies: Mapping[str, float] = field(default_factory=dict)

    @property
    def target_score(self) -> float:
        """The mean accuracy over target rows."""
        value: float = self.summary["target_score_mean"]
        return value

    @property
    def n_seeds(self) -> int:
        """How many seeds it was run with."""
        count: int = self.summary["seeds"]
        return count

    def cells(self) -> dict[str, CellValue]:
        """The cells by the names of their columns, scores in per cent."""
        has_fresh_scores = "fresh_target_score_mean" in self.summary
        return {
            "method": self.title,
            "source": percent(self.source_score),
            **{name: percent(score) for name, score in self.interval_accuracies.items()},
            "target": percent(self.target_score),
            **(self._spread_cells("target_score") if self.n_seeds > 1 else {}),
            "gain": percent(self.gain, "+"),
            **(self._fresh_cells() if has_fresh_scores else {}),
            **({"record": self._published_cell()} if has_fresh_scores else {}),
            "seconds": Cell(self.seconds, ".0f"),
        }

    def _published_cell(self) -> Cell:
        score = self.published_score
        if score is None:
            return Cell()
        return replace(percent(score.accuracy), note=f" ({score.scored_domains})")

    def _spread_cells(self, name: str, prefix: str = "") -> dict[str, CellValue]:
        return {
            f"{prefix}std": percent(self.summary[f"{name}_std"]),
            f"{prefix}worst seed": percent(self.summary[f"{name}_worst"]),
        }

    def _fresh_cells(self) -> dict[str, CellValue]:
        """All domains, and fresh points."""
        spread = self._spread_cells("fresh_target_score", "fresh ") if self.n_seeds > 1 else {}
        return {
            "all": percent(self.summary["all_score_mean"]),
            "fresh": percent(self.summary["fresh_target_score_mean"]),
            **spread,
            "fresh all": percent(self.summary["fresh_all_score_mean"]),
        }


def build_result_lines(
    results: Sequence[RunResult],
    titles: Mapping[str, str],
    published_scores: Mapping[str, PublishedScore] | None = None,
    by_index: bool = False,
) -> list[ResultLine]:
    """A line a method; the gain is over Source-Only, where that was run.

    ``by_index`` gives each interval of the target along u a column of its own.
    """
    summary = summarize_results(results)
    base = {line["method"]: line["target_score_mean"] for line in summary}.get(REFERENCE_METHOD)
    lines = []
    for line in summary:
        method_results = [row for row in results if row.method == line["method"]]
        has_no_gain = base is None or line["method"] == REFERENCE_METHOD
        lines.append(
            ResultLine(
                title=titles[line["method"]],
                source_score=mean(row.source_score for row in method_results),
                gain=None if has_no_gain else line["target_score_mean"] - base,
                seconds=mean(row.seconds for row in method_results),
                summary=line,
                published_score=(published_scores or {}).get(line["method"]),
                interval_accuracies=_interval_means(method_results) if by_index else {},
            )
        )
    return lines


def _interval_means(results: Sequence[RunResult]) -> dict[str, float]:
    """The mean over seeds in each interval of the target, by where it begins."""
    cells = zip(*(row.by_index[1:] for row in results), strict=True)
    return {f"{cell[0]['lo']:g}": mean(one["score"] for one in cell) for cell in cells}


def build_published_rows(lines: Sequence[ResultLine]) -> list[TableRow]:
    """The cells of the published table, for the methods that are in it and in ours."""
    rows = []
    for line in lines:
        if line.published_score is None or not line.published_score.by_index:
            continue
        source, *targets = map(percent, line.published_score.by_index)
        cells = {
            "method": Cell(f"paper: {line.title}"),
            "source": source,
            **dict(zip(line.interval_accuracies, targets, strict=True)),
            "target": percent(line.published_score.accuracy),
        }
        rows.append(TableRow(cells, "published"))
    return rows


def build_table(lines: Sequence[ResultLine], best_method: str | None = None) -> ResultTable:
    """A row for each method, ours first; every row has every column."""
    own = ResultTable.of([line.cells() for line in lines]).rows
    roles: list[RowRole] = [
        "best" if line.summary["method"] == best_method else "own" for line in lines
    ]
    marked = [TableRow(row.cells, role) for row, role in zip(own, roles, strict=True)]
    # A method of one seed among others of several has no spread.
    empty = dict.fromkeys(max(own, key=lambda row: len(row.cells)).cells, Cell())
    rows = (*marked, *build_published_rows(lines))
    return ResultTable(tuple(TableRow({**empty, **row.cells}, row.role) for row in rows))


def summarize_results(results: Iterable[RunResult]) -> list[dict[str, Any]]:
    """Mean, standard deviation and worst seed of each task's methods, in order of appearance."""
    results_by_method: dict[tuple[str, str], list[RunResult]] = {}
    for result in results:
        results_by_method.setdefault((result.task, result.method), []).append(result)
    lines = []
    for (task, method), method_results in results_by_method.items():
        fresh_scores = [row.fresh for row in method_results if row.fresh is not None]
        lines.append(
            {
                **({"task": task} if task else {}),
                "method": method,
                "seeds": len(method_results),
                **_score_statistics("target_score", [row.target_score for row in method_results]),
                **_score_statistics("all_score", [row.all_score for row in method_results]),
                **_score_statistics(
                    "fresh_target_score", [f["target_score"] for f in fresh_scores]
                ),
                **_score_statistics("fresh_all_score", [f["all_score"] for f in fresh_scores]),
            }
        )
    return lines


def _score_statistics(name: str, scores: Sequence[float]) -> dict[str, float]:
    if not scores:
        return {}
    return {
        f"{name}_mean": mean(scores),
        f"{name}_std": stdev(scores) if len(scores) > 1 else 0.0,
        f"{name}_worst": min(scores),
    }
