"""What the doctor knows of rows: against closed forms, scipy and scikit-learn."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from cida.doctor.fit_summary import (
    FitSummary,
    IndexColumnSummary,
    knn_loss,
    marginal_label_loss,
    summarize_index,
)
from cida.label_shift import LabelShift
from cida.spaces import Line, Periodic, Product, make_line_space

SETTINGS = {
    "game": "Adversarial",
    "has_index": True,
    "is_adaptive": True,
    "is_conditional": False,
    "uses_head": True,
    "default_lambda": 1.0,
    "lambda_d": 1.0,
    "discriminator_steps": 2,
    "ceiling": True,
    "curriculum": 0.0,
    "steps": 1000,
    "learning_rate": 5e-4,
    "weight_decay": 0.0,
    "has_custom_encoder": False,
    "coordinates": "auto",
}


def columns_of(u, space=None):
    u = torch.as_tensor(u, dtype=torch.float64)
    u = u if u.dim() == 2 else u[:, None]
    return summarize_index((space or make_line_space(u.shape[1])).fit(u), u)


# --- the index -----------------------------------------------------------------------------------


def test_an_even_index_has_a_hundredth_of_its_rows_in_a_hundredth_of_its_range():
    (column,) = columns_of(np.linspace(-3, 80, 5000))
    assert column.std == pytest.approx(1)
    assert column.mode_share == pytest.approx(1 / 5000)
    assert column.densest_share == pytest.approx(0.01, abs=5e-4)


def test_one_stray_value_crowds_all_others():
    (column,) = columns_of([*np.linspace(0, 1, 999), 1e6])
    assert column.densest_share == pytest.approx(0.999)
    assert column.mode_share == pytest.approx(0.001)


def test_an_index_of_two_values_is_crowded_by_ties_alone():
    (column,) = columns_of([0.0] * 30 + [1.0] * 70)
    assert column.mode_share == column.densest_share == pytest.approx(0.7)


def test_on_a_circle_rows_on_both_sides_of_the_seam_are_together():
    space = Periodic(24)
    (column,) = columns_of([23.95] * 30 + [0.05] * 30 + [6.0] * 20 + [15.0] * 20, space)
    assert column.std is None
    assert column.densest_share == pytest.approx(0.6)


def test_each_column_is_told_of_its_own():
    u = np.stack([np.linspace(0, 1, 200), np.r_[np.zeros(190), np.ones(10)]], axis=1)
    even, lame = columns_of(u, Product([Line(), Line()]))
    assert even.mode_share < 0.01
    assert lame.mode_share == pytest.approx(0.95)


def test_an_index_that_no_space_scaled_shows_its_own_deviation():
    u = torch.linspace(0, 1000, 500, dtype=torch.float64)[:, None]
    (column,) = summarize_index(Line(), u)
    assert column.std == pytest.approx(float(u.std(correction=0)))


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60).filter(lambda v: len(set(v)) > 1))
@settings(max_examples=60, deadline=None)
def test_ties_are_part_of_the_crowd_and_all_are_shares(values):
    (column,) = columns_of(values)
    assert 1 / len(values) <= column.mode_share <= column.densest_share <= 1


# --- the prediction ------------------------------------------------------------------------------


def test_the_blind_loss_of_classes_is_their_entropy_under_the_weights():
    y = torch.tensor([0, 0, 1, 2])
    weight = torch.tensor([1.0, 1.0, 4.0, 2.0])
    assert marginal_label_loss(y, torch.ones(4)) == pytest.approx(entropy([0.5, 0.25, 0.25]))
    assert marginal_label_loss(y, weight) == pytest.approx(2 * entropy([0.25, 0.5, 0.25]))


def test_the_blind_loss_of_numbers_is_their_variance_under_the_weights():
    y = torch.tensor([[1.0], [2.0], [6.0]])
    assert marginal_label_loss(y, torch.ones(3)) == pytest.approx(float(y.var(correction=0)))
    repeated = torch.tensor([[1.0], [2.0], [6.0], [6.0]])
    weighted = marginal_label_loss(y, torch.tensor([1.0, 1.0, 2.0]) * 0.75)
    assert weighted == pytest.approx(float(repeated.var(correction=0)))


def test_neighbours_are_those_of_scikit_learn_with_each_row_left_out():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    y = (x[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)
    model = KNeighborsClassifier(10)
    share = cross_val_predict(model, x, y, cv=LeaveOneOut(), method="predict_proba")
    share = (10 * share + np.bincount(y) / 60) / 11
    expected = -np.log(share[np.arange(60), y]).mean()
    found = knn_loss(torch.from_numpy(x), torch.from_numpy(y))
    assert found == pytest.approx(expected)
    z = x[:, :1] + 0.1 * rng.normal(size=(60, 1))
    mean = cross_val_predict(KNeighborsRegressor(10), x, z, cv=LeaveOneOut())
    found = knn_loss(torch.from_numpy(x), torch.from_numpy(z))
    assert found == pytest.approx(float(((mean - z) ** 2).mean()))


def test_rows_that_are_equal_do_not_see_their_own_label():
    x = torch.zeros(40, 2)
    y = torch.arange(40) % 2
    assert knn_loss(x, y) > 0.6 * math.log(2)


def test_labels_that_x_tells_nothing_of_are_not_told_by_neighbours():
    rng = np.random.default_rng(1)
    x, y = torch.from_numpy(rng.normal(size=(400, 2))), torch.from_numpy(rng.integers(0, 2, 400))
    assert knn_loss(x, y) > 0.95 * marginal_label_loss(y, torch.ones(400))


# --- files ---------------------------------------------------------------------------------------


def test_facts_go_to_json_and_back():
    facts = FitSummary(
        **SETTINGS,
        n_source_rows=10,
        n_target_rows=20,
        index_columns=(IndexColumnSummary(1.0, 0.1, 0.2), IndexColumnSummary(None, 0.3, 0.4)),
        label_shift=LabelShift(0.2, 0.01, 1, 0.05, 0.5, (0.0,), (1.0,)),
        marginal_label_loss=0.69,
        majority_share_far=0.5,
    )
    assert FitSummary.from_dict(json.loads(json.dumps(facts.to_dict(), allow_nan=False))) == facts
    assert facts.is_complete


def test_a_number_that_is_not_finite_is_not_known():
    words = FitSummary(**SETTINGS, encoding_std=math.nan, marginal_label_loss=math.inf).to_dict()
    assert words["encoding_std"] is None
    assert words["marginal_label_loss"] is None


def test_what_a_newer_version_adds_is_passed_over():
    facts = FitSummary(**SETTINGS)
    assert FitSummary.from_dict({**facts.to_dict(), "mood": "good"}) == facts
    assert not facts.is_complete
