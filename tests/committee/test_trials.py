"""Which rows are hidden in a trial, and what its losses are worth."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import log_loss

from cida.committee.decision import CandidateReport, Decision
from cida.committee.trials import (
    MAX_LOSS_RATIO,
    Trials,
    candidate_weights,
    checked_index_limits,
    row_losses,
)
from cida.data import IndexedDataset
from cida.selection.expected_score import Calibration
from cida.spaces import Line

LOSSES = arrays(float, st.tuples(st.integers(1, 8), st.integers(1, 3)), elements=st.floats(0, 9))


def make_dataset(n=300, n_values=None, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    u = rng.uniform(0, 1, n)
    if n_values:
        u = np.round(u * (n_values * 3)) / (n_values * 3)
    y = torch.from_numpy(rng.integers(0, classes, n))
    labelled = torch.from_numpy(u < 1 / 3)
    return IndexedDataset(torch.zeros(n, 2), y, torch.from_numpy(u), labelled)


def trials_of(dataset, has_index=True):
    return Trials.of(Line().fit(dataset.u), dataset, has_index)


def test_the_nearest_and_the_farthest_third_are_hidden_once_each():
    dataset = make_dataset(900)
    trials = trials_of(dataset)
    assert trials.rule == "leave-range-out"
    assert [part.name for part in trials.ranges] == ["near", "far"]
    near, far = trials.ranges
    assert dataset.u[near.test_rows].min() >= dataset.u[near.train_rows].max()
    assert dataset.u[far.test_rows].max() <= dataset.u[far.train_rows].min()
    for part in trials.ranges:
        rows = torch.cat([part.train_rows, part.test_rows]).sort().values
        assert torch.equal(rows, dataset.source_rows)


def test_without_a_range_a_random_third_is_hidden():
    dataset = make_dataset(300)
    dataset.u[dataset.labelled] = 0.1
    assert trials_of(dataset).rule == "random-third"
    assert trials_of(make_dataset(300), has_index=False).rule == "random-third"


def test_few_source_rows_and_one_class_leave_no_trial():
    assert trials_of(make_dataset(60)).rule == "few-source-rows"
    assert trials_of(make_dataset(300, classes=1)).rule == "few-source-rows"


def test_row_losses_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(3), 200), rng.integers(0, 3, 200)
    p = p.clip(1e-3) / p.clip(1e-3).sum(1, keepdims=True)
    assert row_losses(np.log(p), torch.from_numpy(y)).mean() == pytest.approx(log_loss(y, p))
    numbers = torch.from_numpy(rng.normal(size=(200, 1)))
    assert row_losses(np.zeros((200, 1)), numbers).mean() == pytest.approx(
        float(numbers.square().mean())
    )


@given(losses=LOSSES)
@settings(max_examples=100, deadline=None)
def test_weights_sum_to_one_the_best_counts_most_and_clear_losers_nothing(losses):
    n = len(losses)
    weights = candidate_weights(losses, np.zeros(n, bool), np.ones(n))
    mean = losses.mean(1) + 0.01
    assert weights.sum() == pytest.approx(1)
    assert weights[mean.argmin()] == weights.max()
    assert (weights[mean > 1.001 * MAX_LOSS_RATIO * mean.min()] == 0).all()


@given(losses=LOSSES, seed=st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_weights_do_not_depend_on_the_order_of_candidates(losses, seed):
    n = len(losses)
    order = np.random.default_rng(seed).permutation(n)
    is_frame, prior = np.arange(n) % 3 == 0, 1.0 + np.arange(n) % 2
    weights = candidate_weights(losses, is_frame, prior)
    permuted = candidate_weights(losses[order], is_frame[order], prior[order])
    np.testing.assert_allclose(permuted, weights[order])


def test_a_frame_must_be_clearly_better():
    is_frame, prior = np.array([False, True]), np.ones(2)
    assert candidate_weights(np.array([[0.5], [0.45]]), is_frame, prior).tolist() == [1.0, 0.0]
    assert candidate_weights(np.array([[0.5], [0.3]]), is_frame, prior)[1] > 0.5


def test_a_trend_may_go_as_far_as_the_trials_have_seen():
    dataset = make_dataset(3000)
    space = Line().fit(dataset.u)
    lower, upper = checked_index_limits(space, dataset, trials_of(dataset).ranges)
    ends = space.embed(torch.tensor([[0.0], [1 / 3]], dtype=torch.float64))[:, 0]
    third = float(ends[1] - ends[0]) / 3
    assert float(lower) == pytest.approx(float(ends[0]) - third, abs=0.05)
    assert float(upper) == pytest.approx(float(ends[1]) + third, abs=0.05)


def report(name, adaptive, weight, loss):
    return CandidateReport(name, "raw", adaptive, weight, {"near": loss}, {"near": 0.01})


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.9, "adapt"), (0.5, "partly"), (0.1, "do-not-adapt")]
)
def test_the_verdict_follows_the_weights(share, verdict):
    parts = (report("a", True, share, 0.2), report("b", False, 1 - share, 0.3))
    decision = Decision(parts, "leave-range-out", "log_loss", Calibration(-0.1, 0.02, 3.0))
    assert decision.verdict == verdict
    assert decision.adapted_share == pytest.approx(share)
    assert len(decision.summary()) == 3
    assert Decision.from_dict(decision.to_dict()) == decision
