"""Tables at the estimators' own door: columns by name, whatever holds them."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cida import CIDAClassifier, CIDARegressor, CidaWarning, load
from cida.networks.builders import image_or_signal_shape

QUICK = {"discriminator": "l2", "steps": 10, "random_state": 3}
ROWS = 400


@pytest.fixture(scope="module")
def frame():
    """Two informative numbers, a category and a date; labelled up to age 50."""
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 80, ROWS)
    a, b = rng.normal(size=(2, ROWS))
    outcome = np.where(a + b > 0.5, "sick", "well").astype(object)
    return pd.DataFrame(
        {
            "age": age,
            "a": a,
            "b": np.where(rng.random(ROWS) < 0.1, np.nan, b),
            "ward": rng.choice(["A", "B"], ROWS),
            "came": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, ROWS), "D"),
            "outcome": np.where(age <= 50, outcome, None),
            "cost": np.where(age <= 50, 1e6 + 1e4 * (a + b), np.nan),
        }
    )


@pytest.fixture(scope="module")
def ill(frame):
    return frame.drop(columns="cost")


@pytest.fixture(scope="module")
def fitted(ill):
    return CIDAClassifier(**QUICK).fit(ill, "outcome", domain_index="age")


def inputs(frame):
    return frame.drop(columns=["age", "outcome", "cost"])


# --- what is learned -----------------------------------------------------------------------------


def test_labels_of_the_target_change_no_bit(frame):
    x, source = inputs(frame), (frame["age"] <= 50).to_numpy()
    truth = np.where(frame["a"] > 0, "sick", "well")
    probabilities = []
    for hidden in ("sick", "well"):
        model = CIDAClassifier(**QUICK)
        y = np.where(source, truth, hidden)
        model.fit(x, y, domain_index=frame["age"].to_numpy(), source=source)
        probabilities.append(model.predict_proba(x, domain_index=frame["age"].to_numpy()))
    assert np.array_equal(*probabilities)


def test_a_saved_model_predicts_the_same(ill, fitted, tmp_path):
    want = fitted.predict_proba(ill)
    fitted.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(ill), want)
    assert again.state_.table == fitted.state_.table
    assert again.state_.layout == fitted.state_.layout
    assert again.plan_ == fitted.plan_
    assert again.classes_.tolist() == ["sick", "well"]
    assert sorted(again.feature_names_in_) == ["a", "b", "came", "ward"]
    again.save(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "model").read_bytes()
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(ill), want)


def test_a_loaded_model_can_be_fitted_again(ill, fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = load(tmp_path / "model").fit(ill, "outcome", domain_index="age")
    assert np.array_equal(again.predict_proba(ill), fitted.predict_proba(ill))


def test_members_predict_their_mean(ill, fitted, tmp_path):
    both = CIDAClassifier(**QUICK, n_members=2).fit(ill, "outcome", domain_index="age")
    assert len(both.state_.members) == 2
    each = []
    for member in both.state_.members:
        alone = CIDAClassifier(**QUICK)
        alone.state_ = replace(both.state_, members=(member,))
        each.append(alone.predict_proba(ill))
    np.testing.assert_allclose(both.predict_proba(ill), (each[0] + each[1]) / 2, rtol=1e-10)
    assert np.array_equal(each[0], fitted.predict_proba(ill))  # the first is that of a single fit
    assert not np.allclose(each[0], each[1])
    both.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict_proba(ill), both.predict_proba(ill))


def test_a_regression_predicts_in_the_units_of_the_label(frame):
    table = frame.drop(columns="outcome")
    settings = {**QUICK, "discriminator": None, "steps": 300}
    model = CIDARegressor(**settings, n_members=2).fit(table, "cost", domain_index=["age"])
    known = frame["cost"].notna().to_numpy()
    cost = frame["cost"].to_numpy()[known]
    assert model.state_.labels.mean == pytest.approx(cost.mean())
    predicted = model.predict(table)
    assert 1 - ((predicted[known] - cost) ** 2).mean() / cost.var() > 0.5
    assert model.score(table, frame["cost"]) > 0.5


def test_far_rows_are_told(ill, fitted):
    u = ill["age"]
    reach = 2 * max(u.max() - u.mean(), u.mean() - u.min()) * 0.1
    rows = ill[:5].assign(
        age=[u.min(), u.max(), u.max() + 0.9 * reach, u.max() + 1.2 * reach, u.min() - 1.2 * reach]
    )
    assert fitted.is_extrapolated(rows).tolist() == [False, False, False, True, True]


# --- what holds a table --------------------------------------------------------------------------


def test_every_kind_of_table_gives_the_same_model(ill, fitted, tmp_path):
    ill.to_parquet(tmp_path / "table.parquet")
    want = fitted.predict_proba(ill)
    tables = [
        pl.from_pandas(ill),
        pa.Table.from_pandas(ill, preserve_index=False),
        {name: ill[name].to_numpy() for name in ill},
        tmp_path / "table.parquet",
        str(tmp_path / "table.parquet"),
    ]
    for table in tables:
        model = CIDAClassifier(**QUICK).fit(table, "outcome", domain_index="age")
        assert np.array_equal(model.predict_proba(table), want), type(table)
        assert np.array_equal(fitted.predict_proba(table), want), type(table)


def test_a_frame_with_texts_dates_and_gaps_takes_labels_and_index_as_arrays(kind, frame):
    x, age = inputs(frame), frame["age"].to_numpy()
    y = frame["outcome" if kind is CIDAClassifier else "cost"].to_numpy()
    model = kind(**QUICK).fit(x, y, domain_index=age)
    predicted = model.predict(x, domain_index=age)
    assert predicted.shape == (ROWS,)
    assert sorted(model.feature_names_in_) == sorted(x)
    assert np.isfinite(model.transform(x, domain_index=age)).all()
    part = slice(7, 60)
    assert np.array_equal(model.predict(x[part], domain_index=age[part]), predicted[part])
    with pytest.raises(ValueError, match=f"domain_index has {ROWS - 1} rows but X has {ROWS}"):
        model.predict(x, domain_index=age[1:])
    with pytest.raises(ValueError, match=f"{kind.__name__} requires y to be passed"):
        kind(**QUICK).fit(x, None, domain_index=age)


def test_a_frame_without_an_index_is_plain_learning(frame):
    known = (frame["age"] <= 50).to_numpy()
    x, y = inputs(frame)[known], frame["outcome"][known].to_numpy()
    model = CIDAClassifier(steps=20, random_state=0).fit(x, y)
    assert model.index_width_ is None
    assert model.predict(x).shape == y.shape


def test_an_array_is_refused_by_a_model_of_a_table(ill, fitted):
    with pytest.raises(ValueError, match="X is a ndarray, and the model was fitted on a table"):
        fitted.predict(ill[["a", "b"]].to_numpy())


@pytest.mark.parametrize("name", ["source", "sample_weight"])
def test_what_a_column_of_labels_cannot_go_with_is_refused(ill, name):
    with pytest.raises(ValueError, match=f"^{name} is given, and y names a column of the table"):
        CIDAClassifier(**QUICK).fit(ill, "outcome", domain_index="age", **{name: np.ones(ROWS)})


def test_a_fit_on_an_array_forgets_the_names_of_a_frame():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(80, 2)), np.arange(80) % 2
    model = CIDAClassifier(steps=2, random_state=0)
    model.fit(pd.DataFrame(x, columns=["east", "north"]), y)
    assert model.feature_names_in_.tolist() == ["east", "north"]
    model.fit(x, y)
    assert not hasattr(model, "feature_names_in_")


# --- images and signals --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [((28, 28), (1, 28, 28)), ((1, 28, 28), (1, 28, 28)), ((1, 300), (1, 300)), ((3, 64), (3, 64))],
)
def test_shapes_that_have_an_encoder(shape, wanted):
    assert image_or_signal_shape(shape) == wanted


@pytest.mark.parametrize("shape", [(3, 28, 28), (3, 20), (1, 20, 30), (2, 2, 2, 2)])
def test_other_shapes_are_refused(shape):
    words = r"X has rows of shape .*; give vectors, square images"
    with pytest.raises(ValueError, match=words):
        image_or_signal_shape(shape)
    x, u = np.zeros((12, *shape)), np.arange(12.0)
    with pytest.raises(ValueError, match=words):
        CIDAClassifier(**QUICK).fit(x, np.where(u < 6, u % 2, np.nan), domain_index=u)


@pytest.mark.parametrize("shape", [(16, 16), (1, 16, 16), (2, 128)])
@pytest.mark.filterwarnings("ignore::cida.CidaWarning")
def test_images_and_signals_need_no_encoder_of_ones_own(shape, tmp_path):
    rng = np.random.default_rng(0)
    x, u = rng.normal(size=(40, *shape)), np.linspace(0, 1, 40)
    y = np.where(u < 0.5, np.arange(40) % 2, np.nan)
    settings = {**QUICK, "steps": 2}
    model = CIDAClassifier(**settings).fit(x, y, domain_index=u)
    assert model.plan_.coordinates == "learned"
    want = model.predict_proba(x, domain_index=u)
    model.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict_proba(x, domain_index=u), want)
    with pytest.raises(ValueError, match="X"):
        model.predict(x[..., :-1], domain_index=u)


@pytest.mark.filterwarnings("ignore::cida.CidaWarning")
def test_an_npz_file_of_images_predicts_as_the_arrays_do(tmp_path):
    rng = np.random.default_rng(0)
    x, u = rng.normal(size=(40, 16, 16)).astype(np.float32), np.linspace(0, 1, 40)
    y = np.where(u < 0.5, np.arange(40) % 2, np.nan)
    np.savez(tmp_path / "images.npz", X=x, y=y, u=u)
    settings = {**QUICK, "steps": 2}
    of_file = CIDAClassifier(**settings).fit(tmp_path / "images.npz")
    of_arrays = CIDAClassifier(**settings).fit(x, y, domain_index=u)
    np.testing.assert_allclose(
        of_file.predict_proba(tmp_path / "images.npz"),
        of_arrays.predict_proba(x, domain_index=u),
        atol=1e-6,
    )


def test_a_far_index_is_warned_of_in_arrays(frame):
    x, age = inputs(frame), frame["age"].to_numpy()
    model = CIDAClassifier(**QUICK).fit(x, frame["outcome"].to_numpy(), domain_index=age)
    with pytest.warns(CidaWarning, match="domain_index is far"):
        assert model.is_extrapolated(x, domain_index=age + 500).all()
    with pytest.warns(CidaWarning, match="domain_index is far"):
        model.predict(x, domain_index=age + 500)


def test_a_frame_in_raw_coordinates_needs_no_index_to_predict(frame):
    x, age = inputs(frame), frame["age"].to_numpy()
    model = CIDAClassifier(**QUICK, coordinates="raw")
    model.fit(x, frame["outcome"].to_numpy(), domain_index=age)
    assert np.array_equal(model.predict_proba(x), model.predict_proba(x, domain_index=age))
