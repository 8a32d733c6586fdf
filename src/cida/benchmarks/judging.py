"""What validators made of a bank of runs, beside the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import mean
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from cida.benchmarks.grid import Done
from cida.benchmarks.runner import Outcome, read_outcome
from cida.benchmarks.selection import BINS, LEFT_OUT, BankRows
from cida.benchmarks.tables import Cells
from cida.diagnostics import VALIDATORS, Candidate, Expected, Field, named_validator
from cida.estimators.expected import expected_of_rows
from cida.estimators.search import candidate_by_predicting

__all__ = ["Foretold", "Judged", "Verdict", "judge"]

Array = np.ndarray[Any, Any]
DEFAULT = next(iter(VALIDATORS))
NEAR = 0.01  # a point


@dataclass(frozen=True)
class Foretold:
    """A cell along u of a kept run: the accuracy expected, its interval, and the truth."""

    u: float
    score: float
    low: float
    high: float
    truth: float
    checked: bool


@dataclass(frozen=True)
class Judged:
    """One group, all runs on the same data: each validator's scores and the true accuracies."""

    task: str
    seed: int
    methods: tuple[str, ...]
    truth: tuple[float, ...]
    scores: Mapping[str, tuple[float, ...]]
    foretold: tuple[Foretold, ...]

    def correlation(self, validator: str) -> float:
        """Spearman's, of score and true accuracy; 0 where a validator cannot tell runs apart."""
        scores = self.scores[validator]
        if len(set(scores)) < 2 or len(set(self.truth)) < 2:
            return 0.0
        return float(spearmanr(scores, self.truth).statistic)

    def shortfall(self, validator: str) -> float:
        """How far the run that it keeps is below the best one."""
        return max(self.truth) - self.truth[int(np.argmax(self.scores[validator]))]


@dataclass(frozen=True)
class Verdict:
    """All groups together."""

    groups: tuple[Judged, ...]

    def table(self, titles: Mapping[str, str]) -> list[Cells]:
        """A line a validator: how often it keeps a run within a point of the best, correlations."""
        lines = []
        for name in VALIDATORS:
            short = [100 * group.shortfall(name) for group in self.groups]
            lines.append(
                {
                    "validator": name + (" (default)" if name == DEFAULT else ""),
                    "correlation": f"{mean(self.correlations(name).values()):.2f}",
                    "within 1 point": f"{mean(s <= 100 * NEAR for s in short):.0%}",
                    "shortfall": f"{mean(short):.1f}",
                    "worst": f"{max(short):.1f}",
                    **{titles[t]: f"{c:.2f}" for t, c in self.correlations(name).items()},
                }
            )
        return lines

    def correlations(self, validator: str) -> dict[str, float]:
        """The mean correlation in each world."""
        tasks = dict.fromkeys(group.task for group in self.groups)
        return {
            task: mean(g.correlation(validator) for g in self.groups if g.task == task)
            for task in tasks
        }

    def sentences(self, titles: Mapping[str, str]) -> list[str]:
        """What it came to, for the default validator and for the accuracy it expects."""
        runs = sum(len(group.methods) for group in self.groups)
        cells = [cell for group in self.groups for cell in group.foretold]
        off = [abs(cell.score - cell.truth) for cell in cells]
        inside = [cell.low <= cell.truth <= cell.high for cell in cells]
        width = [cell.high - cell.low for cell in cells]
        found = [
            f"{runs} runs in {len(self.groups)} groups; correlation is Spearman's, of score and "
            "target accuracy, first over the groups of a world and then over worlds; shortfall is "
            "how far, in points, the run that is kept is below the best of its group.",
            f"Expected accuracy of the {len(self.groups)} kept runs, in {len(cells)} cells along "
            f"u: off by {100 * mean(off):.1f} points in the mean; intervals are "
            f"{100 * mean(width):.1f} points wide and hold the truth {mean(inside):.0%} of the "
            f"time; {mean(cell.checked for cell in cells):.0%} of the cells are within what "
            "leave-range-out could check.",
        ]
        for task in dict.fromkeys(group.task for group in self.groups):
            mine = [c for g in self.groups if g.task == task for c in g.foretold]
            error = mean(abs(c.score - c.truth) for c in mine)
            share = mean(c.low <= c.truth <= c.high for c in mine)
            found.append(
                f"{titles[task]}: expected {100 * mean(c.score for c in mine):.1f}, true "
                f"{100 * mean(c.truth for c in mine):.1f}, off by {100 * error:.1f} in a cell, "
                f"{share:.0%} inside."
            )
        return found

    def words(self) -> dict[str, Any]:
        """As JSON values."""
        return {"schema": 1, "groups": [asdict(group) for group in self.groups]}


def judge(done: Sequence[Done]) -> Verdict:
    """Asks every validator about each group of runs; the truth is looked up only to compare."""
    groups: dict[tuple[str, int], list[Done]] = {}
    for ended in done:
        groups.setdefault((ended.task.benchmark, ended.task.seed), []).append(ended)
    return Verdict(tuple(_judge_group(mine) for mine in groups.values()))


def _judge_group(done: Sequence[Done]) -> Judged:
    sample = done[0].task.sample
    assert isinstance(sample, BankRows)
    field = Field.of(sample.space, sample.rows, sample.held)
    runs = [read_outcome(ended.task.folder, ended.task.recipe) for ended in done]
    candidates = [_candidate(run, field) for run in runs]
    scores = {name: tuple(named_validator(name)(field, candidates).tolist()) for name in VALIDATORS}
    kept = runs[int(np.argmax(scores[DEFAULT]))]
    return Judged(
        task=sample.task,
        seed=done[0].task.seed,
        methods=tuple(run.recipe.method for run in runs),
        truth=tuple(run.row.target_accuracy for run in runs),
        scores=scores,
        foretold=tuple(_foretold(kept, sample)),
    )


def _candidate(run: Outcome, field: Field) -> Candidate:
    found = candidate_by_predicting(run.model, field, run.history[-1].losses["prediction"])
    return replace(found, refit=partial(float, (run.row.more or {})[LEFT_OUT]))


def _foretold(run: Outcome, sample: BankRows) -> list[Foretold]:
    """What is expected of a run in each cell, and what is true there."""
    right, u = sample.right(run.model), sample.scored.u[:, 0]
    found = []
    for cell in expected_of_rows(run.model, sample.trained, BINS):
        mine = _inside(cell, u)
        if mine.any():
            middle = (_number(cell.lo) + _number(cell.hi)) / 2
            truth = float(right[mine].mean())
            numbers = (cell.score, cell.low, cell.high)
            found.append(Foretold(middle, *numbers, truth, cell.checked))
    return found


def _inside(cell: Expected, u: Array) -> Array:
    low, high = _number(cell.lo), _number(cell.hi)
    mine: Array = (u >= low) & (u <= high)
    return mine


def _number(bound: float | list[float]) -> float:
    assert isinstance(bound, float | int)  # the worlds of the bank have an index of one number
    return float(bound)
