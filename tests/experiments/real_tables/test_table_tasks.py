"""Experiments on real tables, with small made-up files in their place."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, r2_score

from cida.experiments.real_tables.table_data import (
    fetch_king_county,
    fetch_nhanes,
    fetch_support2,
    log_price_ratio,
)
from cida.experiments.registry import EXPERIMENTS, TASK_SPECS
from cida.experiments.runner import load_finished_result, run_recipe
from cida.experiments.spec import build_recipes
from cida.networks import TabularEncoder

pytestmark = pytest.mark.usefixtures("small_tables")

TASKS = [b.name for name in ("nhanes", "king-county", "support2") for b in EXPERIMENTS[name].tasks]
SOURCES = {
    "nhanes": lambda u: u[:, 0] <= 20,
    "support2": lambda u: u[:, 0] <= 55,
    "king-county": lambda u: u[:, 1] >= np.quantile(u[:, 1], 2 / 3),
}


def sample(task, protocol="clean", seed=0):
    return TASK_SPECS[task].draw_data(seed, protocol)


def recipe(task, method, steps=3):
    return build_recipes(TASK_SPECS[task], "best")[method].with_settings(steps=steps)


def flipped(one, rows):
    """The same with other labels in these rows."""
    other = one.y + 1 if one.regression else 1 - one.y
    return replace(one, y=np.where(rows, other, one.y))


def said(task, method, one):
    """What the method predicts for every row once it is trained on the sample."""
    made = recipe(task, method)
    model = made.build_model(0)
    one.train(model, made.oracle)
    return np.ravel(model.predict(one.x, domain_index=one.u))


# --- the rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_the_two_protocols_score_halves_of_the_target_that_cover_it(task):
    clean, development = sample(task), sample(task, "development")
    assert np.array_equal(clean.source_mask, SOURCES[clean.name](clean.u))
    assert not (clean.scored_mask & development.scored_mask).any()
    assert np.array_equal(clean.scored_mask | development.scored_mask, ~clean.source_mask)
    assert abs(int(clean.scored_mask.sum()) - int(development.scored_mask.sum())) <= 1
    assert clean.fingerprint() != development.fingerprint()


@pytest.mark.parametrize("task", TASKS)
def test_all_seeds_have_the_same_rows(task):
    assert sample(task, seed=0).fingerprint() == sample(task, seed=7).fingerprint()


def test_labels_and_index_are_those_of_the_files():
    for task, load in (("nhanes", fetch_nhanes), ("support2", fetch_support2)):
        one, data = sample(task), load()
        assert np.array_equal(one.y, data.y)
        assert np.array_equal(one.u, data.u)
        assert one.x.shape[0] == len(data.y)
    county = fetch_king_county()
    np.testing.assert_array_equal(
        sample("king-county/price").y, log_price_ratio(county.y, county.u)
    )
    dear = sample("king-county/dear").y
    np.testing.assert_array_equal(dear, log_price_ratio(county.y, county.u) > 0)
    above = sample("king-county/above-median").y
    np.testing.assert_array_equal(above, county.y > np.median(county.y))


def test_neither_index_nor_label_is_an_input():
    for task in TASKS:
        one = sample(task)
        for hidden in (*one.u.T, one.y):
            for column in one.x.T:
                if column.std() > 0:
                    assert abs(np.corrcoef(column, hidden)[0, 1]) < 0.999


# --- who sees which label ---------------------------------------------------------------------

BLIND = ["source-only", "histogram", "conditional", "logistic", "boosting-windows"]


@pytest.mark.parametrize("method", BLIND)
@pytest.mark.parametrize("task", ["nhanes", "king-county/price"])
def test_no_target_label_is_ever_seen(task, method):
    one = sample(task)
    other = flipped(one, ~one.source_mask)
    assert not np.array_equal(one.y, other.y)
    np.testing.assert_array_equal(said(task, method, one), said(task, method, other))


@pytest.mark.parametrize("protocol", ["clean", "development"])
@pytest.mark.parametrize("task", ["nhanes", "king-county/price"])
def test_the_oracle_sees_target_labels_but_none_that_is_scored(task, protocol):
    one = sample(task, protocol)
    before = said(task, "oracle", one)
    np.testing.assert_array_equal(said(task, "oracle", flipped(one, one.scored_mask)), before)
    unscored = ~one.source_mask & ~one.scored_mask
    assert not np.array_equal(said(task, "oracle", flipped(one, unscored)), before)


def test_other_target_labels_give_the_same_file_of_weights(tmp_path):
    one = sample("nhanes")
    made = recipe("nhanes", "source-only")
    for name, mine in (("a", one), ("b", flipped(one, ~one.source_mask))):
        run_recipe(made, mine, 0, tmp_path / name)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("a", "b")]
    assert weights[0] == weights[1]


# --- scores -----------------------------------------------------------------------------------


class Told:
    """A model that says what it was told to."""

    def __init__(self, one, answers):
        self.answers = {(*x, *u): a for x, u, a in zip(one.x, one.u, answers, strict=True)}

    def predict(self, x, domain_index):
        return np.array([self.answers[(*a, *b)] for a, b in zip(x, domain_index, strict=True)])


@pytest.mark.parametrize("task", ["nhanes", "support2", "king-county/dear"])
def test_accuracies_are_those_of_scikit_learn_over_source_and_scored_rows(task):
    one = sample(task)
    answers = np.random.default_rng(0).integers(0, 2, len(one.y))
    scores = one.evaluate(Told(one, answers))
    known = one.source_mask | one.scored_mask
    for name, rows in (("source", one.source_mask), ("target", one.scored_mask), ("all", known)):
        expected = accuracy_score(one.y[rows], answers[rows])
        assert scores[f"{name}_score"] == pytest.approx(expected)
    cells = scores["by_index"]
    assert sum(cell["n"] for cell in cells) == known.sum()
    total = sum(cell["n"] * cell["score"] for cell in cells)
    assert total == pytest.approx(known.sum() * scores["all_score"])
    assert scores["task"] == task


def test_a_regression_is_scored_in_r2_of_labels_in_units_of_the_source():
    one = sample("king-county/price")
    known = one.y[one.source_mask]
    truth = (one.y - known.mean()) / known.std()
    answers = truth + np.random.default_rng(0).normal(0, 0.5, len(truth))
    scores = one.evaluate(Told(one, answers))
    for name, rows in (("source", one.source_mask), ("target", one.scored_mask)):
        expected = r2_score(one.y[rows], answers[rows] * known.std() + known.mean())
        assert scores[f"{name}_score"] == pytest.approx(expected, abs=1e-5)
    middle = one.evaluate(Told(one, np.zeros(len(truth))))
    assert middle["source_score"] == pytest.approx(0, abs=1e-6)


def test_about_tells_how_many_rows_there_are_and_whether_labels_move():
    words = {task: sample(task).summary(TASK_SPECS[task].title) for task in TASKS}
    one = sample("nhanes")
    assert words["nhanes"].startswith(
        f"Sex, age ≤ 20 → > 20: {one.source_mask.sum()} source rows, "
        f"{(~one.source_mask).sum()} target rows without labels, {one.scored_mask.sum()} of these "
        "scored; the balance of source labels holds "
    )
    assert "labels holds along u (" in words["support2"]
    assert "labels moves along u: invariance may hurt (" in words["king-county/above-median"]


def test_about_reads_no_target_label():
    one = sample("king-county/above-median")
    assert flipped(one, ~one.source_mask).summary("A") == one.summary("A")


# --- recipes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_every_method_has_a_recipe_and_words_for_it(task):
    made = build_recipes(TASK_SPECS[task], "best")
    assert tuple(made) == TASK_SPECS[task].methods
    assert [name for name, one in made.items() if one.oracle] == ["oracle"]
    data_names = {one.to_dict()["networks"]["dataset_name"] for one in made.values()}
    assert data_names == {TASK_SPECS[task].download.name}
    assert len({one.title for one in made.values()}) == len(made)


def test_source_only_and_conditional_do_not_see_the_index_and_the_others_do():
    for method, one in build_recipes(TASK_SPECS["nhanes"], "best").items():
        encoder = getattr(one.build_model(0), "encoder", None)
        if isinstance(encoder, TabularEncoder):
            assert (encoder.windows is None) == (method in ("source-only", "conditional"))


def test_the_seed_draws_the_weights():
    made = recipe("support2", "histogram")
    one, same, other = (made.build_model(seed).encoder.line.weight for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("method", ["histogram", "boosting-windows"])
def test_a_finished_run_is_known_again_by_its_recipe_data_and_seed(tmp_path, method):
    one, made = sample("support2"), recipe("support2", method)
    row = run_recipe(made, one, 0, tmp_path).result
    assert load_finished_result(tmp_path, made, one, 0) == row
    assert load_finished_result(tmp_path, made, one, 1) is None
    assert load_finished_result(tmp_path, made, sample("support2", "development"), 0) is None
    assert load_finished_result(tmp_path, recipe("support2", "boosting"), one, 0) is None


def test_a_run_is_loaded_from_its_folder(tmp_path):
    one, made = sample("support2"), recipe("support2", "histogram")
    model = run_recipe(made, one, 0, tmp_path).model
    again = made.load_model(tmp_path)
    expected = model.predict_proba(one.x, domain_index=one.u)
    assert np.array_equal(again.predict_proba(one.x, domain_index=one.u), expected)
