"""Tables of an experiment of several tasks: one line a task, as the paper prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from cida.methods import REFERENCE_METHOD, Role
from cida.report.result_tables import summarize_results
from cida.runs.records import RunResult, TableLine, TaskRecord

__all__ = [
    "PAPER_ROW_LABEL",
    "build_detail_table",
    "build_paper_table",
    "summarize_categorical_wins",
    "transpose_table",
]

PAPER_ROW_LABEL = "the paper, on real data"


def build_paper_table(
    results: Sequence[RunResult], tasks: Sequence[TaskRecord], titles: Mapping[str, str]
) -> list[TableLine]:
    """Target accuracy of each task and method, the best in bold, and the paper's line below."""
    table_lines = []
    for task in tasks:
        mean_by_method = _mean_by_method(results, task.name)
        if not mean_by_method:
            continue
        role_by_method = _role_by_method(results)
        oracles = {m for m, role in role_by_method.items() if role == Role.ORACLE}
        best = max((mean_by_method[m] for m in mean_by_method.keys() - oracles), default=0)
        line = {"task": task.title}
        for method in titles:
            score = mean_by_method.get(method)
            cell_text = "" if score is None else _format_percent(score)
            is_best = score == best and method not in oracles
            line[titles[method]] = f"**{cell_text}**" if is_best else cell_text
        table_lines.append(line)
        if task.published_scores:
            published_cells = {
                m: _format_percent(record.accuracy) for m, record in task.published_scores.items()
            }
            table_lines.append(
                {"task": PAPER_ROW_LABEL}
                | {title: published_cells.get(method, "") for method, title in titles.items()}
            )
    return table_lines


def transpose_table(
    table: Sequence[TableLine], with_paper: bool, use_task_names: bool = False
) -> list[TableLine]:
    """The same with a line a method and a numbered column a task, which a terminal has room for.

    With the paper's number behind ours, in brackets; ``named`` gives columns the tasks' names.
    """
    numbers = [number for number, line in enumerate(table) if line["task"] != PAPER_ROW_LABEL]
    table_lines = []
    for method in list(table[0])[1:]:
        line = {"method": method}
        for column, number in enumerate(numbers, 1):
            next_line = table[number + 1 : number + 2]
            paper_score = (
                next_line[0][method]
                if next_line and next_line[0]["task"] == PAPER_ROW_LABEL
                else ""
            )
            paper = f" ({paper_score})" if paper_score and with_paper else ""
            line[table[number]["task"] if use_task_names else f"({column})"] = (
                table[number][method] + paper
            )
        table_lines.append(line)
    return table_lines


def build_detail_table(
    results: Sequence[RunResult], tasks: Sequence[TaskRecord], titles: Mapping[str, str]
) -> list[TableLine]:
    """A line a task and method: spread over seeds, gain, share of the gap, kappa and recalls."""
    title_by_task = {task.name: task.title for task in tasks}
    empty = {
        name: "" for row in results for name in _extra_metric_cells([row])
    }  # some have figures of their own
    table_lines = []
    for line in summarize_results(results):
        method_results = [
            r for r in results if (r.task, r.method) == (line["task"], line["method"])
        ]
        means = _mean_by_method(results, line["task"])
        table_lines.append(
            {
                "task": title_by_task[line["task"]],
                "method": titles[line["method"]],
                "seeds": str(line["seeds"]),
                "source": _format_percent(mean(row.source_score for row in method_results)),
                "target": _format_percent(line["target_score_mean"]),
                "std": _format_percent(line["target_score_std"]) if line["seeds"] > 1 else "",
                "worst seed": _format_percent(line["target_score_worst"]),
                **_gain_cells(line["method"], means, _role_by_method(results)),
                **empty,
                **_extra_metric_cells(method_results),
                "seconds": f"{mean(row.seconds for row in method_results):.0f}",
            }
        )
    return table_lines


def summarize_categorical_wins(
    results: Sequence[RunResult], tasks: Sequence[TaskRecord], titles: Mapping[str, str]
) -> list[str]:
    """A sentence for each task in which a categorical method has the best mean."""
    sentences = []
    for task in tasks:
        role_by_method = _role_by_method(results)
        means = _mean_by_method(results, task.name)
        contenders = [m for m in means if role_by_method[m] != Role.ORACLE]
        best = max(contenders, key=means.__getitem__, default="")
        if role_by_method.get(best) == Role.CATEGORICAL:
            sentence = f"the best is {titles[best]}, which takes domains for categories"
            sentences.append(f"{task.title}: {sentence}.")
    return sentences


def _role_by_method(results: Sequence[RunResult]) -> dict[str, str]:
    return {row.method: row.role for row in results}


def _mean_by_method(results: Sequence[RunResult], task: str) -> dict[str, float]:
    """Each method's mean target accuracy in the task."""
    return {
        line["method"]: line["target_score_mean"]
        for line in summarize_results(row for row in results if row.task == task)
    }


def _gain_cells(
    method: str, means: Mapping[str, float], role_by_method: Mapping[str, str]
) -> TableLine:
    """The gain over Source-Only, and which share of the oracle's that is."""
    base = means.get(REFERENCE_METHOD)
    top = max((means[m] for m in means if role_by_method[m] == Role.ORACLE), default=None)
    if base is None or method == REFERENCE_METHOD:
        return {"gain": "", "of the gap": ""}
    gain = means[method] - base
    has_gap = top is not None and top > base
    share = f"{gain / (top - base):.0%}" if has_gap and top is not None else ""
    return {"gain": f"{100 * gain:+.1f}", "of the gap": share}


def _extra_metric_cells(results: Sequence[RunResult]) -> TableLine:
    """The mean of each figure that the rows have beside accuracy; shares by class in per cent."""
    metric_dicts: list[dict[str, Any]] = [row.extra_metrics for row in results if row.extra_metrics]
    line: TableLine = {}
    for name, first in metric_dicts[0].items() if metric_dicts else ():
        if isinstance(first, dict):
            line |= {
                each: _format_percent(mean(one[name][each] for one in metric_dicts))
                for each in first
            }
        else:
            line[name] = _format_number(mean(one[name] for one in metric_dicts))
    return line


def _format_number(number: float) -> str:
    """Two decimals, or one digit of what would vanish in them."""
    return f"{number:.2f}" if abs(number) >= 0.1 else f"{number:.1g}"


def _format_percent(share: float) -> str:
    return f"{100 * share:.1f}"
