"""Coordinates along u as scikit-learn transformers."""

import numpy as np
import pytest
import sklearn
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from cida import Line, Periodic, Product
from cida.coordinates import (
    IndexCentering,
    IndexWindows,
    MovingFrame,
    MovingFrameLayer,
    PrincipalAxes,
    WindowsLayer,
)
from cida.datasets import make_circle, make_drifting_regression

ALL = (IndexCentering, IndexWindows, MovingFrame, PrincipalAxes)
WORLD = make_circle(n_per_domain=30, seed=100)


@pytest.fixture(autouse=True)
def _routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_windows_and_frames_are_those_of_the_networks():
    index = (
        Line()
        .fit(torch.from_numpy(WORLD.u).reshape(-1, 1))
        .embed(torch.from_numpy(WORLD.u).reshape(-1, 1))
    )
    x = torch.from_numpy(WORLD.x)
    for transformer, layer in (
        (IndexWindows(), WindowsLayer(2, 1)),
        (MovingFrame(), MovingFrameLayer(2)),
        (PrincipalAxes(), MovingFrameLayer(2, "axes")),
    ):
        moved = transformer.fit_transform(WORLD.x, domain_index=WORLD.u)
        expected = layer.fit(x, index)(x.float(), index.float()).numpy()
        np.testing.assert_allclose(moved, expected, atol=1e-6)


def test_centering_takes_away_what_drifts_and_keeps_the_scale():
    rng = np.random.default_rng(0)
    u = rng.uniform(0, 10, 4000)
    noise = rng.normal(size=(4000, 2)) * [1.0, 5.0]
    moved = IndexCentering().fit_transform(noise + 3 * u[:, None], domain_index=u)
    assert np.abs([moved[u < 2].mean(0), moved[u > 8].mean(0)]).max() < 0.6
    np.testing.assert_allclose(moved.std(0), [1.0, 5.0], rtol=0.1)


@pytest.mark.parametrize("kind", ALL)
def test_a_pipeline_routes_the_index(kind):
    model = make_pipeline(kind(), LogisticRegression())
    model.fit(WORLD.x, WORLD.y, domain_index=WORLD.u)
    by_hand = kind().fit_transform(WORLD.x, domain_index=WORLD.u)
    expected = LogisticRegression().fit(by_hand, WORLD.y).predict(by_hand)
    assert (model.predict(WORLD.x, domain_index=WORLD.u) == expected).all()


def test_a_search_routes_the_index_and_a_clone_is_unfitted():
    model = make_pipeline(IndexWindows(), LogisticRegression())
    search = GridSearchCV(model, {"logisticregression__C": [0.1, 1.0]}, cv=2)
    search.fit(WORLD.x, WORLD.y, domain_index=WORLD.u)
    assert set(search.best_params_) == {"logisticregression__C"}
    fitted = IndexWindows(Line()).fit(WORLD.x, domain_index=WORLD.u)
    assert not hasattr(clone(fitted), "layer_")


def test_missing_values_stay_missing_and_move_nothing():
    x = WORLD.x.copy()
    x[::5, 0] = np.nan
    moved = IndexWindows().fit_transform(x, domain_index=WORLD.u)
    assert (np.isnan(moved) == np.isnan(x)).all()
    with pytest.raises(ValueError, match="NaN"):
        MovingFrame().fit(x, domain_index=WORLD.u)


def test_an_index_of_two_columns_and_a_circle_have_windows():
    u = np.column_stack([WORLD.u.ravel(), 24 * WORLD.u.ravel() % 24])
    moved = IndexWindows(Product([Line(), Periodic(24)])).fit_transform(WORLD.x, domain_index=u)
    assert moved.shape == WORLD.x.shape
    assert np.isfinite(moved).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: IndexWindows().fit(WORLD.x), "domain_index is missing"),
        (lambda: IndexWindows().fit(WORLD.x, domain_index=WORLD.u[:5]), "has 5 rows"),
        (
            lambda: MovingFrame().fit(WORLD.x, domain_index=np.column_stack([WORLD.u, WORLD.u])),
            "one number on a line",
        ),
        (
            lambda: (
                IndexWindows()
                .fit(WORLD.x, domain_index=WORLD.u)
                .transform(WORLD.x, np.column_stack([WORLD.u, WORLD.u]))
            ),
            "fitted with 1",
        ),
    ],
)
def test_what_cannot_be_done_is_told(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_labels_are_not_read():
    data = make_drifting_regression(n_samples=300)
    one = IndexWindows().fit(data.x, data.y, domain_index=data.u).transform(data.x, data.u)
    other = IndexWindows().fit(data.x, -data.y, domain_index=data.u).transform(data.x, data.u)
    assert (one == other).all()
