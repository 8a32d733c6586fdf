"""Adaptive estimators: what they decide, and that nothing but source labels decides it."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import cida
from cida import AdaptiveClassifier, AdaptiveRegressor, CIDAClassifier, CidaWarning
from cida.cli.app import main
from cida.coordinates import IndexWindows
from cida.datasets import make_circle, make_drifting_regression, make_hours, make_plane
from cida.estimators import adaptive_base
from cida.export.onnx_export import export_onnx
from cida.io.tensors import ModelFileError, read_model_file, write_model_file

CIRCLE = make_circle(n_per_domain=60, seed=100)
PLANE = make_plane(n_samples=800, seed=100)
HOURS = make_hours(n_samples=1500, seed=100)
NUMBERS = make_drifting_regression(n_samples=600, seed=100)


@pytest.fixture(autouse=True)
def _quick_networks(monkeypatch):
    monkeypatch.setattr(adaptive_base, "NETWORK_STEPS", 60)


def fit(world=PLANE, kind=AdaptiveClassifier, **settings):
    model = kind(random_state=0, **settings)
    return model.fit(world.x, world.training_labels, domain_index=world.u)


def outcome_frame(rows=300):
    rng = np.random.default_rng(5)
    age = rng.uniform(20, 80, rows).round(2)
    level = rng.normal(age / 10, 1).round(4)
    outcome = np.where(level - age / 10 > 0, "sick", "well").astype(object)
    outcome[age > 50] = None
    level = np.where(rng.random(rows) < 0.1, np.nan, level)
    ward = rng.choice(["north", "south", "west"], rows)
    return pd.DataFrame({"age": age, "level": level, "ward": ward, "outcome": outcome})


def test_what_moves_along_u_is_followed():
    model = fit(CIRCLE)
    decision = model.decision_
    assert decision.rule == "leave-range-out"
    assert decision.verdict == "adapt"
    target = ~CIRCLE.source
    right = model.predict(CIRCLE.x, domain_index=CIRCLE.u) == CIRCLE.y
    plain = LogisticRegression().fit(CIRCLE.x[CIRCLE.source], CIRCLE.y[CIRCLE.source])
    assert right[target].mean() > 0.95 > plain.score(CIRCLE.x[target], CIRCLE.y[target]) + 0.2


def test_candidates_have_losses_errors_and_weights():
    decision = fit().decision_
    names = [each.name for each in decision.candidates]
    assert len(set(names)) == len(names) > 8
    assert {"linear", "boosting with u as a feature", "network with the game"} <= {*names}
    assert sum(each.weight for each in decision.candidates) == pytest.approx(1)
    for each in decision.candidates:
        assert set(each.losses) == set(each.standard_errors) == {"near", "far"}
        assert all(value > 0 for value in each.standard_errors.values())


def test_nothing_depends_on_the_order_of_rows():
    first = fit()
    order = np.random.default_rng(3).permutation(len(PLANE.x))
    second = AdaptiveClassifier(random_state=0)
    second.fit(PLANE.x[order], PLANE.training_labels[order], domain_index=PLANE.u[order])
    for one, other in zip(first.decision_.candidates, second.decision_.candidates, strict=True):
        assert one.weight == pytest.approx(other.weight, abs=1e-5)
    assert first.decision_.summary() == second.decision_.summary()
    probability = first.predict_proba(PLANE.x, domain_index=PLANE.u)
    again = second.predict_proba(PLANE.x, domain_index=PLANE.u)
    np.testing.assert_allclose(again, probability, atol=1e-4)


def test_poisoned_target_labels_change_no_bit():
    def predict(y):
        model = AdaptiveClassifier(random_state=0)
        model.fit(PLANE.x, y, domain_index=PLANE.u, source=PLANE.source)
        return model.predict_proba(PLANE.x, domain_index=PLANE.u)

    poisoned = np.where(PLANE.source, PLANE.y, 1 - PLANE.y)
    assert (predict(PLANE.y) == predict(poisoned)).all()


def test_jobs_do_not_change_the_result():
    one, two = fit(max_candidates=5), fit(max_candidates=5, n_jobs=2)
    assert one.decision_ == two.decision_
    u = PLANE.u
    assert (one.predict_proba(PLANE.x, u) == two.predict_proba(PLANE.x, u)).all()


@pytest.mark.parametrize(
    ("world", "kind"), [(PLANE, AdaptiveClassifier), (NUMBERS, AdaptiveRegressor)]
)
def test_a_file_holds_all_of_it(world, kind, tmp_path):
    model = fit(world, kind)
    model.save(tmp_path / "model.safetensors")
    loaded = cida.load(tmp_path / "model.safetensors")
    assert type(loaded) is kind
    assert loaded.get_params() == model.get_params()
    assert loaded.decision_ == model.decision_
    predicted = model.predict(world.x, domain_index=world.u)
    assert (loaded.predict(world.x, domain_index=world.u) == predicted).all()


def rewritten(path, change):
    """The model file with another header."""
    old, header = read_model_file(path)
    change(header)
    write_model_file(path, old, header)
    return path


def weights_of(header):
    return header["networks"]["encoder"]["arguments"]["weights"]


@pytest.mark.parametrize(
    "change",
    [
        lambda header: weights_of(header).__setitem__(0, -1.0),
        lambda header: weights_of(header).__setitem__(0, 5.0),
        lambda header: header.update(decision=None),
        lambda header: header.update(class_name="CIDAClassifier"),
        lambda header: header.update(class_name="FittedState"),
        lambda header: header["networks"].update(encoder={"network": "MLP", "arguments": {}}),
        lambda header: header["decision"].update(rule="by heart"),
    ],
)
def test_a_file_that_was_tampered_with_is_refused(change, tmp_path):
    path = tmp_path / "model.safetensors"
    fit(max_candidates=4).save(path)
    with pytest.raises(ModelFileError):
        cida.load(rewritten(path, change))


def test_trees_that_lead_nowhere_are_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    fit(max_candidates=4).save(path)
    tensors, header = read_model_file(path)
    name = next(name for name in tensors if name.endswith("model.child"))
    tensors[name] = tensors[name] + 10**6
    write_model_file(path, tensors, header)
    with pytest.raises(ModelFileError):
        cida.load(path)


def test_an_onnx_file_predicts_what_the_committee_of_a_table_predicts(tmp_path):
    model = AdaptiveClassifier(max_candidates=6, random_state=0)
    model.fit(outcome_frame(), "outcome", domain_index=["age"])
    difference = export_onnx(model, tmp_path / "model.onnx")
    assert difference < 1e-5


def test_a_regression_is_followed_and_its_trend_has_an_end():
    model = fit(NUMBERS, AdaptiveRegressor)
    target = ~NUMBERS.source
    score = model.score(NUMBERS.x[target], NUMBERS.y[target], domain_index=NUMBERS.u[target])
    assert score > 0.5
    assert model.decision_.metric == "squared_error"
    with pytest.warns(CidaWarning, match="far from what was fitted"):
        far = model.predict(NUMBERS.x, domain_index=NUMBERS.u + 1e3)
    assert np.abs(far).max() < 10 * np.abs(NUMBERS.y).max()


def test_your_own_estimators_are_candidates_and_no_file_holds_them(tmp_path):
    own = make_pipeline(IndexWindows(), LogisticRegression())
    with sklearn.config_context(enable_metadata_routing=True):
        model = fit(candidates=[("own", own), ("dummy", DummyClassifier())], max_candidates=3)
    by_name = {each.name: each for each in model.decision_.candidates}
    assert list(by_name) == ["own", "dummy", "linear"]
    assert by_name["own"].losses["near"] < by_name["dummy"].losses["near"]
    with pytest.raises(ValueError, match="candidates has an estimator of your own"):
        model.save(tmp_path / "model.safetensors")
    assert not list(tmp_path.iterdir())


def test_expected_scores_hold_the_truth_and_say_how_far_they_were_checked():
    model = fit(HOURS, max_candidates=8)
    cells = model.expected_score(HOURS.x, HOURS.training_labels, HOURS.u, n_bins=8)
    right = model.predict(HOURS.x, domain_index=HOURS.u) == HOURS.y
    u = HOURS.u.ravel()
    inside = []
    for cell in cells:
        rows = (u >= cell.lo) & (u <= cell.hi) & ~HOURS.source
        assert 0 <= cell.low <= cell.score <= cell.high <= 1
        assert cell.n == rows.sum()
        inside.append(cell.low <= right[rows].mean() <= cell.high)
    assert np.mean(inside) > 0.7
    assert not all(cell.is_within_calibration for cell in cells)


@pytest.mark.parametrize("kind", [AdaptiveClassifier, AdaptiveRegressor])
def test_scikit_learn_finds_nothing_to_object_to(kind):
    results = check_estimator(kind(max_candidates=2), on_fail=None)
    failed = [each["check_name"] for each in results if each["status"] == "failed"]
    assert failed == []


def test_searches_and_cross_validation_route_the_index():
    labels = np.where(PLANE.source, PLANE.y, -1).astype(int)
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), AdaptiveClassifier(max_candidates=3))
        grid = {"adaptiveclassifier__max_candidates": [2, 3]}
        search = GridSearchCV(model, grid, cv=2).fit(PLANE.x, labels, domain_index=PLANE.u)
        scores = cross_val_score(
            AdaptiveClassifier(max_candidates=2),
            PLANE.x,
            labels,
            cv=2,
            params={"domain_index": PLANE.u},
        )
    assert search.best_score_ > 0.8
    assert len(scores) == 2


def test_without_an_index_it_is_a_plain_committee():
    x, y = PLANE.x[PLANE.source], PLANE.y[PLANE.source]
    model = AdaptiveClassifier(random_state=0).fit(x, y)
    assert model.decision_.verdict == "do-not-adapt"
    assert model.decision_.rule == "random-third"
    assert model.score(x, y) > 0.9


def test_one_index_value_in_the_source_has_no_range_to_leave_out():
    u = np.where(PLANE.source, 0.0, 1.0 + PLANE.u[:, 0])
    model = AdaptiveClassifier(max_candidates=4, random_state=0)
    model.fit(PLANE.x, PLANE.training_labels, domain_index=u)
    assert model.decision_.rule == "random-third"
    assert "no range along the index" in model.decision_.summary()[1]
    with pytest.raises(ValueError, match="no range along the index"):
        model.expected_score(PLANE.x, PLANE.training_labels, u)


def test_a_source_too_small_for_a_trial_says_so_and_names_no_losers():
    rows = np.r_[np.flatnonzero(PLANE.source)[:40], np.flatnonzero(~PLANE.source)[:40]]
    model = AdaptiveClassifier(max_candidates=4, random_state=0)
    model.fit(PLANE.x[rows], PLANE.training_labels[rows], domain_index=PLANE.u[rows])
    weights = {each.name: each.weight for each in model.decision_.candidates}
    assert weights["linear"] == weights["linear with u as a feature"] == 0.5
    assert "too small for a trial" in model.decision_.summary()[1]
    assert "lost" not in model.decision_.summary()[1]


def test_a_budget_keeps_the_first_candidates():
    assert len(fit(max_candidates=3).decision_.candidates) == 3
    assert len(fit(time_budget=0.0).decision_.candidates) == 2


@pytest.mark.parametrize(
    ("settings", "x", "words"),
    [
        ({"max_candidates": 0}, PLANE.x, "max_candidates must be at least 1"),
        ({"time_budget": -1.0}, PLANE.x, "time_budget must be at least 0"),
        ({}, np.zeros((len(PLANE.x), 4, 4)), "takes rows of columns; use CIDAClassifier"),
    ],
)
def test_what_cannot_be_done_is_told(settings, x, words):
    with pytest.raises(ValueError, match=words):
        AdaptiveClassifier(**settings).fit(x, PLANE.training_labels, domain_index=PLANE.u)


def test_a_failed_fit_leaves_the_estimator_as_it_was():
    model = fit(max_candidates=2)
    state = model.state_
    with pytest.raises(ValueError, match="constant"):
        model.fit(PLANE.x, PLANE.training_labels, domain_index=np.zeros(len(PLANE.x)))
    assert model.state_ is state


def test_both_doors_are_one(tmp_path):
    frame, file, run, out = outcome_frame(), *(tmp_path / n for n in ("t.csv", "run", "p.csv"))
    frame.to_csv(file, index=False)
    command = ["fit", file, "--label", "outcome", "--index", "age", "--out", run, "--seed", "3"]
    assert main([*map(str, command), "--method", "adaptive"]) == 0
    assert main(["predict", str(run), str(file), "--out", str(out)]) == 0
    model = AdaptiveClassifier(random_state=3).fit(frame, "outcome", domain_index=["age"])
    predicted = pd.read_csv(out)
    np.testing.assert_allclose(
        predicted[["probability_sick", "probability_well"]].to_numpy(),
        model.predict_proba(frame).round(6),
        atol=1e-12,
    )
    assert (run / "report.html").exists()


def test_flags_of_one_network_are_refused(tmp_path, capsys):
    frame, file = outcome_frame(), tmp_path / "t.csv"
    frame.to_csv(file, index=False)
    command = ["fit", file, "--label", "outcome", "--index", "age", "--out", tmp_path / "run"]
    assert main([*map(str, command), "--method", "adaptive", "--steps", "9"]) == 2
    assert "steps is given, and method adaptive does not take it" in capsys.readouterr().err


def test_the_paper_s_method_has_no_decision():
    model = CIDAClassifier(steps=10, random_state=0)
    model.fit(PLANE.x, PLANE.training_labels, domain_index=PLANE.u)
    assert model.decision_ is None
