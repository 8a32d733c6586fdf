"""The index travels through pipelines and searches."""

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from cida import CIDAClassifier, CIDARegressor, Histogram

SMALL = {"steps": 5, "encoder_hidden": (8,), "encoding_width": 4, "random_state": 0}
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)  # every index in every fold


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def minus_one(world):
    """Labels with -1 where unlabelled: scikit-learn's splitters refuse NaN."""
    return np.where(world.source, world.y, -1)


def at(world):
    """What a fitted model predicts from."""
    return {"X": world.x, "domain_index": world.u}


def pipeline(kind=CIDAClassifier, **options):
    return Pipeline([("scale", StandardScaler()), ("clf", kind(**SMALL, **options))])


@pytest.mark.parametrize("kind", [CIDAClassifier, CIDARegressor])
def test_a_pipeline_hands_the_index_on(routing, world, kind):
    y = world.training_labels
    pipe = pipeline(kind, coordinates="learned").fit(world.x, y, domain_index=world.u)
    direct = kind(**SMALL, coordinates="learned")
    scaled = StandardScaler().fit_transform(world.x)
    direct.fit(scaled, y, domain_index=world.u)
    expected = direct.predict(scaled, domain_index=world.u)
    assert np.array_equal(pipe.predict(world.x, domain_index=world.u), expected)
    encoding = pipe.transform(world.x, domain_index=world.u)
    assert np.array_equal(encoding, direct.transform(scaled, domain_index=world.u))
    score = pipe.score(world.x, world.y, domain_index=world.u)
    assert score == direct.score(scaled, world.y, domain_index=world.u)


def test_a_pipeline_hands_the_index_on_to_predict_proba(routing, world):
    pipe = pipeline(coordinates="learned")
    pipe.fit(world.x, world.training_labels, domain_index=world.u)
    probability = pipe.predict_proba(world.x, domain_index=world.u)
    predicted = pipe.predict(world.x, domain_index=world.u)
    assert np.array_equal(pipe.classes_[probability.argmax(1)], predicted)


def test_a_pipeline_hands_the_source_on(routing, world):
    pipe = pipeline().fit(world.x, world.y, domain_index=world.u, source=world.source)
    other = pipeline().fit(world.x, world.training_labels, domain_index=world.u)
    assert np.array_equal(pipe.predict_proba(**at(world)), other.predict_proba(**at(world)))


def test_weights_are_handed_on_when_they_are_asked_for(routing, world, minus_one):
    weight = np.where(world.y, 9.0, 1.0)
    model = CIDAClassifier(**SMALL).set_fit_request(sample_weight=True)
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipe = make_pipeline(scaler, model)
    pipe.fit(world.x, minus_one, domain_index=world.u, sample_weight=weight)
    by_class = pipeline(class_weight={0: 1, 1: 9}).fit(world.x, minus_one, domain_index=world.u)
    assert np.array_equal(pipe.predict_proba(**at(world)), by_class.predict_proba(**at(world)))


def test_the_encoding_feeds_a_later_step(routing, world):
    encoder = CIDAClassifier(**SMALL, coordinates="learned")
    pipe = make_pipeline(encoder, LogisticRegression())
    pipe.fit(world.x, world.y, domain_index=world.u, source=world.source)
    assert pipe[-1].n_features_in_ == 4
    assert pipe.predict(world.x, domain_index=world.u).shape == (72,)


@pytest.mark.parametrize("coordinates", ["auto", "raw", "learned"])
def test_cross_validation_splits_the_index_with_the_rows(routing, world, minus_one, coordinates):
    model = pipeline(coordinates=coordinates)
    scores = cross_val_score(model, world.x, minus_one, cv=FOLDS, params={"domain_index": world.u})
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()


def test_cross_validation_trains_each_fold_on_its_own_rows(routing, world, minus_one):
    folds = [(np.arange(1, 72, 2), np.arange(0, 72, 2))]
    result = cross_validate(
        CIDAClassifier(**SMALL, coordinates="learned"),
        world.x,
        minus_one,
        cv=folds,
        params={"domain_index": world.u},
        return_estimator=True,
        error_score="raise",
    )
    (train, test) = folds[0]
    direct = CIDAClassifier(**SMALL, coordinates="learned")
    direct.fit(world.x[train], minus_one[train], domain_index=world.u[train])
    (fitted,) = result["estimator"]
    expected = direct.predict_proba(world.x, domain_index=world.u)
    assert np.array_equal(fitted.predict_proba(world.x, domain_index=world.u), expected)
    score = direct.score(world.x[test], minus_one[test], domain_index=world.u[test])
    assert result["test_score"].tolist() == [score]


@pytest.mark.parametrize(
    "grid",
    [
        {"clf__lambda_d": [0.0, 2.0]},
        {"clf__discriminator": ["l2", "histogram", Histogram(bins=5), None]},
    ],
    ids=["lambda_d", "discriminator"],
)
def test_a_grid_search_finds_and_refits(routing, world, minus_one, grid):
    search = GridSearchCV(pipeline(), grid, cv=FOLDS, error_score="raise")
    search.fit(world.x, minus_one, domain_index=world.u)
    (values,) = grid.values()
    assert len(search.cv_results_["mean_test_score"]) == len(values)
    best = pipeline().set_params(**search.best_params_)
    best.fit(world.x, minus_one, domain_index=world.u)
    assert np.array_equal(search.best_estimator_.predict(**at(world)), best.predict(**at(world)))


def test_without_routing_a_pipeline_takes_prefixed_arguments(world):
    pipe = pipeline(coordinates="learned")
    pipe.fit(world.x, world.training_labels, clf__domain_index=world.u)
    scaled = StandardScaler().fit_transform(world.x)
    direct = CIDAClassifier(**SMALL, coordinates="learned")
    direct.fit(scaled, world.training_labels, domain_index=world.u)
    expected = direct.predict(scaled, domain_index=world.u)
    assert np.array_equal(pipe.predict(world.x, domain_index=world.u), expected)


def test_without_routing_a_grid_search_splits_the_index(world, minus_one):
    grid = {"lambda_d": [0.0, 2.0]}
    # Without routing no index comes to score, so the encoder must do without it.
    model = CIDAClassifier(**SMALL, coordinates="raw")
    search = GridSearchCV(model, grid, cv=FOLDS, error_score="raise")
    search.fit(world.x, minus_one, domain_index=world.u)
    assert search.best_estimator_.index_width_ == 1
    assert search.predict(world.x).shape == (72,)
