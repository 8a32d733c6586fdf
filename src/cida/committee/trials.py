"""Leave-range-out trials: which source rows are hidden, and what the losses there are worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cida.array_types import Array
from cida.committee.decision import TrialRule
from cida.data import IndexedDataset
from cida.indexing import evenly_spaced
from cida.selection.source_ranges import split_source_thirds
from cida.spaces import Space

__all__ = ["HiddenRange", "Trials", "candidate_weights", "checked_index_limits", "row_losses"]

MIN_TRIAL_ROWS = 60  # of the source
MIN_INDEX_VALUES = 3  # different ones in the source, for a range to be left out
MAX_TRIAL_ROWS = 6000  # of the source: more make trials slower and hardly more certain
MIN_PROBABILITY = 1e-4  # of the true class: one confident mistake must not decide
LOSS_FLOOR = 0.01  # added to all: below it differences are chance
MAX_LOSS_RATIO = 10 / 3  # of a candidate to the best: above it, it does not count
MAX_FRAME_LOSS_RATIO = 0.8  # to the best of the others: a frame mixes columns


@dataclass(frozen=True)
class HiddenRange:
    """A part of the source whose labels are hidden, and the rows that are learned from."""

    name: str
    train_rows: Tensor
    test_rows: Tensor


@dataclass(frozen=True)
class Trials:
    """The hidden ranges of a data set; none where the source is too small."""

    rule: TrialRule
    ranges: tuple[HiddenRange, ...] = ()

    @classmethod
    def of(cls, space: Space, dataset: IndexedDataset, has_index: bool) -> Trials:
        """Choose the ranges; only source labels are read. Rows must come in a random order."""
        source = dataset.source_rows[evenly_spaced(len(dataset.source_rows), MAX_TRIAL_ROWS)]
        if len(source) < MIN_TRIAL_ROWS:
            return cls("few-source-rows")
        n_values = len(torch.unique(dataset.u[source], dim=0))
        has_target = len(dataset.source_rows) < len(dataset)
        if has_index and has_target and n_values >= MIN_INDEX_VALUES:
            labelled = torch.zeros(len(dataset), dtype=torch.bool)
            labelled[source] = True
            only_target = dataset.labelled & ~labelled  # source rows that take no part
            keep = (~only_target).nonzero()[:, 0]
            near, _, far = split_source_thirds(space, dataset.u[keep], labelled[keep])
            hidden = {"near": keep[near], "far": keep[far]}
            ranges = _without_impossible(dataset, source, hidden)
            if ranges:
                return cls("leave-range-out", ranges)
        ranges = _without_impossible(dataset, source, {"random": source[: len(source) // 3]})
        return cls("random-third", ranges) if ranges else cls("few-source-rows")


def _without_impossible(
    dataset: IndexedDataset, source: Tensor, hidden: dict[str, Tensor]
) -> tuple[HiddenRange, ...]:
    """The ranges without which at least two classes are left to learn."""
    ranges = []
    for name, test_rows in hidden.items():
        train_rows = source[~torch.isin(source, test_rows)]
        if dataset.y.is_floating_point() or len(torch.unique(dataset.y[train_rows])) > 1:
            ranges.append(HiddenRange(name, train_rows, test_rows))
    return tuple(ranges)


def checked_index_limits(
    space: Space, dataset: IndexedDataset, ranges: tuple[HiddenRange, ...]
) -> tuple[Tensor, Tensor] | None:
    """How far the trials have seen a trend go: the source's bounds, and that much beyond them.

    The distance is the largest from a hidden row to the range that was learned from. None on a
    circle, which has no far end, or without a trial.
    """
    if any(space.periods) or not ranges:
        return None
    e = space.embed(dataset.u)
    source = e[dataset.source_rows]
    distances = []
    for each in ranges:
        train, test = e[each.train_rows], e[each.test_rows]
        inside = test.maximum(train.amin(0)).minimum(train.amax(0))
        distances.append((test - inside).abs().amax(0))
    checked = torch.stack(distances).amax(0)
    return source.amin(0) - checked, source.amax(0) + checked


def row_losses(outputs: Array, y: Tensor) -> Array:
    """The log loss of each row, from log probabilities; of numbers the squared error."""
    truth = y.numpy()
    if y.is_floating_point():
        squared: Array = (outputs[:, 0] - truth.reshape(-1)) ** 2
        return squared
    log_probability = outputs[np.arange(len(truth)), truth]
    return np.asarray(-np.maximum(log_probability, np.log(MIN_PROBABILITY)))


def candidate_weights(losses: Array, is_frame: Array, prior: Array) -> Array:
    """``w ~ prior (best loss / loss)^2``, and 0 for clear losers.

    One hidden range says little about which candidate is best and much about which are bad, so
    that the mean of many is better than the best of them. A frame has to be clearly better than all
    that leave columns as they are: it may turn what is right into what is wrong.

    Parameters
    ----------
    losses : ndarray of shape (candidates, ranges)
        Mean loss of each candidate on each hidden range.
    is_frame : ndarray of bool
        Which candidates mix columns.
    prior : ndarray of shape (candidates,)
        What each is worth before the trial.

    Returns
    -------
    ndarray of shape (candidates,)
        The weights; their sum is 1.
    """
    mean = losses.mean(axis=1) + LOSS_FLOOR
    if is_frame.any() and not is_frame.all():
        limit = MAX_FRAME_LOSS_RATIO * mean[~is_frame].min()
        mean = np.where(is_frame & (mean > limit), np.inf, mean)
    weight = mean.min() / mean
    weight = np.where(weight < 1 / MAX_LOSS_RATIO, 0.0, prior * weight**2)
    return np.asarray(weight / weight.sum())
