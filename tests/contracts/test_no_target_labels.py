"""Nothing that trains, selects or stops reads a label of the target: poison them and compare.

Every path is run twice, once with the true labels of the target rows lying about and once with
wrong ones in their place; the weights must come out equal, bit for bit.
"""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from cida import CIDAClassifier, CIDARegressor, CIDASearch, CidaWarning
from cida.data import IndexedDataset
from cida.datasets import make_drifting_regression, make_rotating_moons
from cida.discriminators import DISCRIMINATORS
from cida.experiments.real_tables.table_tasks import TableTaskData
from cida.experiments.registry import EXPERIMENTS
from cida.experiments.rotating_mnist.rotating_dataset import Digits
from cida.experiments.rotating_mnist.rotating_tasks import RotatingTaskData
from cida.experiments.selection.model_bank import SelectionTaskData
from cida.experiments.spec import build_recipes
from cida.experiments.task_data import SyntheticTaskData
from cida.games import GAMES
from cida.selection.validators import VALIDATORS

QUICK = {"steps": 12, "random_state": 3}
WORLD = make_rotating_moons(n_samples=600, seed=113)
NUMBERS = make_drifting_regression(n_samples=600, seed=113)


def poisoned(y, source):
    """Labels with those of the target replaced by wrong ones."""
    wrong = y + 1000.0 if np.issubdtype(y.dtype, np.floating) else (y + 1) % (y.max() + 1)
    return np.where(source, y, wrong)


def weights(model):
    return {
        name: tensor.clone()
        for player in (model.game_.encoder, model.game_.predictor)
        for name, tensor in player.state_dict(prefix=f"{type(player).__name__}.").items()
    }


def assert_equal(first, second):
    one, other = weights(first), weights(second)
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


def twice(fit, world=WORLD):
    """The same fit, with true and with poisoned target labels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        return fit(world.y), fit(poisoned(world.y, world.source))


class TestEstimators:
    @pytest.mark.parametrize("game", GAMES)
    def test_every_game(self, game):
        def fit(y):
            model = CIDAClassifier(game=game, coordinates="learned", **QUICK)
            return model.fit(WORLD.x, y, domain_index=WORLD.u, source=WORLD.source)

        assert_equal(*twice(fit))

    @pytest.mark.parametrize("head", DISCRIMINATORS)
    def test_every_head(self, head):
        def fit(y):
            model = CIDAClassifier(head, coordinates="learned", **QUICK)
            return model.fit(WORLD.x, y, domain_index=WORLD.u, source=WORLD.source)

        assert_equal(*twice(fit))

    @pytest.mark.parametrize(
        "mode", ["auto", "raw", "windows", "moving-frame", "principal-axes", "learned"]
    )
    def test_every_choice_of_coordinates(self, mode):
        def fit(y):
            model = CIDAClassifier(coordinates=mode, proximity=0.5, **QUICK)
            return model.fit(WORLD.x, y, domain_index=WORLD.u, source=WORLD.source)

        assert_equal(*twice(fit))

    def test_the_regressor(self):
        def fit(y):
            model = CIDARegressor(n_restarts=2, **QUICK)
            return model.fit(NUMBERS.x, y, domain_index=NUMBERS.u, source=NUMBERS.source)

        assert_equal(*twice(fit, NUMBERS))

    def test_rows(self):
        def fit(y):
            tensors = (torch.from_numpy(each) for each in (y, WORLD.u, WORLD.source))
            rows = IndexedDataset(torch.from_numpy(WORLD.x).float(), *tensors)
            return CIDAClassifier(coordinates="learned", n_restarts=2, **QUICK).fit_dataset(rows)

        assert_equal(*twice(fit))


class TestSelection:
    @pytest.mark.parametrize(
        "validator", [n for n, kind in VALIDATORS.items() if not kind.needs_held_out]
    )
    def test_restarts_with_every_validator(self, validator):
        def fit(y):
            model = CIDAClassifier(n_restarts=2, validator=validator, coordinates="raw", **QUICK)
            return model.fit(WORLD.x, y, domain_index=WORLD.u, source=WORLD.source)

        first, second = twice(fit)
        assert_equal(first, second)
        assert first.selection_ == second.selection_

    @pytest.mark.parametrize("validator", VALIDATORS)
    def test_searches_with_every_validator(self, validator):
        def fit(y):
            estimator = CIDAClassifier(coordinates="raw", **QUICK)
            search = CIDASearch(estimator, {"lambda_d": [0.2, 5.0]}, validator)
            return search.fit(WORLD.x, y, WORLD.u, source=WORLD.source)

        first, second = twice(fit)
        assert first.results_ == second.results_
        assert_equal(first.best_estimator_, second.best_estimator_)

    def test_the_accuracy_that_is_expected(self):
        def fit(y):
            model = CIDAClassifier(coordinates="raw", **QUICK)
            model.fit(WORLD.x, y, domain_index=WORLD.u, source=WORLD.source)
            return model.expected_score(WORLD.x, y, WORLD.u, source=WORLD.source)

        first, second = twice(fit)
        assert first == second


def poisoned_sample(sample):
    """The same data as a benchmark draws it, with the target's truth replaced."""
    if isinstance(sample, SyntheticTaskData):
        world = sample.data
        return replace(sample, data=replace(world, y=poisoned(world.y, world.source)))
    if isinstance(sample, TableTaskData):
        return replace(sample, y=poisoned(sample.y, sample.source_mask))
    if isinstance(sample, SelectionTaskData):
        wrong = replace(sample.scored_rows, y=(sample.scored_rows.y + 1) % 2)
        return replace(sample, scored_rows=wrong)
    assert isinstance(sample, RotatingTaskData)
    digits = sample.training_digits
    rows = sample.training_dataset()
    labels = digits.labels.clone()
    target = rows.x[~rows.labelled].unique()  # which digits are only ever seen in the target
    labels[target] = (labels[target] + 1) % 10
    wrong = Digits(sample.scored_digits.images, (sample.scored_digits.labels + 1) % 10)
    return replace(sample, training_digits=Digits(digits.images, labels), scored_digits=wrong)


# Experiments that need no download; those on tables share their samples with the bank's.
EMBEDDED = ("circle", "sine", "rotating-digits", "worlds", "moments", "selection", "restarts")
BENCHMARKS = [
    benchmark
    for name in EMBEDDED
    for benchmark in EXPERIMENTS[name].tasks
    if benchmark.download is None
]


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_every_experiment(benchmark):
    """A method without target labels is trained alike whatever those labels are."""
    preset = next(iter(benchmark.presets))
    known = build_recipes(benchmark, preset)
    recipe = known.get("default") or known.get("histogram") or next(iter(known.values()))
    recipe = recipe.with_settings(steps=6)
    sample = benchmark.draw_data(113, benchmark.presets[preset].protocol)
    models = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        for each in (sample, poisoned_sample(sample)):
            model = recipe.build_model(113)
            each.train(model, recipe.oracle)
            models.append(model)
    assert_equal(*models)


def test_poison_would_be_noticed():
    """An oracle does read the labels of the target, and so comes out different."""
    benchmark = EXPERIMENTS["circle"].tasks[0]
    recipe = build_recipes(benchmark, "best")["oracle"].with_settings(steps=6)
    sample = benchmark.draw_data(113, "points")
    models = [recipe.build_model(113), recipe.build_model(113)]
    for model, each in zip(models, (sample, poisoned_sample(sample)), strict=True):
        each.train(model, oracle=True)
    with pytest.raises(AssertionError):
        assert_equal(*models)
