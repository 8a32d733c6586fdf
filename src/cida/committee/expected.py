"""The expected accuracy of a committee along the index, from the trials that made its weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from cida.array_types import Array
from cida.committee.candidates import TriedCandidate
from cida.committee.trials import HiddenRange, candidate_weights
from cida.data import IndexedDataset
from cida.selection.expected_score import (
    MIN_ROWS_PER_CELL,
    Calibration,
    ExpectedScore,
    expected_cell_score,
)
from cida.spaces import Space

__all__ = ["calibrate_committee", "expected_committee_scores"]

INTERVAL_STD_ERRORS = 1.645  # of a 90 % interval
MIN_STD_ERROR = 0.05  # of any estimate; set on development tables
MAX_DISTANCE_GROWTH = 1.5  # of the error, far beyond what the trials checked


def calibrate_committee(
    tried: Sequence[TriedCandidate],
    ranges: Sequence[HiddenRange],
    dataset: IndexedDataset,
    space: Space,
) -> Calibration:
    """How far the committee's confidence is off on the hidden ranges.

    On each the members have the weights that the other ranges gave them.
    """
    losses = np.array([[part.mean() for part in each.losses] for each in tried])
    is_frame = np.array([each.candidate.mixes_columns for each in tried])
    prior = np.array([each.candidate.prior for each in tried])
    biases, distances = [], []
    for k, part in enumerate(ranges):
        others = np.delete(losses, k, axis=1) if len(ranges) > 1 else losses
        weights = candidate_weights(others, is_frame, prior)
        outputs = [np.exp(each.outputs[k]) for each in tried]
        probability = sum(w * p for w, p in zip(weights, outputs, strict=True))
        is_right = probability.argmax(axis=1) == dataset.y[part.test_rows].numpy()
        biases.append(float(is_right.mean() - probability.max(axis=1).mean()))
        train, test = dataset.u[part.train_rows], dataset.u[part.test_rows]
        distances.append(float(space.distance_to_set(test, train).max()))
    bias = float(np.mean(biases))
    return Calibration(bias, float(np.std(biases)), max(distances))


def expected_committee_scores(
    probability: Array,
    u: Tensor,
    is_target: Array,
    space: Space,
    calibration: Calibration,
    n_bins: int,
) -> list[ExpectedScore]:
    """``s = p(u) + b`` in each cell along u: the mean confidence, corrected by what trials showed.

    The interval is ``1.645 sqrt(s (1 - s) / n + e^2)`` on either side, where e^2 is the variance of
    b between the hidden ranges, at least 0.05^2; e grows with the distance from the source beyond
    what the trials checked, up to 1.5 times.
    """
    cells = space.make_bins(u, n_bins)
    cell_of_row = cells.cell_of_row.numpy()
    distance = space.distance_to_set(u, u[~is_target]).numpy()
    confidence = probability.max(axis=1)
    scores = []
    for cell in range(len(cells)):
        rows = np.flatnonzero(is_target & (cell_of_row == cell))
        if len(rows) < MIN_ROWS_PER_CELL:
            continue
        chance = 1 / probability.shape[1]
        score = float(np.clip(confidence[rows].mean() + calibration.bias, chance, 1.0))
        reach = float(distance[rows].mean()) / max(calibration.max_distance, 1e-12)
        growth = float(np.clip(1 + 0.1 * (reach - 1), 1.0, MAX_DISTANCE_GROWTH))
        variance = float((growth * np.hypot(MIN_STD_ERROR, calibration.std)) ** 2)
        interval, is_near = (INTERVAL_STD_ERRORS, variance), reach <= 1 + 1e-9
        scores.append(expected_cell_score(cells, cell, score, len(rows), interval, is_near))
    return scores
