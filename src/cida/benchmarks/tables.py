"""Tables of results, the same in the terminal and in the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from cida.benchmarks.runner import Row, summarise

__all__ = ["ResultLine", "result_lines"]


@dataclass(frozen=True)
class ResultLine:
    """One method over its seeds; accuracies are fractions."""

    title: str
    seeds: int
    source: float
    target: float
    deviation: float
    worst: float
    gain: float | None
    seconds: float

    def words(self) -> dict[str, str]:
        """The cells by the names of their columns, accuracies in per cent."""
        several = {
            "std": f"{100 * self.deviation:.1f}",
            "worst seed": f"{100 * self.worst:.1f}",
        }
        return {
            "method": self.title,
            "source": f"{100 * self.source:.1f}",
            "target": f"{100 * self.target:.1f}",
            **(several if self.seeds > 1 else {}),
            "gain": "" if self.gain is None else f"{100 * self.gain:+.1f}",
            "seconds": f"{self.seconds:.0f}",
        }


def result_lines(rows: Sequence[Row], titles: Mapping[str, str]) -> list[ResultLine]:
    """A line a method; the gain is over Source-Only, where that was run."""
    summary = summarise(rows)
    base = {line["method"]: line["target_accuracy_mean"] for line in summary}.get("source-only")
    lines = []
    for line in summary:
        mine = [row for row in rows if row.method == line["method"]]
        target = line["target_accuracy_mean"]
        plain = base is None or line["method"] == "source-only"
        lines.append(
            ResultLine(
                title=titles[line["method"]],
                seeds=line["seeds"],
                source=mean(row.source_accuracy for row in mine),
                target=target,
                deviation=line["target_accuracy_std"],
                worst=line["target_accuracy_worst"],
                gain=None if plain else target - base,
                seconds=mean(row.seconds for row in mine),
            )
        )
    return lines
