"""What validators made of a bank of runs, beside the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import spearmanr

from cida.estimators.search import candidate_from_predictions
from cida.experiments.runner import CompletedRun, load_completed_run
from cida.experiments.selection.model_bank import LEAVE_RANGE_OUT, SelectionTaskData
from cida.experiments.spec import Analysis
from cida.runs.result_table import Cell, CellValue, ResultTable
from cida.selection.validation_set import CandidateOutputs, ValidationSet
from cida.selection.validators import VALIDATORS, get_validator

if TYPE_CHECKING:  # jobs find their experiments, of which this is one
    from cida.experiments.jobs import JobResult

DEFAULT_VALIDATOR = next(iter(VALIDATORS))
NEAR_BEST_GAP = 0.01  # a point


@dataclass(frozen=True)
class ExpectedCell:
    """A cell along u of a kept run: the accuracy expected, its interval, and the truth."""

    u: float
    score: float
    low: float
    high: float
    truth: float
    checked: bool


@dataclass(frozen=True)
class GroupRanking:
    """One group, all runs on the same data: each validator's scores and the true accuracies."""

    task: str
    seed: int
    methods: tuple[str, ...]
    truth: tuple[float, ...]
    scores: Mapping[str, tuple[float, ...]]
    expected_cells: tuple[ExpectedCell, ...]

    def correlation(self, validator_name: str) -> float:
        """Spearman's, of score and true accuracy; 0 where a validator cannot tell runs apart."""
        scores = self.scores[validator_name]
        if len(set(scores)) < 2 or len(set(self.truth)) < 2:
            return 0.0
        return float(spearmanr(scores, self.truth).statistic)

    def shortfall(self, validator_name: str) -> float:
        """How far the run that it keeps is below the best one."""
        return max(self.truth) - self.truth[int(np.argmax(self.scores[validator_name]))]


@dataclass(frozen=True)
class ValidatorRanking:
    """All groups together."""

    groups: tuple[GroupRanking, ...]

    def to_table(self, titles: Mapping[str, str]) -> ResultTable:
        """A line a validator: how often it keeps a run within a point of the best, correlations."""
        lines: list[dict[str, CellValue]] = []
        for name in VALIDATORS:
            shortfalls = [100 * group.shortfall(name) for group in self.groups]
            near_best = [shortfall <= 100 * NEAR_BEST_GAP for shortfall in shortfalls]
            correlations = self.correlations(name)
            line: dict[str, CellValue] = {
                "validator": name + (" (default)" if name == DEFAULT_VALIDATOR else ""),
                "correlation": Cell(mean(correlations.values()), ".2f"),
                "within 1 point": Cell(mean(near_best), ".0%"),
                "shortfall": Cell(mean(shortfalls), ".1f"),
                "worst": Cell(max(shortfalls), ".1f"),
            }
            lines.append(line | {titles[t]: Cell(c, ".2f") for t, c in correlations.items()})
        return ResultTable.of(lines)

    def correlations(self, validator_name: str) -> dict[str, float]:
        """The mean correlation in each world."""
        by_task: dict[str, list[float]] = {}
        for group in self.groups:
            by_task.setdefault(group.task, []).append(group.correlation(validator_name))
        return {task: mean(correlations) for task, correlations in by_task.items()}

    def summary(self, titles: Mapping[str, str]) -> list[str]:
        """What it came to, for the default validator and for the accuracy it expects."""
        runs = sum(len(group.methods) for group in self.groups)
        cells = [cell for group in self.groups for cell in group.expected_cells]
        width = mean(cell.high - cell.low for cell in cells)
        lines = [
            f"{runs} runs in {len(self.groups)} groups; correlation is Spearman's, of score and "
            "target accuracy, first over the groups of a world and then over worlds; shortfall is "
            "how far, in points, the run that is kept is below the best of its group.",
            f"Expected accuracy of the {len(self.groups)} kept runs, in {len(cells)} cells along "
            f"u: off by {100 * _mean_error(cells):.1f} points in the mean; intervals are "
            f"{100 * width:.1f} points wide and hold the truth {_share_covered(cells):.0%} of the "
            f"time; {mean(cell.checked for cell in cells):.0%} of the cells are within what "
            "leave-range-out could check.",
        ]
        for task in dict.fromkeys(group.task for group in self.groups):
            own = [c for g in self.groups if g.task == task for c in g.expected_cells]
            lines.append(
                f"{titles[task]}: expected {100 * mean(c.score for c in own):.1f}, true "
                f"{100 * mean(c.truth for c in own):.1f}, off by {100 * _mean_error(own):.1f} in a "
                f"cell, {_share_covered(own):.0%} inside."
            )
        return lines


