"""How right a classifier can be expected to be along u, told without a label of the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cida.selection.validation_set import CandidateOutputs, ValidationSet

__all__ = ["Calibration", "ExpectedScore", "calibrate", "expected_scores_by_cell"]

Array = np.ndarray[Any, Any]

# Where the carried labels' trial comes to less than the first, they say nothing of a run's
# accuracy; from the second on they say all. Set on the worlds plane, noisy index and ladder.
RELIABILITY_RANGE = (0.6, 0.8)
INTERVAL_STD_ERRORS = (
    1.5  # either side; beyond what was checked errors have longer tails than a normal's
)
MIN_STD_ERROR = 0.04  # of an estimate, whatever the rest says; set as RELIABLE was
MIN_ROWS_PER_CELL = 10  # of a cell
N_CALIBRATION_PARTS = 4  # of the range left out, to see how much the error differs inside it


@dataclass(frozen=True)
class ExpectedScore:
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
    is_within_calibration: bool


@dataclass(frozen=True)
class Calibration:
    """What leave-range-out found: how much too sure it was, its error, and how far it looked.

    ``ceiling`` is the share that is right of the rows where the run and the carried labels agree:
    below 1 where classes overlap, since both miss what nobody can know.
    """

    bias: float
    std: float
    max_distance: float
    agreement_accuracy: float = 1.0


def expected_scores_by_cell(
    validation_set: ValidationSet,
    candidate: CandidateOutputs,
    calibration: Calibration,
    n_bins: int,
) -> list[ExpectedScore]:
    """``s = w c a(u) + (1 - w) (p(u) + b)`` in each of ``bins`` cells along u with target rows.

    a is the accuracy that the agreement with the carried labels implies, c the share that is right
    of the rows left out on which both agree, p the mean probability of the predicted class, b how
    much too sure that was in the range left out, and w from 0 to 1 grows with how well labels could
    be carried inside the source. The interval is ``1.5 sqrt(s (1 - s) / n + e^2)`` either side: e^2
    is the error of b and what the ways of carrying differ by.
    """
    cells = validation_set.space.make_bins(validation_set.u, n_bins)
    cell_of_row, is_target = cells.cell_of_row.numpy(), validation_set.is_target
    source_distance = validation_set.space.distance_to_set(
        validation_set.u, validation_set.u[validation_set.labelled]
    ).numpy()
    weight = _propagation_weight(validation_set)
    expected_scores = []
    for cell in range(len(cells)):
        rows = np.flatnonzero(is_target & (cell_of_row == cell))
        if len(rows) < MIN_ROWS_PER_CELL:
            continue
        implied_accuracy, implied_std = validation_set.propagated_labels.select_rows(
            rows
        ).implied_accuracy(candidate.predictions[rows])
        calibrated_confidence = _mean_confidence(candidate, rows) + calibration.bias
        propagated_score = calibration.agreement_accuracy * implied_accuracy
        score = float(
            np.clip(weight * propagated_score + (1 - weight) * calibrated_confidence, 0, 1)
        )
        sampling_variance = max(score * (1 - score), 0.5 / len(rows)) / len(rows)
        model_variance = (
            MIN_STD_ERROR**2 + (weight * implied_std) ** 2 + ((1 - weight) * calibration.std) ** 2
        )
        half_width = INTERVAL_STD_ERRORS * float(np.sqrt(sampling_variance + model_variance))
        lo, hi = (bound[cell].tolist() for bound in (cells.lower, cells.upper))
        expected_scores.append(
            ExpectedScore(
                lo=lo[0] if len(lo) == 1 else lo,
                hi=hi[0] if len(hi) == 1 else hi,
                score=score,
                low=max(0.0, score - half_width),
                high=min(1.0, score + half_width),
                n=len(rows),
                is_within_calibration=bool(
                    source_distance[rows].mean() <= calibration.max_distance * (1 + 1e-9)
                ),
            )
        )
    return expected_scores


def calibrate(
    validation_set: ValidationSet, candidate: CandidateOutputs, hidden_rows: Array, truth: Array
) -> Calibration:
    """How far confidence is off in a range whose labels are known, in a run that did not see them.

    ``hidden`` are rows of the field that the run took for target rows, ``truth`` their labels.
    """
    is_correct = candidate.predictions[hidden_rows] == truth
    source_distance = validation_set.space.distance_to_set(
        validation_set.u[hidden_rows], validation_set.u[validation_set.labelled]
    ).numpy()
    parts = [
        p
        for p in np.array_split(np.argsort(source_distance, kind="stable"), N_CALIBRATION_PARTS)
        if len(p)
    ]
    gaps = [
        float(is_correct[p].mean()) - _mean_confidence(candidate, hidden_rows[p]) for p in parts
    ]
    # Too modest where it could be checked is no reason to be surer where it cannot.
    bias = min(float(np.mean(gaps)), 0.0)
    agreement_accuracy = validation_set.propagated_labels.select_rows(
        hidden_rows
    ).accuracy_on_agreement(candidate.predictions[hidden_rows], is_correct)
    return Calibration(bias, float(np.std(gaps)), float(source_distance.max()), agreement_accuracy)


def _propagation_weight(validation_set: ValidationSet) -> float:
    low, high = RELIABILITY_RANGE
    return float(np.clip((validation_set.propagated_labels.reliability - low) / (high - low), 0, 1))


def _mean_confidence(candidate: CandidateOutputs, rows: Array) -> float:
    return float(candidate.outputs[rows].max(1).mean())
