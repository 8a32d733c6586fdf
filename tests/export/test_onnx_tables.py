"""Models of tables as ONNX files: an input for each column, texts, holes and dates as they are."""

import warnings

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cida import CIDAClassifier, CIDARegressor, CidaWarning, Line, Periodic, Product
from cida.estimators.validation import FitArguments
from cida.export.onnx_export import export_onnx
from cida.export.onnx_graph import MAX_ABS_SCALED_VALUE
from cida.export.signature import build_onnx_inputs
from cida.tables import schema

pytestmark = pytest.mark.filterwarnings("ignore::cida.CidaWarning")

EQUAL = 1e-5
EPOCH = pd.Timestamp("1970-01-01")


def farm(rows, seed):
    """Sensors that report at all hours of a year; of those of the second half nobody knows."""
    rng = np.random.default_rng(seed)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 366, rows), "D")
    warm = rng.normal(290, 8, rows)
    frame = pd.DataFrame(
        {
            "day": day,
            "hour": rng.uniform(0, 24, rows).round(2),
            "warm": np.where(rng.random(rows) < 0.2, np.nan, warm),
            "label": rng.normal(1e9, 3, rows),  # the name of an output
            "add_3": rng.normal(0, 1e-6, rows),  # a name that torch gives its own values
            "dry": rng.choice([True, False], rows),
            "since": day - pd.to_timedelta(rng.integers(1, 4000, rows), "D"),
            "soil type": rng.choice(["clay", "sand", "loam, wet"], rows),
            "fault": np.where(warm > 290, "yes", "no"),
            "yield": 5e4 + 100 * warm,
        }
    )
    late = frame["day"] > "2024-07-01"
    frame["fault"] = frame["fault"].astype(object).where(~late, None)
    frame["yield"] = frame["yield"].where(~late)
    return frame


def fit(folder, model, label, index, drop):
    farm(400, seed=100).to_csv(folder / "farm.csv", index=False)
    given = FitArguments(folder / "farm.csv", label, index, drop=drop)
    return model.fit_data(model.read_training_data(given))


BRIEF = {"steps": 20, "discriminator": "histogram", "capacity": "mlp", "random_state": 100}


def cells(frame, inputs):
    """What the file takes, made from the table's columns by the words of its inputs."""
    feed = {}
    for one in inputs:
        column = frame[one.column]
        if one.kind == "category":
            feed[one.name] = column.fillna("").to_numpy(dtype=object)
        elif "date" in one.kind:
            feed[one.name] = ((column - EPOCH) / pd.Timedelta(days=1)).to_numpy(np.float64)
        else:
            feed[one.name] = column.to_numpy(np.float64, na_value=np.nan)
    return feed


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    """Two models of classes along a date and an hour that wraps round, and their file."""
    folder = tmp_path_factory.mktemp("faults")
    model = CIDAClassifier(**BRIEF, space=Product([Line(), Periodic(24)]), n_members=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        fit(folder, model, "fault", ("day", "hour"), drop=("yield",))
    assert export_onnx(model, folder / "faults.onnx") < EQUAL
    return model, onnxruntime.InferenceSession(folder / "faults.onnx")


@pytest.mark.parametrize("rows", [1, 1000])
def test_a_file_predicts_what_the_mean_of_the_models_predicts(faults, rows):
    model, session = faults
    frame = farm(rows, seed=200 + rows)
    probability, label = session.run(
        ["probabilities", "label"], cells(frame, build_onnx_inputs(model.state_))
    )
    want = model.predict_proba(frame)
    assert np.abs(probability - want).max() < EQUAL
    assert (label == model.classes_.astype(object)[want.argmax(1)]).all()


def test_inputs_have_the_names_of_columns_but_where_an_output_has_it(faults):
    _, session = faults
    named = {one.name: (one.type, one.shape) for one in session.get_inputs()}
    double, text = ("tensor(double)", ["rows"]), ("tensor(string)", ["rows"])
    assert named == {
        **dict.fromkeys(["warm", "input.label", "add_3", "dry", "since", "day", "hour"], double),
        "soil type": text,
    }


numbers = st.one_of(st.just(np.nan), st.floats(-1e12, 1e12), st.sampled_from([np.inf, -np.inf]))
row = st.fixed_dictionaries(
    {
        "warm": numbers,
        "label": numbers,
        "add_3": numbers,
        "dry": st.sampled_from([0.0, 1.0, np.nan]),
        "since": st.one_of(st.just(np.nan), st.integers(-20_000, 40_000).map(float)),
        "soil type": st.sampled_from(["clay", "sand", "loam, wet", "chalk", "", "NA"]),
        "day": st.integers(19_000, 21_000).map(float),
        "hour": st.floats(-50, 100),
    }
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(row, min_size=1, max_size=8))
def test_any_row_with_any_holes_is_predicted_alike(faults, rows):
    model, session = faults
    frame = pd.DataFrame(rows)
    feed = {}
    for one in build_onnx_inputs(model.state_):
        kind = object if one.kind == "category" else np.float64
        feed[one.name] = frame[one.column].to_numpy(kind)
    for name in ("since", "day"):
        frame[name] = EPOCH + pd.to_timedelta(frame[name], "D")
    frame["dry"] = frame["dry"].map({0.0: False, 1.0: True}).astype("boolean")
    found = session.run(["probabilities"], feed)[0]
    assert np.abs(found - model.predict_proba(frame)).max() < EQUAL


def test_a_regression_is_in_the_units_of_the_label(tmp_path):
    drop = ("fault", "hour", "soil type", "since")
    model = fit(tmp_path, CIDARegressor(**BRIEF), "yield", "day", drop)
    assert export_onnx(model, tmp_path / "yield.onnx") < EQUAL
    frame = farm(300, seed=300)
    session = onnxruntime.InferenceSession(tmp_path / "yield.onnx")
    found = session.run(["prediction"], cells(frame, build_onnx_inputs(model.state_)))[0]
    want = model.predict(frame)
    assert np.abs(found - want).max() < EQUAL * model.state_.labels.scale
    assert 4e4 < found.mean() < 1.2e5


def test_images_of_a_user_are_scaled_inside_the_file(tmp_path):
    rng = np.random.default_rng(100)
    x, u = rng.normal(100, 20, (80, 8, 8)).astype(np.float32), rng.uniform(0, 10, 80)
    y = np.where(u > 5, -1, (x.mean((1, 2)) > 100).astype(int))
    np.savez(tmp_path / "images.npz", X=x, y=y, u=u)
    model = CIDAClassifier(steps=3, random_state=100).fit(tmp_path / "images.npz")
    assert export_onnx(model, tmp_path / "images.onnx") < EQUAL
    session = onnxruntime.InferenceSession(tmp_path / "images.onnx")
    found = session.run(["probabilities"], {"X": x[:, None], "u": u})[0]
    assert np.abs(found - model.predict_proba(tmp_path / "images.npz")).max() < EQUAL


def test_numbers_are_clipped_where_the_schema_clips_them():
    assert MAX_ABS_SCALED_VALUE == schema.MAX_ROBUST_DEVIATIONS
