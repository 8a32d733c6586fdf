"""Metrics against their formulas and scikit-learn."""

import numpy as np
import pytest
import torch

from cida.metrics import BinScore, accuracy, root_mean_squared_error, score_by_bin
from cida.spaces import Line, Periodic, Product


def test_accuracy_is_the_share_of_rows_predicted_right():
    assert accuracy(np.array([0, 1, 2, 1]), np.array([0, 1, 1, 1])) == 0.75
    assert accuracy(np.array(["a", "b"]), np.array(["b", "b"])) == 0.5


def test_root_mean_squared_error_is_in_the_units_of_y():
    assert root_mean_squared_error(np.array([1.0, 2.0]), np.array([4.0, 6.0])) == np.sqrt(12.5)


def test_score_by_bin_scores_each_cell_and_leaves_empty_cells_out():
    u = torch.tensor([0.0, 1.0, 2.0, 9.0, 10.0, 2.4], dtype=torch.float64)[:, None]
    truth = np.array([0, 0, 0, 1, 1, 1])
    prediction = np.array([0, 1, 0, 1, 0, 1])
    assert score_by_bin(Line(), u, truth, prediction, 4, accuracy) == [
        BinScore(lo=0.0, hi=2.5, score=0.75, n=4),
        BinScore(lo=7.5, hi=10.0, score=0.5, n=2),
    ]


def test_score_by_bin_takes_any_metric():
    u = torch.tensor([0.0, 0.1, 1.0], dtype=torch.float64)[:, None]
    scores = score_by_bin(
        Line(), u, np.array([1.0, 2.0, 3.0]), np.array([4.0, 6.0, 3.0]), 2, root_mean_squared_error
    )
    assert [s.score for s in scores] == [np.sqrt(12.5), 0.0]


def test_a_bin_score_carries_its_metric_by_name():
    u = torch.arange(4.0, dtype=torch.float64)[:, None]
    (score,) = score_by_bin(Line(), u, np.ones(4), np.zeros(4), 1, root_mean_squared_error)
    assert (score.metric, score.score) == ("root_mean_squared_error", 1.0)


def test_score_by_bin_wraps_on_a_periodic_index():
    u = torch.tensor([-10.0, 350.0, 10.0, 725.0, 100.0, 190.0], dtype=torch.float64)[:, None]
    wrong = np.array([0, 1, 0, 0, 0, 1])
    scores = score_by_bin(Periodic(360.0), u, np.zeros(6), wrong, 4, accuracy)
    assert scores == [
        BinScore(0.0, 90.0, 1.0, 2),
        BinScore(90.0, 180.0, 1.0, 1),
        BinScore(180.0, 270.0, 0.0, 1),
        BinScore(270.0, 360.0, 0.5, 2),
    ]


def test_score_by_bin_gives_lists_of_bounds_where_u_has_several_columns():
    u = torch.tensor([[0, 0], [1, 2], [10, 10], [12, 11]], dtype=torch.float64)
    space = Product([Line(), Line()])
    scores = score_by_bin(space, u, np.zeros(4), np.array([0, 1, 0, 0]), 2, accuracy)
    assert sorted(scores, key=lambda s: s.lo) == [
        BinScore([0.0, 0.0], [1.0, 2.0], 0.5, 2),
        BinScore([10.0, 10.0], [12.0, 11.0], 1.0, 2),
    ]


@pytest.mark.parametrize("space", [Line(), Periodic(1.0)])
def test_bin_scores_average_to_the_score_over_all_rows(space):
    random = np.random.default_rng(0)
    u = torch.from_numpy(random.uniform(size=(500, 1)))
    truth, prediction = random.integers(0, 3, (2, 500))
    scores = score_by_bin(space, u, truth, prediction, 9, accuracy)
    assert sum(s.n for s in scores) == 500
    mean = sum(s.n * s.score for s in scores) / 500
    assert mean == pytest.approx(accuracy(truth, prediction))
