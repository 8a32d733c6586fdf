"""The expected accuracy of a classifier along the index, estimated without target labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cida.array_types import Array
from cida.selection.validation_set import CandidateOutputs, ValidationSet
from cida.spaces import Bins

__all__ = [
    "Calibration",
    "ExpectedScore",
    "calibrate",
    "expected_cell_score",
    "expected_scores_by_cell",
]

# Below the first reliability the propagated labels count nothing, from the second on fully. Set on
# plane, noisy index and ladder.
RELIABILITY_RANGE = (0.6, 0.8)
# The half-width of an interval. Errors outside the calibrated range have longer tails than a normal
# distribution.
INTERVAL_STD_ERRORS = 1.5
MIN_STD_ERROR = 0.04  # of any estimate; set on the same data
MIN_ROWS_PER_CELL = 10
N_CALIBRATION_PARTS = 4  # of the range left out, between which the error is compared


@dataclass(frozen=True)
class ExpectedScore:
    """The expected accuracy of the target rows in one cell along the index, with an interval.

    Parameters
    ----------
    lo : float or list of float
        Lower bound of the cell.
    hi : float or list of float
        Upper bound of the cell.
    score : float
        Expected accuracy.
    low : float
        Lower end of the interval.
    high : float
        Upper end of the interval.
    n : int
        Number of target rows in the cell.
    is_within_calibration : bool
        Whether the cell is no farther from the source than the range on which the estimate was
        checked.
    metric : str
        Name of the metric; always "accuracy".
    """

    lo: float | list[float]
    hi: float | list[float]
    score: float
    low: float
    high: float
    n: int
    is_within_calibration: bool
    metric: str = "accuracy"


@dataclass(frozen=True)
class Calibration:
    """What a leave-range-out trial found about a classifier's confidence.

    Parameters
    ----------
    bias : float
        Accuracy minus mean confidence in the range that was left out; at most 0.
    std : float
        Standard deviation of that difference within the range.
    max_distance : float
        Largest distance from the source that was checked.
    agreement_accuracy : float, default 1.0
        Accuracy on the rows where the run and the propagated labels agree: below 1 where classes
        overlap.
    """

    bias: float
    std: float
    max_distance: float
    agreement_accuracy: float = 1.0


def expected_scores_by_cell(
    data: ValidationSet, candidate: CandidateOutputs, calibration: Calibration, n_bins: int
) -> list[ExpectedScore]:
    """``s = w c a(u) + (1 - w) (p(u) + b)`` in each cell along u with target rows.

    a is the accuracy that the agreement with the propagated labels implies, c the accuracy on rows
    that were left out and on which both agree, p the mean probability of the predicted class, b its
    bias in the range that was left out; w grows from 0 to 1 with how well labels can be propagated
    inside the source. The interval is ``1.5 sqrt(s (1 - s) / n + e^2)`` on either side, where e^2
    is the variance of b and of the propagations among themselves.

    Parameters
    ----------
    data : ValidationSet
        Source and target rows.
    candidate : CandidateOutputs
        The outputs of the run.
    calibration : Calibration
        What a leave-range-out trial found.
    n_bins : int
        About how many cells to make.

    Returns
    -------
    list of ExpectedScore
        One for each cell with at least 10 target rows.
    """
    cells = data.space.make_bins(data.u, n_bins)
    cell_of_row, is_target = cells.cell_of_row.numpy(), data.is_target
    source_distance = data.space.distance_to_set(data.u, data.u[data.labelled]).numpy()
    low, high = RELIABILITY_RANGE
    weight = float(np.clip((data.propagated_labels.reliability - low) / (high - low), 0, 1))
    expected_scores = []
    for cell in range(len(cells)):
        rows = np.flatnonzero(is_target & (cell_of_row == cell))
        if len(rows) < MIN_ROWS_PER_CELL:
            continue
        labels = data.propagated_labels.select_rows(rows)
        implied, implied_std = labels.implied_accuracy(candidate.predictions[rows])
        confidence = _mean_confidence(candidate, rows) + calibration.bias
        propagated = calibration.agreement_accuracy * implied
        score = float(np.clip(weight * propagated + (1 - weight) * confidence, 0, 1))
        model_variance = MIN_STD_ERROR**2 + (weight * implied_std) ** 2
        model_variance += ((1 - weight) * calibration.std) ** 2
        is_near = bool(source_distance[rows].mean() <= calibration.max_distance * (1 + 1e-9))
        interval = (INTERVAL_STD_ERRORS, model_variance)
        expected_scores.append(
            expected_cell_score(cells, cell, score, len(rows), interval, is_near)
        )
    return expected_scores


def expected_cell_score(
    cells: Bins,
    cell: int,
    score: float,
    n: int,
    interval: tuple[float, float],
    is_within_calibration: bool,
) -> ExpectedScore:
    """The score of a cell of n rows, with its interval: so many standard errors, and the variance.

    Chance adds ``s (1 - s) / n`` to the variance.
    """
    n_std_errors, model_variance = interval
    sampling_variance = max(score * (1 - score), 0.5 / n) / n
    half_width = n_std_errors * float(np.sqrt(sampling_variance + model_variance))
    lo, hi = (bound[cell].tolist() for bound in (cells.lower, cells.upper))
    return ExpectedScore(
        lo=lo[0] if len(lo) == 1 else lo,
        hi=hi[0] if len(hi) == 1 else hi,
        score=score,
        low=max(0.0, score - half_width),
        high=min(1.0, score + half_width),
        n=n,
        is_within_calibration=is_within_calibration,
    )


def calibrate(
    data: ValidationSet, candidate: CandidateOutputs, hidden_rows: Array, truth: Array
) -> Calibration:
    """Measure how far confidence is off in a range whose labels are known but were hidden.

    Parameters
    ----------
    data : ValidationSet
        Source and target rows.
    candidate : CandidateOutputs
        The outputs of a run that did not see the hidden labels.
    hidden_rows : ndarray of int
        Rows of the validation set that the run treated as target rows.
    truth : ndarray
        Their labels.

    Returns
    -------
    Calibration
        Bias, its deviation, and how far from the source it was measured.
    """
    predicted = candidate.predictions[hidden_rows]
    is_correct = predicted == truth
    distance = data.space.distance_to_set(data.u[hidden_rows], data.u[data.labelled]).numpy()
    parts = np.array_split(np.argsort(distance, kind="stable"), N_CALIBRATION_PARTS)
    gaps = [
        float(is_correct[part].mean()) - _mean_confidence(candidate, hidden_rows[part])
        for part in parts
        if len(part)
    ]
    # Confidence that was too low where it was checked is not raised where it cannot be checked.
    bias = min(float(np.mean(gaps)), 0.0)
    labels = data.propagated_labels.select_rows(hidden_rows)
    agreement_accuracy = labels.accuracy_on_agreement(predicted, is_correct)
    return Calibration(bias, float(np.std(gaps)), float(distance.max()), agreement_accuracy)


def _mean_confidence(candidate: CandidateOutputs, rows: Array) -> float:
    return float(candidate.outputs[rows].max(1).mean())