def _mean_error(cells: Sequence[ExpectedCell]) -> float:
    return mean(abs(cell.score - cell.truth) for cell in cells)


def _share_covered(cells: Sequence[ExpectedCell]) -> float:
    return mean(cell.low <= cell.truth <= cell.high for cell in cells)


def analyze_validators(job_results: Sequence[JobResult]) -> Analysis:
    """What validators say of the runs, as a table, sentences and selection.json."""
    from cida.experiments.registry import TASK_SPECS  # which finds this module first

    ranking = rank_validators(job_results)
    titles = {n: task.title for n, task in TASK_SPECS.items() if n.startswith("selection/")}
    return Analysis(
        tables={"Validators against the truth": ranking.to_table(titles)},
        sentences=ranking.summary(titles),
        files={"selection.json": {"schema": 1, "groups": [*map(asdict, ranking.groups)]}},
        wide_columns=tuple(titles.values()),
    )


def rank_validators(job_results: Sequence[JobResult]) -> ValidatorRanking:
    """Asks every validator about each group of runs; the truth is looked up only to compare."""
    groups: dict[tuple[str, int], list[JobResult]] = {}
    for job_result in job_results:
        groups.setdefault((job_result.job.task_name, job_result.job.seed), []).append(job_result)
    return ValidatorRanking(tuple(_rank_group(group) for group in groups.values()))


def _rank_group(job_results: Sequence[JobResult]) -> GroupRanking:
    task_data = job_results[0].job.task_data
    assert isinstance(task_data, SelectionTaskData)
    data = task_data
    validation_set = ValidationSet.from_dataset(data.space, data.dataset, data.held_out_mask)
    runs = [load_completed_run(ended.job.folder, ended.job.recipe) for ended in job_results]
    outputs = [_candidate_outputs(run, validation_set) for run in runs]
    scores = {n: tuple(get_validator(n)(validation_set, outputs).tolist()) for n in VALIDATORS}
    best_run = runs[int(np.argmax(scores[DEFAULT_VALIDATOR]))]
    return GroupRanking(
        task=task_data.task,
        seed=job_results[0].job.seed,
        methods=tuple(run.recipe.method for run in runs),
        truth=tuple(run.result.target_score for run in runs),
        scores=scores,
        expected_cells=tuple(_expected_cells(best_run, task_data)),
    )


def _candidate_outputs(run: CompletedRun, validation_set: ValidationSet) -> CandidateOutputs:
    loss = run.history[-1].losses["prediction"]
    candidate = candidate_from_predictions(run.model, validation_set, loss)
    refit_score = (run.result.extra_metrics or {})[LEAVE_RANGE_OUT]
    return replace(candidate, refit=partial(float, refit_score))


def _expected_cells(run: CompletedRun, task_data: SelectionTaskData) -> list[ExpectedCell]:
    """What is expected of a run in each cell, and what is true there."""
    is_correct, u = task_data.predict_correctness(run.model), task_data.scored_rows.u[:, 0]
    cells = []
    for cell in task_data.expected_scores(run.model):
        lo, hi = float(np.squeeze(cell.lo)), float(np.squeeze(cell.hi))  # u is one number here
        in_cell = (u >= lo) & (u <= hi)
        if in_cell.any():
            truth = float(is_correct[in_cell].mean())
            numbers = (cell.score, cell.low, cell.high)
            cells.append(ExpectedCell((lo + hi) / 2, *numbers, truth, cell.is_within_calibration))
    return cells
