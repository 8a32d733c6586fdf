"""Tables of an experiment of several tasks: one line a task, as the paper prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import mean

from cida.methods import REFERENCE_METHOD, Role
from cida.report.result_tables import summarize_results
from cida.runs.records import RunResult, TaskRecord
from cida.runs.result_table import Cell, CellValue, ResultTable, TableRow, percent


def build_paper_table(
    results: Sequence[RunResult], tasks: Sequence[TaskRecord], titles: Mapping[str, str]
) -> ResultTable:
    """Target score of each task and method, the best marked, and the paper's row below."""
    rows = []
    for task in tasks:
        means, oracles = _mean_by_method(results, task.name), _oracles(results)
        if not means:
            continue
        best = max((means[m] for m in means.keys() - oracles), default=0)
        cells = {"task": Cell(task.title)}
        for method, title in titles.items():
            score = means.get(method)
            cells[title] = percent(score, is_best=score == best and method not in oracles)
        rows.append(TableRow(cells))
        if task.published_scores:
            cells = {"task": Cell("the paper, on real data")}
            for method, title in titles.items():
                published = task.published_scores.get(method)
                cells[title] = percent(published.accuracy if published is not None else None)
            rows.append(TableRow(cells, "published-below"))
    return ResultTable(tuple(rows))


def transpose_table(
    table: ResultTable, with_paper: bool, use_task_names: bool = False
) -> ResultTable:
    """The same with a row for each method and a numbered column for each task.

    With the paper's number behind ours, in brackets; ``use_task_names`` gives columns the tasks'
    names.
    """
    columns: dict[str, dict[str, Cell]] = {}  # of each task, its cells by method
    name = ""
    for row in table.rows:
        if row.role != "published-below":
            name = str(row.cells["task"]) if use_task_names else f"({len(columns) + 1})"
            columns[name] = dict(row.cells)
        elif with_paper:
            for method, cell in row.cells.items():
                if cell.value is not None:
                    columns[name][method] = replace(columns[name][method], note=f" ({cell})")
    return ResultTable.of(
        {"method": method, **{name: cells[method] for name, cells in columns.items()}}
        for method in table.columns[1:]
    )


def build_detail_table(
    results: Sequence[RunResult], tasks: Sequence[TaskRecord], titles: Mapping[str, str]
) -> ResultTable:
    """A row for each task and method: spread over seeds, gain, share of the gap, recalls."""
    title_by_task = {task.name: task.title for task in tasks}
    # Some tasks have figures of their own.
    empty: dict[str, CellValue] = {n: None for row in results for n in _extra_metric_cells([row])}
    lines: list[dict[str, CellValue]] = []
    for line in summarize_results(results):
        task, method = line["task"], line["method"]
        own = [row for row in results if (row.task, row.method) == (task, method)]
        lines.append(
            {
                "task": title_by_task[task],
                "method": titles[method],
                "seeds": line["seeds"],
                "source": percent(mean(row.source_score for row in own)),
                "target": percent(line["target_score_mean"]),
                "std": percent(line["target_score_std"]) if line["seeds"] > 1 else None,
                "worst seed": percent(line["target_score_worst"]),
                **_gain_cells(method, _mean_by_method(results, task), _oracles(results)),
                **empty,
                **_extra_metric_cells(own),
                "seconds": Cell(mean(row.seconds for row in own), ".0f"),
            }
        )
    return ResultTable.of(lines)


def summarize_categorical_wins(
    results: Sequence[RunResult], tasks: Sequence[TaskRecord], titles: Mapping[str, str]
) -> list[str]:
    """A sentence for each task in which a categorical method has the best mean."""
    categorical = {row.method for row in results if row.role == Role.CATEGORICAL}
    sentences = []
    for task in tasks:
        means = _mean_by_method(results, task.name)
        contenders = [method for method in means if method not in _oracles(results)]
        best = max(contenders, key=means.__getitem__, default="")
        if best in categorical:
            words = f"the best is {titles[best]}, which takes domains for categories"
            sentences.append(f"{task.title}: {words}.")
    return sentences


def _oracles(results: Sequence[RunResult]) -> set[str]:
    return {row.method for row in results if row.role == Role.ORACLE}


def _mean_by_method(results: Sequence[RunResult], task: str) -> dict[str, float]:
    """Each method's mean target accuracy in the task."""
    lines = summarize_results(row for row in results if row.task == task)
    return {line["method"]: line["target_score_mean"] for line in lines}


def _gain_cells(method: str, means: Mapping[str, float], oracles: set[str]) -> dict[str, CellValue]:
    """The gain over Source-Only, and which share of the oracle's that is."""
    base = means.get(REFERENCE_METHOD)
    if base is None or method == REFERENCE_METHOD:
        return {"gain": None, "of the gap": None}
    gain, top = means[method] - base, max((means[m] for m in means if m in oracles), default=base)
    share = gain / (top - base) if top > base else None
    return {"gain": percent(gain, "+"), "of the gap": Cell(share, ".0%")}


def _extra_metric_cells(results: Sequence[RunResult]) -> dict[str, CellValue]:
    """The mean of each figure beside the score; shares by class in per cent."""
    metrics = [row.extra_metrics for row in results if row.extra_metrics]
    cells: dict[str, CellValue] = {}
    for name, first in metrics[0].items() if metrics else ():
        if isinstance(first, dict):
            cells |= {key: percent(mean(one[name][key] for one in metrics)) for key in first}
        else:  # two decimals, or one digit of what would vanish in them
            number = mean(one[name] for one in metrics)
            cells[name] = Cell(number, ".2f" if abs(number) >= 0.1 else ".1g")
    return cells
