"""What is kept of a run, and the summary of several seeds."""

import numpy as np
import pytest

from cida.datasets import IndexedData, make_circle
from cida.estimators import CIDAClassifier
from cida.experiments.circle_sine.toy_tasks import make_toy_data
from cida.experiments.registry import TASK_SPECS
from cida.experiments.runner import run_recipe, summarize_results
from cida.experiments.spec import Recipe, build_recipes
from cida.experiments.task_data import bin_score_to_dict, hash_arrays
from cida.metrics import BinScore
from cida.runs.records import RunResult


def row(method, accuracy, fresh=None):
    return RunResult(method, 0, 1.0, accuracy, accuracy / 2, [], 1.0, fresh)


def test_the_summary_is_mean_sample_deviation_and_worst_seed():
    lines = summarize_results([row("a", 0.8), row("b", 0.5), row("a", 0.9), row("a", 1.0)])
    assert [line["method"] for line in lines] == ["a", "b"]
    assert lines[0]["target_score_mean"] == pytest.approx(0.9)
    assert lines[0]["target_score_std"] == pytest.approx(np.std([0.8, 0.9, 1.0], ddof=1))
    assert lines[0]["target_score_worst"] == 0.8
    assert (lines[1]["seeds"], lines[1]["target_score_std"]) == (1, 0.0)
    assert lines[0]["all_score_mean"] == pytest.approx(0.45)
    assert not any(name.startswith("fresh") for name in lines[0])


def test_the_summary_of_fresh_points_is_there_where_they_were_scored():
    scores = [{"target_score": a, "all_score": a + 0.1} for a in (0.6, 0.8)]
    (line,) = summarize_results([row("a", 0.9, fresh) for fresh in scores])
    assert line["fresh_target_score_mean"] == pytest.approx(0.7)
    assert line["fresh_target_score_std"] == pytest.approx(np.std([0.6, 0.8], ddof=1))
    assert line["fresh_target_score_worst"] == 0.6
    assert line["fresh_all_score_worst"] == pytest.approx(0.7)


def test_equal_data_have_equal_fingerprints_and_others_do_not():
    data = np.arange(6.0)
    assert hash_arrays(data) == hash_arrays(data.copy())
    assert hash_arrays(data) != hash_arrays(data.reshape(2, 3))
    assert hash_arrays(data) != hash_arrays(data.astype(np.float32))
    assert hash_arrays(data) != hash_arrays(np.where(data == 3, 3.1, data))


def test_a_bin_is_told_by_its_bounds_its_accuracy_and_its_rows():
    words = bin_score_to_dict(BinScore(0.5, 1.0, 0.75, 12))
    assert words == {"lo": 0.5, "hi": 1.0, "score": 0.75, "n": 12}


def test_a_run_never_reads_a_target_label(tmp_path):
    world = make_circle(n_per_domain=10)
    flipped = np.where(world.source, world.y, 1 - world.y)
    poisoned = IndexedData(world.name, world.x, flipped, world.u, world.source)
    recipe = build_recipes(TASK_SPECS["circle"], "best")["histogram"].with_settings(steps=10)
    clean = run_recipe(recipe, make_toy_data(world), 0, tmp_path / "a")
    other = run_recipe(recipe, make_toy_data(poisoned), 0, tmp_path / "b")
    said = [o.model.predict(world.x, domain_index=world.u) for o in (clean, other)]
    np.testing.assert_array_equal(*said)
    assert clean.result.target_score == pytest.approx(1 - other.result.target_score)
    model = "model.safetensors"
    assert (tmp_path / "a" / model).read_bytes() == (tmp_path / "b" / model).read_bytes()


def test_fresh_points_are_scored_and_do_not_change_the_run(tmp_path):
    world = make_circle(n_per_domain=10)
    fresh = make_circle(n_per_domain=10, seed=5, scaling_from=world)
    recipe = build_recipes(TASK_SPECS["circle"], "best")["source-only"].with_settings(steps=10)
    plain = run_recipe(recipe, make_toy_data(world), 0, tmp_path / "a")
    scored = run_recipe(recipe, make_toy_data(world, fresh), 0, tmp_path / "b")
    assert plain.result.fresh is None
    assert scored.result.target_score == plain.result.target_score
    model = CIDAClassifier.load(tmp_path / "b" / "model.safetensors")
    right = model.predict(fresh.x, domain_index=fresh.u) == fresh.y
    assert scored.result.fresh["target_score"] == right[~fresh.source].mean()
    assert scored.result.fresh["source_score"] == right[fresh.source].mean()
    assert scored.result.fresh["all_score"] == right.mean()
    assert sum(cell["n"] for cell in scored.result.fresh["by_index"]) == 300


def test_settings_left_at_none_stay_as_they_are():
    recipe = Recipe("a", "A", {"lambda_d": 2.0})
    assert recipe.with_settings(lambda_d=None, steps=3).settings == {"lambda_d": 2.0, "steps": 3}
    assert recipe.settings == {"lambda_d": 2.0}
