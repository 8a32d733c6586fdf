"""The alignment certificate of a fitted model."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from cida import CIDAClassifier, CIDARegressor, Line, Periodic, Product
from cida.certificate.certificate import Certificate

SMALL = {
    "capacity": "mlp",
    "steps": 60,
    "encoder_hidden": (16,),
    "encoding_width": 6,
    "random_state": 100,
}


def drifting(rows=600, seed=100, regression=False):
    """Two classes (or a number) whose inputs drift along u from 0 to 2; labelled up to 1."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(0, 2, rows)
    y = rng.normal(size=rows) if regression else rng.integers(0, 2, rows).astype(float)
    x = np.column_stack([y, -y]) + 0.3 * rng.normal(size=(rows, 2)) + 2 * u[:, None]
    return x, np.where(u <= 1, y, np.nan), u


def fitted(kind=CIDAClassifier, **more):
    x, y, u = drifting(regression=kind is CIDARegressor)
    return kind(**{**SMALL, **more}).fit(x, y, domain_index=u)


@pytest.fixture(scope="module")
def plain():
    """An encoder that nobody kept from telling u."""
    return fitted(discriminator=None)


def test_an_encoder_that_was_never_aligned_is_refuted(plain):
    x, _, u = drifting(seed=101)
    report = plain.certify(x, domain_index=u)
    assert isinstance(report, Certificate)
    assert report.is_dependent
    assert report.given_prediction.is_dependent
    assert report.prediction_kind == "class"
    assert report.marginal.linear_r2 > 0.3
    assert report.marginal.linear_f_test.p_value < 1e-10
    assert "z still tells the mean of u, by a line" in report.summary()[0]
    json.dumps(report.to_dict(), allow_nan=False)


def test_a_regression_is_looked_at_within_bins_of_its_prediction():
    model = fitted(CIDARegressor, discriminator=None)
    x, _, u = drifting(seed=102, regression=True)
    report = model.certify(x, u)
    assert report.prediction_kind == "number"
    assert report.given_prediction is not None
    assert any(line.startswith("Given the predicted number") for line in report.summary())


def test_windows_along_the_index_take_most_of_it_away(plain):
    x, _, u = drifting(seed=103)
    windows = fitted(discriminator=None, coordinates="windows")
    before = plain.certify(x, u).marginal
    after = windows.certify(x, u).marginal
    assert after.linear_r2 < before.linear_r2 / 3


def test_no_label_is_asked_for_and_the_model_stays_as_it_was(plain):
    x, _, u = drifting(rows=150, seed=104)
    before = plain.transform(x, domain_index=u)
    first, again = (plain.certify(x, u) for _ in range(2))
    assert first == again
    assert np.array_equal(before, plain.transform(x, domain_index=u))


def test_columns_of_a_frame_are_named():
    x, y, u = drifting()
    frame = pd.DataFrame({"age": u, "hour": 24 * np.random.default_rng(0).random(len(u))})
    space = Product([Line(), Periodic(24)])
    model = CIDAClassifier(**SMALL, discriminator=None, space=space)
    report = model.fit(x, y, domain_index=frame).certify(x, frame)
    assert report.index_names == ("age", "hour")
    assert any("age from" in line and "hour from" in line for line in report.summary())


def test_a_model_that_is_not_fitted_is_refused():
    x, _, u = drifting()
    with pytest.raises(NotFittedError):
        CIDAClassifier().certify(x, u)


def test_a_model_without_an_index_is_refused():
    x, y, u = drifting()
    model = CIDAClassifier(**SMALL).fit(x[u <= 1], y[u <= 1])
    with pytest.raises(ValueError, match="domain_index was not given to fit, so there is no index"):
        model.certify(x, u)


def test_a_missing_or_constant_index_is_refused(plain):
    x, _, u = drifting()
    with pytest.raises(ValueError, match="domain_index is missing; give the index of each row"):
        plain.certify(x, None)
    with pytest.raises(ValueError, match="domain_index is constant in these rows"):
        plain.certify(x, np.full(len(u), 0.5))


def test_too_few_rows_are_refused_with_how_many_are_needed(plain):
    x, _, u = drifting()
    with pytest.raises(ValueError, match=r"X has 60 rows; .* needs at least 100"):
        plain.certify(x[:60], u[:60])
