"""The model of a table: what is held out, what is trained, what a folder keeps."""

import json
from contextlib import nullcontext

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cida.estimators.table import TableModel, encode_rows, hold_out
from cida.estimators.table_figures import compute_table_figures
from cida.estimators.table_networks import encoder_input_shape
from cida.runs.records import RunRecord
from cida.tables import ColumnRoles, open_table, read_table

QUICK = {"steps": 10, "discriminator": "l2"}
ROWS = 400


def watch(seed):
    return nullcontext(())


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A table of two informative numbers and a category, labelled up to age 50."""
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 80, ROWS)
    a, b = rng.normal(size=(2, ROWS))
    sick = a + b > 0.5
    columns = {
        "age": age,
        "a": a,
        "b": pa.array(b, mask=rng.random(ROWS) < 0.1),
        "ward": rng.choice(["A", "B"], ROWS),
        "outcome": pa.array(np.where(sick, "sick", "well").tolist(), mask=age > 50),
        "cost": pa.array(1e6 + 1e4 * (a + b), mask=age > 50),
    }
    place = tmp_path_factory.mktemp("table") / "table.parquet"
    pq.write_table(pa.table(columns), place)
    return place


def fit(path, folder, label="outcome", seeds=(0,), steps=10, **more):
    other = "cost" if label == "outcome" else "outcome"
    data = read_table(open_table(path), ColumnRoles(label, ("age",), drop=(other,), **more))
    x = encode_rows(data, folder / "rows")
    held = hold_out(data, 0)
    return TableModel.fit(data, x, held, QUICK | {"steps": steps}, seeds, watch), data, x, held


def test_a_tenth_of_each_class_is_held_out(path, tmp_path):
    _, data, _, held = fit(path, tmp_path, steps=1)
    assert not held[~data.labelled].any()
    for code in range(2):
        mine = data.labelled & (data.y == code)
        assert held[mine].sum() == round(0.1 * mine.sum())
    assert (hold_out(data, 0) == held).all()
    assert (hold_out(data, 1) != held).any()


def test_labels_that_are_held_out_or_in_the_target_change_nothing(path, tmp_path):
    model, data, x, held = fit(path, tmp_path)
    y = np.where(held | ~data.labelled, 1 - data.y, data.y)
    changed = type(data)(**{**vars(data), "y": y})
    again = TableModel.fit(changed, x, held, QUICK, (0,), watch)
    assert (again.predict(x, data.u) == model.predict(x, data.u)).all()


def test_a_saved_model_predicts_the_same(path, tmp_path):
    model, data, x, _ = fit(path, tmp_path, seeds=(3, 4))
    model.save(tmp_path, RunRecord("table", "cida"))
    again = TableModel.load(tmp_path)
    np.testing.assert_array_equal(again.predict(x, data.u), model.predict(x, data.u))
    assert (again.schema, again.space, again.classes) == (model.schema, model.space, model.classes)
    assert (tmp_path / "model-1.safetensors").is_file()
    words = json.loads((tmp_path / "run.json").read_text())
    assert (words["task"], words["method"], words["table"]["label"]) == (
        "table",
        "cida",
        "outcome",
    )
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert {event["model"] for event in events} == {0, 1}


def test_several_seeds_predict_their_mean(path, tmp_path):
    both, data, x, _ = fit(path, tmp_path, seeds=(3, 4))
    each = [fit(path, tmp_path, seeds=(seed,))[0].predict(x, data.u) for seed in (3, 4)]
    np.testing.assert_allclose(both.predict(x, data.u), (each[0] + each[1]) / 2, rtol=1e-12)
    assert not np.allclose(each[0], each[1])


def test_a_regression_predicts_in_the_units_of_the_label(path, tmp_path):
    model, data, x, held = fit(path, tmp_path, "cost", steps=400, regression=True)
    known = data.labelled & ~held
    assert model.center == pytest.approx(data.y[known].mean())
    figures = compute_table_figures(model, data, x, held)
    predicted = model.predict(x[held], data.u[held])[:, 0]
    error = np.sqrt(((predicted - data.y[held]) ** 2).mean())
    assert figures.scores["rmse"] == pytest.approx(error)
    assert figures.scores["r2"] == pytest.approx(1 - (error / data.y[held].std()) ** 2)
    assert figures.scores["r2"] > 0.5


def test_figures_of_a_classifier(path, tmp_path):
    model, data, x, held = fit(path, tmp_path, steps=300)
    figures = compute_table_figures(model, data, x, held)
    right = model.predict(x[held], data.u[held]).argmax(1) == data.y[held]
    assert figures.scores == {"accuracy": pytest.approx(right.mean())}
    assert figures.scores["accuracy"] > 0.8
    assert figures.n_held_out == held.sum()
    assert figures.support.share_outside == 1
    far = data.u[~data.labelled].max() - data.u[data.labelled].max()
    assert figures.support.max_distance == pytest.approx(far)
    assert 0 <= figures.input_index_r2 < 0.1
    json.dumps(figures.to_dict())


def test_beyond_is_more_than_a_tenth_of_the_range_away(path, tmp_path):
    model, data, _, _ = fit(path, tmp_path, steps=1)
    low, high = data.u.min(), data.u.max()
    reach = 2 * max(high - data.u.mean(), data.u.mean() - low) * 0.1
    u = np.array([low, high, high + 0.9 * reach, high + 1.2 * reach, low - 1.2 * reach])[:, None]
    assert model.is_extrapolated(u).tolist() == [False, False, False, True, True]


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((5,), (5,)),
        ((28, 28), (1, 28, 28)),
        ((1, 28, 28), (1, 28, 28)),
        ((1, 300), (1, 300)),
        ((3, 64), (3, 64)),
    ],
)
def test_shapes_that_have_an_encoder(shape, wanted):
    assert encoder_input_shape(shape) == wanted


@pytest.mark.parametrize("shape", [(3, 28, 28), (3, 20), (1, 20, 30), (2, 2, 2, 2)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match=r"X has rows of shape .*; give vectors, square images"):
        encoder_input_shape(shape)
