"""How right a classifier can be expected to be along u, told without a label of the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cida.diagnostics.field import Candidate, Field

__all__ = ["Calibration", "Expected", "calibrate", "expected_along"]

Array = np.ndarray[Any, Any]

# Where the carried labels' trial comes to less than the first, they say nothing of a run's
# accuracy; from the second on they say all. Set on the worlds plane, noisy index and ladder.
RELIABLE = (0.6, 0.8)
DEVIATIONS = 1.5  # either side; beyond what was checked errors have longer tails than a normal's
LEAST_ERROR = 0.04  # of an estimate, whatever the rest says; set as RELIABLE was
FEWEST_ROWS = 10  # of a cell
PARTS = 4  # of the range left out, to see how much the error differs inside it


@dataclass(frozen=True)
class Expected:
    """The expected accuracy of the ``n`` target rows between ``lo`` and ``hi``, and an interval.

    ``checked`` says whether u is no farther from the source than the range that was left out to
    check the estimate.
    """

    lo: float | list[float]
    hi: float | list[float]
    score: float
    low: float
    high: float
    n: int
    checked: bool


@dataclass(frozen=True)
class Calibration:
    """What leave-range-out found: how much too sure it was, its error, and how far it looked.

    ``ceiling`` is the share that is right of the rows where the run and the carried labels agree:
    below 1 where classes overlap, since both miss what nobody can know.
    """

    bias: float
    error: float
    reach: float
    ceiling: float = 1.0


def expected_along(
    field: Field, candidate: Candidate, calibration: Calibration, bins: int
) -> list[Expected]:
    """``s = w c a(u) + (1 - w) (p(u) + b)`` in each of ``bins`` cells along u with target rows.

    a is the accuracy that the agreement with the carried labels implies, c the share that is right
    of the rows left out on which both agree, p the mean probability of the predicted class, b how
    much too sure that was in the range left out, and w from 0 to 1 grows with how well labels could
    be carried inside the source. The interval is ``1.5 sqrt(s (1 - s) / n + e^2)`` either side: e^2
    is the error of b and what the ways of carrying differ by.
    """
    cells = field.space.bins(field.u, bins)
    owner, target = cells.rows.numpy(), field.target
    away = field.space.distance_to_set(field.u, field.u[field.labelled]).numpy()
    weight = _weight(field)
    found = []
    for cell in range(len(cells)):
        rows = np.flatnonzero(target & (owner == cell))
        if len(rows) < FEWEST_ROWS:
            continue
        implied, apart = field.carried.at(rows).implied_accuracy(candidate.labels[rows])
        sure = _confidence(candidate, rows) + calibration.bias
        known = calibration.ceiling * implied
        score = float(np.clip(weight * known + (1 - weight) * sure, 0, 1))
        chance = max(score * (1 - score), 0.5 / len(rows)) / len(rows)
        error = LEAST_ERROR**2 + (weight * apart) ** 2 + ((1 - weight) * calibration.error) ** 2
        half = DEVIATIONS * float(np.sqrt(chance + error))
        lo, hi = (bound[cell].tolist() for bound in (cells.lo, cells.hi))
        found.append(
            Expected(
                lo=lo[0] if len(lo) == 1 else lo,
                hi=hi[0] if len(hi) == 1 else hi,
                score=score,
                low=max(0.0, score - half),
                high=min(1.0, score + half),
                n=len(rows),
                checked=bool(away[rows].mean() <= calibration.reach * (1 + 1e-9)),
            )
        )
    return found


def calibrate(field: Field, candidate: Candidate, hidden: Array, truth: Array) -> Calibration:
    """How far confidence is off in a range whose labels are known, in a run that did not see them.

    ``hidden`` are rows of the field that the run took for target rows, ``truth`` their labels.
    """
    right = candidate.labels[hidden] == truth
    away = field.space.distance_to_set(field.u[hidden], field.u[field.labelled]).numpy()
    parts = [p for p in np.array_split(np.argsort(away, kind="stable"), PARTS) if len(p)]
    gaps = [float(right[p].mean()) - _confidence(candidate, hidden[p]) for p in parts]
    # Too modest where it could be checked is no reason to be surer where it cannot.
    bias = min(float(np.mean(gaps)), 0.0)
    ceiling = field.carried.at(hidden).right_where_agreed(candidate.labels[hidden], right)
    return Calibration(bias, float(np.std(gaps)), float(away.max()), ceiling)


def _weight(field: Field) -> float:
    low, high = RELIABLE
    return float(np.clip((field.carried.reliability - low) / (high - low), 0, 1))


def _confidence(candidate: Candidate, rows: Array) -> float:
    return float(candidate.outputs[rows].max(1).mean())
