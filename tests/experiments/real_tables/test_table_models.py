"""Models of scikit-learn as methods: the same as fitted by hand."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from cida.coordinates import WindowsLayer
from cida.experiments.real_tables.table_models import load_encoded_dataset
from cida.experiments.registry import TASK_SPECS
from cida.experiments.runner import run_recipe
from cida.experiments.spec import build_recipes

pytestmark = pytest.mark.usefixtures("small_tables")

TASKS = ["nhanes", "support2", "king-county/price"]


def drawn(task):
    return TASK_SPECS[task].draw_data(0, "clean")


def fitted(task, method, seed=0):
    recipe = build_recipes(TASK_SPECS[task], "best")[method]
    model, sample = recipe.build_model(seed), drawn(task)
    sample.train(model, recipe.oracle)
    return model, sample


def target(sample):
    """What is trained on: classes, or numbers in standard deviations of the source's."""
    known = sample.y[sample.source_mask]
    return (sample.y - known.mean()) / known.std() if sample.regression else sample.y


def frame(sample, empty):
    """The encoded columns by name, holes as ``empty``, codes as categories."""
    schema = load_encoded_dataset(sample.name).schema
    numbers = sample.x[:, : schema.n_numeric].astype(float)
    indicators = sample.x[:, schema.n_numeric : schema.n_numeric + len(schema.missing_indicators)]
    for place, column in enumerate(schema.missing_indicators):
        numbers[indicators[:, place] == 1, column] = empty
    parts = {f"number {k}": values for k, values in enumerate(numbers.T)}
    parts |= {f"missing {k}": values for k, values in enumerate(indicators.T)}
    codes = sample.x[:, sample.x.shape[1] - len(schema.category_sizes) :].astype(int)
    for k, size in enumerate(schema.category_sizes):
        parts[f"code {k}"] = pd.Categorical(codes[:, k], categories=range(size))
    return pd.DataFrame(parts)


def assert_predicts_as(model, by_hand, table, sample):
    """Fits the other on the source rows of the table, and compares all predictions."""
    by_hand.fit(table[sample.source_mask], target(sample)[sample.source_mask])
    found = model.predict(sample.x, domain_index=sample.u)
    expected = by_hand.predict(table)
    if sample.regression:
        np.testing.assert_allclose(found, expected, atol=1e-4)
    else:
        assert (found == expected).mean() > 0.99


@pytest.mark.parametrize("task", TASKS)
def test_the_linear_row_is_scikit_learn_fitted_by_hand(task):
    model, sample = fitted(task, "logistic")
    table = frame(sample, 0.0)
    codes = [name for name in table if name.startswith("code")]
    known = [list(table[name].cat.categories) for name in codes]
    one_hot = make_column_transformer(
        (OneHotEncoder(categories=known, sparse_output=False), codes), remainder="passthrough"
    )
    last = Ridge() if sample.regression else LogisticRegression(max_iter=1000)
    by_hand = make_pipeline(one_hot, StandardScaler(), last)
    assert_predicts_as(model, by_hand, table, sample)


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("task", TASKS)
def test_the_boosting_row_is_scikit_learn_fitted_by_hand(task, seed):
    model, sample = fitted(task, "boosting", seed)
    table = frame(sample, np.nan)
    kind = HistGradientBoostingRegressor if sample.regression else HistGradientBoostingClassifier
    by_hand = kind(categorical_features="from_dtype", random_state=seed)
    assert_predicts_as(model, by_hand, table, sample)


@pytest.mark.parametrize("task", TASKS)
def test_in_windows_numbers_are_standardised_along_the_index_first(task):
    model, sample = fitted(task, "boosting-windows")
    schema = load_encoded_dataset(sample.name).schema
    space = sample.space.fit(torch.from_numpy(sample.u))
    index = space.embed(torch.from_numpy(sample.u))
    table = frame(sample, np.nan)
    numbers = table.iloc[:, : schema.n_numeric].to_numpy()
    layer = WindowsLayer(schema.n_numeric, space.embedding_width)
    raw = torch.from_numpy(np.nan_to_num(numbers)).float()
    layer.fit(raw, index, torch.from_numpy(~np.isnan(numbers)))
    scaled = layer(raw, index.float()).numpy().astype(float)
    table.iloc[:, : schema.n_numeric] = np.where(np.isnan(numbers), np.nan, scaled)
    kind = HistGradientBoostingRegressor if sample.regression else HistGradientBoostingClassifier
    by_hand = kind(categorical_features="from_dtype", random_state=0)
    by_hand.fit(table[sample.source_mask], target(sample)[sample.source_mask])
    found = model.predict(sample.x, domain_index=sample.u)
    if sample.regression:
        assert r2_score(by_hand.predict(table), found) > 0.99
    else:
        assert (found == by_hand.predict(table)).mean() > 0.98


@pytest.mark.parametrize("method", ["logistic", "boosting"])
def test_without_windows_the_index_is_not_seen(method):
    model, sample = fitted("nhanes", method)
    found = model.predict(sample.x, domain_index=sample.u)
    np.testing.assert_array_equal(model.predict(sample.x, domain_index=sample.u + 500), found)


@pytest.mark.parametrize("method", ["logistic-windows", "boosting-windows"])
def test_a_prediction_does_not_depend_on_the_rows_beside_it(method):
    model, sample = fitted("support2", method)
    few = model.predict(sample.x, domain_index=sample.u)
    many = model.predict(np.tile(sample.x, (12, 1)), domain_index=np.tile(sample.u, (12, 1)))
    assert len(many) > 4096
    assert (many.reshape(12, -1) == few).mean() > 0.999


def test_a_missing_number_is_not_read():
    for method in ("logistic-windows", "boosting-windows", "boosting"):
        model, sample = fitted("support2", method)
        schema = load_encoded_dataset("support2").schema
        other = sample.x.copy()
        for place, column in enumerate(schema.missing_indicators):
            other[other[:, schema.n_numeric + place] == 1, column] = 1e3
        assert not np.array_equal(other, sample.x)
        found = model.predict(sample.x, domain_index=sample.u)
        np.testing.assert_array_equal(model.predict(other, domain_index=sample.u), found)


def test_the_row_of_a_run_is_its_score_and_no_model_is_kept(tmp_path):
    recipe = build_recipes(TASK_SPECS["king-county/price"], "best")["logistic"]
    sample = drawn("king-county/price")
    row = run_recipe(recipe, sample, 0, tmp_path).result
    model, _ = fitted("king-county/price", "logistic")
    predicted = model.predict(
        sample.x[sample.scored_mask], domain_index=sample.u[sample.scored_mask]
    )
    expected = r2_score(target(sample)[sample.scored_mask], predicted)
    assert row.target_score == pytest.approx(expected, abs=1e-5)
    kept = {"run.json", "events.jsonl", "result.json", "snapshot.safetensors"}
    assert {path.name for path in tmp_path.iterdir()} == kept
    assert (tmp_path / "events.jsonl").read_text() == ""


def test_words_of_a_recipe_tell_the_four_models_apart():
    made = build_recipes(TASK_SPECS["nhanes"], "best")
    names = ("logistic", "boosting", "logistic-windows", "boosting-windows")
    words = [made[name].to_dict() for name in names]
    assert [(w["boosting"], w["windows"], w["regression"]) for w in words] == [
        (False, False, False), (True, False, False), (False, True, False), (True, True, False),
    ]  # fmt: skip
    titles = {build_recipes(TASK_SPECS[task], "best")["logistic"].title for task in TASKS}
    assert titles == {"Logistic regression", "Ridge regression"}
