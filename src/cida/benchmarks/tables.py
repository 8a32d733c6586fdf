"""Tables of results, the same in the terminal, in Markdown and in the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from cida.benchmarks.paper import Record
from cida.benchmarks.runner import Row, summarise

__all__ = ["ResultLine", "markdown", "result_lines"]


@dataclass(frozen=True)
class ResultLine:
    """One method over its seeds; accuracies are fractions."""

    title: str
    source: float
    gain: float | None
    seconds: float
    summary: Mapping[str, Any]
    record: Record | None = None

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
            "target": f"{100 * self.target:.1f}",
            **(self._spread("target_accuracy") if self.seeds > 1 else {}),
            "gain": "" if self.gain is None else f"{100 * self.gain:+.1f}",
            **(self._beyond() if fresh else {}),
            "seconds": f"{self.seconds:.0f}",
        }

    def _spread(self, name: str, before: str = "") -> dict[str, str]:
        return {
            f"{before}std": f"{100 * self.summary[f'{name}_std']:.1f}",
            f"{before}worst seed": f"{100 * self.summary[f'{name}_worst']:.1f}",
        }

    def _beyond(self) -> dict[str, str]:
        """All domains, fresh points, and the public record."""
        several = self._spread("fresh_target_accuracy", "fresh ") if self.seeds > 1 else {}
        record = self.record
        return {
            "all": f"{100 * self.summary['all_accuracy_mean']:.1f}",
            "fresh": f"{100 * self.summary['fresh_target_accuracy_mean']:.1f}",
            **several,
            "fresh all": f"{100 * self.summary['fresh_all_accuracy_mean']:.1f}",
            "record": "" if record is None else f"{100 * record.accuracy:.1f} ({record.domains})",
        }


def result_lines(
    rows: Sequence[Row],
    titles: Mapping[str, str],
    records: Mapping[str, Record] | None = None,
) -> list[ResultLine]:
    """A line a method; the gain is over Source-Only, where that was run."""
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
            )
        )
    return lines


def markdown(lines: Sequence[ResultLine]) -> str:
    """The table in Markdown."""
    cells = [line.words() for line in lines]
    rows = [list(cells[0]), ["---"] * len(cells[0]), *(list(line.values()) for line in cells)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
