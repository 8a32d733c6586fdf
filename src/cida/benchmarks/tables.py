"""Tables of results, the same in the terminal, in Markdown and in the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from cida.benchmarks.paper import Record
from cida.benchmarks.runner import Row, summarise

__all__ = ["Cells", "ResultLine", "cells", "markdown", "result_lines"]

Cells = dict[str, str]  # a line of a table, by column


@dataclass(frozen=True)
class ResultLine:
    """One method over its seeds; accuracies are fractions."""

    title: str
    source: float
    gain: float | None
    seconds: float
    summary: Mapping[str, Any]
    record: Record | None = None
    intervals: Mapping[str, float] = field(default_factory=dict)

    @property
    def target(self) -> float:
        """The mean accuracy over target rows."""
        value: float = self.summary["target_accuracy_mean"]
        return value

    @property
    def seeds(self) -> int:
        """How many seeds it was run with."""
        count: int = self.summary["seeds"]
        return count

    def words(self) -> dict[str, str]:
        """The cells by the names of their columns, accuracies in per cent."""
        fresh = "fresh_target_accuracy_mean" in self.summary
        return {
            "method": self.title,
            "source": f"{100 * self.source:.1f}",
            **{name: f"{100 * score:.1f}" for name, score in self.intervals.items()},
            "target": f"{100 * self.target:.1f}",
            **(self._spread("target_accuracy") if self.seeds > 1 else {}),
            "gain": "" if self.gain is None else f"{100 * self.gain:+.1f}",
            **(self._beyond() if fresh else {}),
            **(self._record_words() if fresh else {}),
            "seconds": f"{self.seconds:.0f}",
        }

    def _record_words(self) -> dict[str, str]:
        record = self.record
        return {
            "record": "" if record is None else f"{100 * record.accuracy:.1f} ({record.domains})"
        }

    def _spread(self, name: str, before: str = "") -> dict[str, str]:
        return {
            f"{before}std": f"{100 * self.summary[f'{name}_std']:.1f}",
            f"{before}worst seed": f"{100 * self.summary[f'{name}_worst']:.1f}",
        }

    def _beyond(self) -> dict[str, str]:
        """All domains, and fresh points."""
        several = self._spread("fresh_target_accuracy", "fresh ") if self.seeds > 1 else {}
        return {
            "all": f"{100 * self.summary['all_accuracy_mean']:.1f}",
            "fresh": f"{100 * self.summary['fresh_target_accuracy_mean']:.1f}",
            **several,
            "fresh all": f"{100 * self.summary['fresh_all_accuracy_mean']:.1f}",
        }


def result_lines(
    rows: Sequence[Row],
    titles: Mapping[str, str],
    records: Mapping[str, Record] | None = None,
    by_index: bool = False,
) -> list[ResultLine]:
    """A line a method; the gain is over Source-Only, where that was run.

    ``by_index`` gives each interval of the target along u a column of its own.
    """
    summary = summarise(rows)
    base = {line["method"]: line["target_accuracy_mean"] for line in summary}.get("source-only")
    lines = []
    for line in summary:
        mine = [row for row in rows if row.method == line["method"]]
        plain = base is None or line["method"] == "source-only"
        lines.append(
            ResultLine(
                title=titles[line["method"]],
                source=mean(row.source_accuracy for row in mine),
                gain=None if plain else line["target_accuracy_mean"] - base,
                seconds=mean(row.seconds for row in mine),
                summary=line,
                record=(records or {}).get(line["method"]),
                intervals=_intervals(mine) if by_index else {},
            )
        )
    return lines


def _intervals(rows: Sequence[Row]) -> dict[str, float]:
    """The mean over seeds in each interval of the target, by where it begins."""
    cells = zip(*(row.by_index[1:] for row in rows), strict=True)
    return {f"{cell[0]['lo']:g}": mean(one["accuracy"] for one in cell) for cell in cells}


def paper_lines(lines: Sequence[ResultLine]) -> list[Cells]:
    """The cells of the published table, for the methods that are in it and in ours."""
    found = []
    for line in lines:
        if line.record is None or not line.record.by_index:
            continue
        source, *targets = (f"{100 * score:.1f}" for score in line.record.by_index)
        found.append(
            {
                "method": f"paper: {line.title}",
                "source": source,
                **dict(zip(line.intervals, targets, strict=True)),
                "target": f"{100 * line.record.accuracy:.1f}",
            }
        )
    return found


def cells(lines: Sequence[ResultLine]) -> list[Cells]:
    """All cells of the table by column, ours first; every row has every column."""
    mine = [line.words() for line in lines]
    # A method of one seed among others of several has no spread.
    most = max(mine, key=lambda line: len(line))
    empty = dict.fromkeys(most, "")
    return [{**empty, **line} for line in (*mine, *paper_lines(lines))]


def markdown(found: Sequence[Cells]) -> str:
    """The table in Markdown."""
    rows = [list(found[0]), ["---"] * len(found[0]), *(list(line.values()) for line in found)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
