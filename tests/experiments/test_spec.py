"""Recipes: methods, presets and settings of each experiment."""

import numpy as np
import pytest

from cida import Histogram
from cida.datasets import IndexedData, make_sine
from cida.estimators import CIDAClassifier
from cida.experiments.circle_sine.toy_tasks import DEMO_RECIPES, make_toy_data
from cida.experiments.registry import TASK_SPECS
from cida.experiments.runner import run_recipe
from cida.experiments.spec import build_recipes
from cida.methods import METHODS

ORDER = (
    "source-only", "adda", "dann", "cdann", "mdd", "cua", "cida", "cida-l1", "pcida", "mixture",
    "histogram", "oracle",
)  # fmt: skip


@pytest.fixture(scope="module")
def world():
    return make_sine(n_per_domain=12)


@pytest.mark.parametrize("preset", ["best", "paper"])
@pytest.mark.parametrize("name", ["circle", "sine"])
def test_both_presets_of_both_worlds_have_all_methods_in_order(name, preset):
    found = build_recipes(TASK_SPECS[name], preset)
    assert tuple(found) == ORDER == tuple(name for name in METHODS if name in ORDER)
    assert [recipe.method for recipe in found.values()] == list(ORDER)
    assert [method for method, recipe in found.items() if recipe.oracle] == ["oracle"]
    assert len({recipe.title for recipe in found.values()}) == len(ORDER)
    assert not {"random_state", "callbacks"} & set(found["dann"].settings)


@pytest.mark.parametrize("name", ["circle", "sine"])
def test_the_papers_preset_is_the_papers_and_nothing_added(name):
    for recipe in build_recipes(TASK_SPECS[name], "paper").values():
        model = CIDAClassifier(**recipe.settings)
        assert model.learning_rate == 1e-4
        assert model.schedule == "constant"
        assert model.lambda_d == 2.0
        assert model.batch_norm is True
        assert model.coordinates == "learned"
        assert model.ceiling is False
        assert model.curriculum == 0.0
        assert model.ema_decay == 0.0
        assert model.n_balance_bins == 1
        if isinstance(model.discriminator, Histogram):
            assert model.discriminator.smoothing == 0.0


@pytest.mark.parametrize("preset", ["best", "paper"])
@pytest.mark.parametrize("name", ["circle", "sine"])
def test_categorical_methods_have_a_class_for_each_domain_and_cua_a_stage(name, preset):
    benchmark = TASK_SPECS[name]
    world, found = benchmark.draw_data(0, "points").data, build_recipes(benchmark, preset)
    domains, targets = len(np.unique(world.u)), len(np.unique(world.u[~world.source]))
    assert (benchmark.n_histogram_bins, benchmark.domain_classes) == (domains, domains)
    for method in ("dann", "cdann"):
        head = found[method].settings["discriminator"]
        assert (head.bins, head.kernel) == (domains, 0)
    assert found["histogram"].settings["discriminator"].bins == domains
    assert found["cua"].settings["curriculum_stages"] == targets + 1


@pytest.mark.parametrize("preset", ["best", "paper"])
@pytest.mark.parametrize("method", ORDER)
def test_every_recipe_fits(world, preset, method, tmp_path):
    recipe = build_recipes(TASK_SPECS["sine"], preset)[method].with_settings(steps=12)
    outcome = run_recipe(recipe, make_toy_data(world), 0, tmp_path)
    predicted = outcome.model.predict(world.x, domain_index=world.u)
    assert set(np.unique(predicted)) <= {0, 1}
    assert outcome.history[-1].step == 12
    assert all(np.isfinite(list(event.losses.values())).all() for event in outcome.history)
    adapts = any(set(event.losses) - {"prediction"} for event in outcome.history)
    assert adapts == (method not in ("source-only", "oracle"))


@pytest.mark.parametrize("method", ["adda", "cdann", "mdd", "cua", "pcida", "oracle"])
def test_only_the_oracle_learns_from_target_labels(world, method, tmp_path):
    flipped = np.where(world.source, world.y, 1 - world.y)
    poisoned = IndexedData(world.name, world.x, flipped, world.u, world.source)
    recipe = build_recipes(TASK_SPECS["sine"], "best")[method].with_settings(steps=12)
    for name, data in {"clean": world, "poisoned": poisoned}.items():
        run_recipe(recipe, make_toy_data(data), 0, tmp_path / name)
    weights = [(tmp_path / n / "model.safetensors").read_bytes() for n in ("clean", "poisoned")]
    assert (weights[0] == weights[1]) == (method != "oracle")


def test_the_demo_plays_without_the_frame_and_last_as_the_estimator_comes():
    assert list(DEMO_RECIPES) == ["source-only", "cida", "pcida", "histogram", "default"]
    modes = {name: recipe.settings.get("coordinates") for name, recipe in DEMO_RECIPES.items()}
    assert modes == {**dict.fromkeys(DEMO_RECIPES, "raw"), "default": None}
