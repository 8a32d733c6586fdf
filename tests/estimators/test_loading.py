"""``cida.load`` of files and folders: no data, no run and no networks are needed."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from torch import nn

import cida
from cida import CIDAClassifier, CIDARegressor
from cida.estimators.labels import ClassLabels
from cida.io.tensors import MODEL_FILE
from cida.networks import SignalEncoder, TabularEncoder


def ward(rows, seed):
    rng = np.random.default_rng(seed)
    age, pulse = rng.uniform(20, 90, rows).round(1), rng.normal(80, 10, rows).round(1)
    outcome = np.where(pulse > 80, "ill", "well").astype(object)
    return pd.DataFrame(
        {
            "age": age,
            "pulse": np.where(rng.random(rows) < 0.1, np.nan, pulse),
            "sex": rng.choice(["f", "m"], rows),
            "came": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, rows), "D"),
            "outcome": np.where(age < 55, outcome, None),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of a table in its folder."""
    folder = tmp_path_factory.mktemp("ward")
    ward(300, seed=100).to_csv(folder / "ward.csv", index=False)
    model = CIDAClassifier("l2", steps=10, n_members=2, random_state=100)
    model.fit(folder / "ward.csv", "outcome", domain_index=["age"])
    model.save(folder / MODEL_FILE)
    return folder


def test_a_tables_model_predicts_alike_from_every_kind_of_table(folder, tmp_path):
    model, frame = cida.load(folder), ward(40, seed=101)
    assert isinstance(model, CIDAClassifier)
    frame.to_csv(tmp_path / "new.csv", index=False)
    frame.to_parquet(tmp_path / "new.parquet")
    want = model.predict_proba(frame)
    assert want.shape == (40, 2)
    tables = [
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame),
        pa.RecordBatch.from_pandas(frame),
        {name: frame[name].to_numpy() for name in model.state_.table.required_columns},
        frame[["sex", "age", "came", "pulse"]].set_index(np.arange(40) + 7),
        tmp_path / "new.csv",
        str(tmp_path / "new.parquet"),
    ]
    for table in tables:
        assert np.array_equal(model.predict_proba(table), want), type(table)
    assert (model.predict(frame) == model.classes_[want.argmax(1)]).all()


def test_rows_far_beyond_are_told_one_by_one(folder):
    frame = ward(5, seed=103)
    frame.loc[2, "age"] = 500.0
    assert cida.load(folder).is_extrapolated(frame).tolist() == [False, False, True, False, False]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda frame: frame.drop(columns="pulse"), "table lacks pulse"),
        (lambda frame: frame.rename(columns={"sex": "Sex"}), "is it Sex for sex?"),
        (lambda frame: frame.assign(age=np.nan), "index age is empty in row 1"),
        (lambda frame: frame.assign(pulse="high"), "column pulse has 'high' in row 1"),
        (lambda frame: frame[:0], "has no rows"),
        (lambda frame: frame.assign(pulse=[object()] * len(frame)), "table cannot be read"),
    ],
    ids=["lost", "renamed", "no index", "a word", "no rows", "no type"],
)
def test_a_table_that_does_not_fit_is_told_in_one_sentence(folder, spoil, words):
    with pytest.raises(ValueError, match=words.replace("?", r"\?")) as told:
        cida.load(folder).predict(spoil(ward(5, seed=104)))
    assert "\n" not in str(told.value)


def test_what_is_no_table_is_told(folder):
    with pytest.raises(ValueError, match="X is a list, and the model was fitted on a table; give"):
        cida.load(folder).predict([[1, 2]])


def test_a_regression_has_no_probabilities(tmp_path):
    frame = ward(200, seed=105).assign(outcome=lambda f: (2 * f["age"]).where(f["age"] < 55))
    fitted = CIDARegressor(steps=5, random_state=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cida.CidaWarning)  # the label goes along the index
        fitted.fit(frame, "outcome", domain_index="age")
    fitted.save(tmp_path / MODEL_FILE)
    model = cida.load(tmp_path)
    assert not hasattr(model, "classes_")
    assert not hasattr(model, "predict_proba")
    assert model.predict(frame).dtype == np.float64
    assert np.array_equal(model.predict(frame), fitted.predict(frame))


# --- estimators ----------------------------------------------------------------------------------


def signals(**settings):
    rng = np.random.default_rng(100)
    x, u = rng.normal(size=(40, 1, 100)).astype(np.float32), rng.uniform(0, 1, 40)
    y = np.where(u > 0.5, -1, np.arange(40) % 2)
    model = cida.CIDAClassifier(**settings, coordinates="learned", steps=2, random_state=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cida.CidaWarning)
        return model.fit(x, y, domain_index=u), x, u


def test_a_network_of_ours_need_not_be_passed_again(tmp_path):
    model, x, u = signals(encoder=SignalEncoder(1, 0.05, follow=True))
    model.save(tmp_path / "model.safetensors")
    want = model.predict_proba(x, domain_index=u)
    for place in (tmp_path, tmp_path / "model.safetensors"):
        again = cida.load(place)
        assert np.array_equal(again.predict_proba(x, domain_index=u), want)
    again.save(tmp_path / "again")  # and once more, from what was loaded
    assert np.array_equal(cida.load(tmp_path / "again").predict_proba(x, domain_index=u), want)


def test_one_that_is_passed_is_taken_all_the_same(tmp_path):
    model, _, _ = signals(encoder=SignalEncoder(1, 0.05))
    model.save(tmp_path / "model.safetensors")
    mine = SignalEncoder(1, 0.05)
    assert cida.load(tmp_path, encoder=mine).encoder is mine


class Mine(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = TabularEncoder(100)

    def forward(self, x, index):
        return self.body(x.flatten(1), index)


def test_a_module_of_ones_own_is_passed_again(tmp_path):
    model, x, u = signals(encoder=Mine())
    model.save(tmp_path / "model.safetensors")
    with pytest.raises(cida.ModelFileError, match="pass it again"):
        cida.load(tmp_path)
    again = cida.load(tmp_path, encoder=Mine())
    want = model.predict_proba(x, domain_index=u)
    assert np.array_equal(again.predict_proba(x, domain_index=u), want)


def test_a_folder_without_a_model_is_told_in_one_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no model file at .*safetensors"):
        cida.load(tmp_path)


@pytest.mark.parametrize(("values", "kind"), [([300, 1], "int8"), (["red", "green"], "int64")])
def test_classes_of_another_type_than_the_file_says_are_refused(values, kind):
    with pytest.raises(ValueError, match=f"classes are not all of the dtype '{kind}'"):
        ClassLabels.from_dict({"classes": values, "dtype": kind})
