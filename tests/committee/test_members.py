"""The models of a committee predict what the models that they were made of predict."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge

from cida.committee.members import Committee, CommitteeMember, Features
from cida.committee.models import fit_boosting, fit_linear
from cida.networks import network_config, network_from_config

DATA = {1: load_diabetes, 2: load_breast_cancer, 3: load_wine}


def load(outputs, with_missing=False):
    x, y = DATA[outputs](return_X_y=True)
    x = x.copy()
    if with_missing:
        x[::7, 2] = np.nan
    return x, y


@pytest.mark.parametrize("outputs", DATA)
@pytest.mark.parametrize("with_missing", [False, True])
def test_trees_are_those_of_scikit_learn(outputs, with_missing):
    x, y = load(outputs, with_missing)
    kind = HistGradientBoostingRegressor if outputs == 1 else HistGradientBoostingClassifier
    model = kind(early_stopping=False, random_state=0).fit(x, y)
    ours = fit_boosting(x, y, np.ones(len(x)), outputs)(torch.from_numpy(x)).numpy()
    if outputs == 1:
        np.testing.assert_allclose(ours[:, 0], model.predict(x), rtol=1e-9)
    else:
        np.testing.assert_allclose(np.exp(ours), model.predict_proba(x), atol=1e-9)


@pytest.mark.parametrize("outputs", DATA)
def test_linear_models_are_those_of_scikit_learn(outputs):
    x, y = load(outputs)
    scaled = (x - x.mean(0)) / x.std(0)
    ours = fit_linear(x, y, np.ones(len(x)), outputs)(torch.from_numpy(x)).numpy()
    if outputs == 1:
        np.testing.assert_allclose(ours[:, 0], Ridge().fit(scaled, y).predict(scaled), rtol=1e-6)
    else:
        model = LogisticRegression(max_iter=300).fit(scaled, y)
        np.testing.assert_allclose(np.exp(ours), model.predict_proba(scaled), atol=1e-6)


@pytest.mark.parametrize("fit", [fit_boosting, fit_linear])
@pytest.mark.parametrize("missing_class", [0, 1, 2])
def test_a_class_without_labels_is_as_good_as_impossible(fit, missing_class):
    x, y = load(3)
    rows = y != missing_class
    model = fit(x[rows], y[rows], np.ones(rows.sum()), 3)
    probability = model(torch.from_numpy(x)).exp().numpy()
    np.testing.assert_allclose(probability.sum(1), 1.0)
    assert probability[:, missing_class].max() < 1e-9
    assert (probability[rows].argmax(1) == y[rows]).mean() > 0.95


@given(weights=st.lists(st.floats(0.01, 1.0), min_size=2, max_size=4), seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_a_committee_is_the_weighted_mean_of_its_members(weights, seed):
    x, y = load(3)
    rng = np.random.default_rng(seed)
    weights = np.array(weights) / sum(weights)
    rows, e = torch.from_numpy(x).float(), torch.zeros(len(x), 1)
    features = Features(x.shape[1], (), (), 1, "raw")
    members = []
    for _ in weights:
        chosen = rng.permutation(len(x))[:90]
        model = fit_linear(x[chosen], y[chosen], np.ones(90), 3)
        members.append(CommitteeMember(features, model))
    mean = sum(w * m(rows, e).exp() for w, m in zip(weights, members, strict=True))
    torch.testing.assert_close(Committee(members, weights)(rows, e).exp(), mean)


def test_a_committee_is_described_and_built_again():
    x, y = load(2, with_missing=True)
    tree = fit_boosting(x, y, np.ones(len(x)), 2)
    members = [
        CommitteeMember(Features(x.shape[1], (), (), 1, mode, for_trees=True), tree)
        for mode in ("raw", "windows", "moving-frame")
    ]
    committee = Committee(members, [0.5, 0.3, 0.2])
    copy = network_from_config(network_config(committee))
    copy.load_state_dict(committee.state_dict())
    rows, e = torch.from_numpy(x).float().nan_to_num(0.0), torch.rand(len(x), 1)
    torch.testing.assert_close(copy(rows, e), committee(rows, e), rtol=0, atol=0)


def test_an_index_feature_stops_at_its_limits():
    features = Features(1, (), (), 1, "index")
    x, e = torch.zeros(5, 1), torch.tensor([[-9.0], [-1.0], [0.0], [1.0], [9.0]])
    torch.testing.assert_close(features(x, e)[:, 1:], e)
    features.limit_index(torch.tensor([-2.0]), torch.tensor([1.5]))
    assert features(x, e)[:, 1].tolist() == [-2.0, -1.0, 0.0, 1.0, 1.5]
