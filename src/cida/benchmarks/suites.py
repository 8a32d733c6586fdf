"""Tables of an experiment of several tasks: one line a task, as the paper prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from cida.benchmarks.recipes import Benchmark
from cida.benchmarks.runner import Row, summarise
from cida.benchmarks.tables import Cells

__all__ = ["PAPERS_LINE", "detail_table", "paper_table", "turned", "verdicts"]

PAPERS_LINE = "the paper, on real data"
CATEGORICAL = ("adda", "dann", "cdann", "mdd", "cua")


def paper_table(
    rows: Sequence[Row], benchmarks: Sequence[Benchmark], titles: Mapping[str, str]
) -> list[Cells]:
    """Target accuracy of each task and method, the best in bold, and the paper's line below."""
    found = []
    for benchmark in benchmarks:
        mine = _means(rows, benchmark.name)
        if not mine:
            continue
        best = max((score for method, score in mine.items() if method != "oracle"), default=0)
        line = {"task": benchmark.title}
        for method in titles:
            score = mine.get(method)
            words = "" if score is None else _percent(score)
            wins = score == best and method != "oracle"
            line[titles[method]] = f"**{words}**" if wins else words
        found.append(line)
        if benchmark.records:
            story = {m: _percent(record.accuracy) for m, record in benchmark.records.items()}
            found.append(
                {"task": PAPERS_LINE}
                | {title: story.get(method, "") for method, title in titles.items()}
            )
    return found


def turned(table: Sequence[Cells], with_paper: bool, named: bool = False) -> list[Cells]:
    """The same with a line a method and a numbered column a task, which a terminal has room for.

    With the paper's number behind ours, in brackets; ``named`` gives columns the tasks' names.
    """
    numbers = [number for number, line in enumerate(table) if line["task"] != PAPERS_LINE]
    found = []
    for method in list(table[0])[1:]:
        line = {"method": method}
        for column, number in enumerate(numbers, 1):
            below = table[number + 1 : number + 2]
            known = below[0][method] if below and below[0]["task"] == PAPERS_LINE else ""
            paper = f" ({known})" if known and with_paper else ""
            line[table[number]["task"] if named else f"({column})"] = table[number][method] + paper
        found.append(line)
    return found


def detail_table(
    rows: Sequence[Row], benchmarks: Sequence[Benchmark], titles: Mapping[str, str]
) -> list[Cells]:
    """A line a task and method: spread over seeds, gain, share of the gap, kappa and recalls."""
    named = {benchmark.name: benchmark.title for benchmark in benchmarks}
    empty = {name: "" for row in rows for name in _further([row])}  # some have figures of their own
    found = []
    for line in summarise(rows):
        mine = [r for r in rows if (r.task, r.method) == (line["task"], line["method"])]
        means = _means(rows, line["task"])
        found.append(
            {
                "task": named[line["task"]],
                "method": titles[line["method"]],
                "seeds": str(line["seeds"]),
                "source": _percent(mean(row.source_accuracy for row in mine)),
                "target": _percent(line["target_accuracy_mean"]),
                "std": _percent(line["target_accuracy_std"]) if line["seeds"] > 1 else "",
                "worst seed": _percent(line["target_accuracy_worst"]),
                **_gap(line["method"], means),
                **empty,
                **_further(mine),
                "seconds": f"{mean(row.seconds for row in mine):.0f}",
            }
        )
    return found


def verdicts(
    rows: Sequence[Row], benchmarks: Sequence[Benchmark], titles: Mapping[str, str]
) -> list[str]:
    """A sentence for each task in which a categorical method has the best mean."""
    found = []
    for benchmark in benchmarks:
        means = {m: s for m, s in _means(rows, benchmark.name).items() if m != "oracle"}
        best = max(means, key=means.__getitem__, default="")
        if best in CATEGORICAL:
            words = f"the best is {titles[best]}, which takes domains for categories"
            found.append(f"{benchmark.title}: {words}.")
    return found


def _means(rows: Sequence[Row], task: str) -> dict[str, float]:
    """Each method's mean target accuracy in the task."""
    return {
        line["method"]: line["target_accuracy_mean"]
        for line in summarise(row for row in rows if row.task == task)
    }


def _gap(method: str, means: Mapping[str, float]) -> Cells:
    """The gain over Source-Only, and which share of the oracle's that is."""
    base, top = means.get("source-only"), means.get("oracle")
    if base is None or method == "source-only":
        return {"gain": "", "of the gap": ""}
    gain = means[method] - base
    known = top is not None and top > base
    share = f"{gain / (top - base):.0%}" if known and top is not None else ""
    return {"gain": f"{100 * gain:+.1f}", "of the gap": share}


def _further(rows: Sequence[Row]) -> Cells:
    """The mean of each figure that the rows have beside accuracy; shares by class in per cent."""
    known: list[dict[str, Any]] = [row.more for row in rows if row.more]
    found: Cells = {}
    for name, first in known[0].items() if known else ():
        if isinstance(first, dict):
            found |= {each: _percent(mean(one[name][each] for one in known)) for each in first}
        else:
            found[name] = _figure(mean(one[name] for one in known))
    return found


def _figure(number: float) -> str:
    """Two decimals, or one digit of what would vanish in them."""
    return f"{number:.2f}" if abs(number) >= 0.1 else f"{number:.1g}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
