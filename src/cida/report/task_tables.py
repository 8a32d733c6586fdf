"""Tables of an experiment of several tasks: one line a task, as the paper prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import mean
from typing import Any

from cida.methods import REFERENCE_METHOD, Role
from cida.report.result_tables import summarize_results
from cida.runs.records import RunResult, TaskRecord
from cida.runs.result_table import Cell, CellValue, ResultTable, TableRow, percent

__all__ = [
    "build_detail_table",
    "build_paper_table",
    "summarize_categorical_wins",
    "transpose_table",
]

PAPER_ROW_LABEL = "the paper, on real data"


def build_paper_table(
    results: Sequence[RunResult], tasks: Sequence[TaskRecord], titles: Mapping[str, str]
) -> ResultTable:
    """Target score of each task and method, the best marked, and the paper's row below."""
    rows = []
    for task in tasks:
        mean_by_method = _mean_by_method(results, task.name)
        if not mean_by_method:
            continue
        role_by_method = _role_by_method(results)
        oracles = {m for m, role in role_by_method.items() if role == Role.ORACLE}
        best = max((mean_by_method[m] for m in mean_by_method.keys() - oracles), default=0)
        cells = {"task": Cell(task.title)}
        for method, title in titles.items():
            score = mean_by_method.get(method)
            cells[title] = percent(score, is_best=score == best and method not in oracles)
        rows.append(TableRow(cells))
        if task.published_scores:
            published = {m: percent(score.accuracy) for m, score in task.published_scores.items()}
            published_cells = {title: published.get(m, Cell()) for m, title in titles.items()}
            rows.append(
                TableRow({"task": Cell(PAPER_ROW_LABEL), **published_cells}, "published-below")
            )
    return ResultTable(tuple(rows))


def transpose_table(
    table: ResultTable, with_paper: bool, use_task_names: bool = False
) -> ResultTable:
    """The same with a row for each method and a numbered column for each task.

    With the paper's number behind ours, in brackets; ``use_task_names`` gives columns the tasks'
    names.
    """
    pairs: list[tuple[TableRow, TableRow | None]] = []
    for row in table.rows:
        if row.role == "published-below":
            pairs[-1] = (pairs[-1][0], row)
        else:
            pairs.append((row, None))
    rows = []
    for method in table.columns[1:]:
        cells = {"method": Cell(method)}
        for number, (own, published) in enumerate(pairs, 1):
            cell = own.cells[method]
            if with_paper and published is not None and published.cells[method].value is not None:
                cell = replace(cell, note=f" ({published.cells[method]})")
            cells[str(own.cells["task"]) if use_task_names else f"({number})"] = cell
        rows.append(TableRow(cells))
    return ResultTable(tuple(rows))


def build_detail_table(
    results: Sequence[RunResult], tasks: Sequence[TaskRecord], titles: Mapping[str, str]
) -> ResultTable:
    """A row for each task and method: spread over seeds, gain, share of the gap, recalls."""
    title_by_task = {task.name: task.title for task in tasks}
    # Some tasks have figures of their own.
    empty: dict[str, CellValue] = {n: None for row in results for n in _extra_metric_cells([row])}
    lines: list[dict[str, CellValue]] = []
    for line in summarize_results(results):
        method_results = [
            r for r in results if (r.task, r.method) == (line["task"], line["method"])
        ]
        means = _mean_by_method(results, line["task"])
        lines.append(
            {
                "task": title_by_task[line["task"]],
                "method": titles[line["method"]],
                "seeds": line["seeds"],
                "source": percent(mean(row.source_score for row in method_results)),
                "target": percent(line["target_score_mean"]),
                "std": percent(line["target_score_std"]) if line["seeds"] > 1 else None,
                "worst seed": percent(line["target_score_worst"]),
                **_gain_cells(line["method"], means, _role_by_method(results)),
                **empty,
                **_extra_metric_cells(method_results),
                "seconds": Cell(mean(row.seconds for row in method_results), ".0f"),
            }
        )
    return ResultTable.of(lines)


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
) -> dict[str, CellValue]:
    """The gain over Source-Only, and which share of the oracle's that is."""
    base = means.get(REFERENCE_METHOD)
    top = max((means[m] for m in means if role_by_method[m] == Role.ORACLE), default=None)
    if base is None or method == REFERENCE_METHOD:
        return {"gain": None, "of the gap": None}
    gain = means[method] - base
    share = gain / (top - base) if top is not None and top > base else None
    return {"gain": percent(gain, "+"), "of the gap": Cell(share, ".0%")}


def _extra_metric_cells(results: Sequence[RunResult]) -> dict[str, CellValue]:
    """The mean of each figure beside the score; shares by class in per cent."""
    metric_dicts: list[dict[str, Any]] = [row.extra_metrics for row in results if row.extra_metrics]
    cells: dict[str, CellValue] = {}
    for name, first in metric_dicts[0].items() if metric_dicts else ():
        if isinstance(first, dict):
            cells |= {
                each: percent(mean(one[name][each] for one in metric_dicts)) for each in first
            }
        else:
            cells[name] = _number_cell(mean(one[name] for one in metric_dicts))
    return cells


def _number_cell(number: float) -> Cell:
    """Two decimals, or one digit of what would vanish in them."""
    return Cell(number, ".2f" if abs(number) >= 0.1 else ".1g")
