"""The best of several games, settings chosen, and accuracy expected: all without target labels."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

from cida import CIDAClassifier, CIDARegressor, CIDASearch, CidaWarning
from cida.datasets import make_drifting_regression, make_hours, make_rotating_moons
from cida.discriminators import Histogram
from cida.selection.validators import VALIDATORS, Validator
from cida.training import Trainer

QUICK = {"capacity": "mlp", "steps": 40, "coordinates": "raw", "random_state": 7}


def weights(model):
    return [p.detach().clone() for p in model.game_.encoder.parameters()]


def equal(first, second):
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def fitted(world, **settings):
    model = CIDAClassifier(**{**QUICK, **settings})
    return model.fit(world.x, world.training_labels, domain_index=world.u)


class Favourite(Validator):
    """Likes the run of this number best."""

    def __init__(self, number):
        self.number = number

    def scores(self, validation_set, candidates):
        return [float(number == self.number) for number in range(len(candidates))]


@pytest.fixture(scope="module")
def world():
    return make_rotating_moons(n_samples=900, seed=111)


class TestRestarts:
    def test_the_first_game_is_the_one_that_a_single_fit_plays(self, world):
        alone = fitted(world)
        first = fitted(world, n_restarts=3, validator=Favourite(0))
        assert alone.selection_ is None
        assert first.selection_.kept == 0
        assert equal(weights(alone), weights(first))

    def test_the_run_that_the_validator_likes_best_is_kept(self, world):
        kept = [weights(fitted(world, n_restarts=3, validator=Favourite(k))) for k in range(3)]
        assert not equal(kept[0], kept[1])
        assert not equal(kept[1], kept[2])

    def test_what_was_said_of_each_game_is_told(self, world):
        selection = fitted(world, n_restarts=3).selection_
        assert selection.validator == "consensus"
        assert len(selection.scores) == 3
        assert selection.kept in (0, int(np.argmax(selection.scores)))

    def test_history_and_weights_are_of_the_same_game(self, world):
        second = fitted(world, n_restarts=2, validator=Favourite(1))
        first = fitted(world, n_restarts=2, validator=Favourite(0))
        assert second.history_[-1].losses != first.history_[-1].losses

    def test_the_same_seed_gives_the_same_model(self, world):
        assert equal(weights(fitted(world, n_restarts=2)), weights(fitted(world, n_restarts=2)))

    def test_without_a_target_one_game_is_played(self, world):
        model = CIDAClassifier(**QUICK, n_restarts=4, discriminator=None)
        assert model.fit(world.x, world.y, domain_index=world.u).selection_ is None

    def test_a_regressor_has_restarts_too(self):
        world = make_drifting_regression(n_samples=600, seed=111)
        model = CIDARegressor(**QUICK, n_restarts=2)
        model.fit(world.x, world.training_labels, domain_index=world.u)
        assert len(model.selection_.scores) == 2

    def test_leave_range_out_plays_each_game_again(self, world):
        scores = fitted(world, n_restarts=2, validator="leave-range-out").selection_.scores
        assert all(0 <= score <= 1 for score in scores)

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"n_restarts": 0}, "n_restarts must be a whole number of at least 1, got 0"),
            ({"validator": "luck"}, "validator is 'luck'; known are consensus"),
        ],
    )
    def test_settings_that_cannot_work_are_told(self, world, settings, words):
        with pytest.raises(ValueError, match=words):
            fitted(world, **settings)


class TestSearch:
    def test_every_point_is_tried_and_the_best_is_kept(self, world):
        grid = {"lambda_d": [0.2, 5.0], "discriminator": ["l2", "histogram"]}
        search = CIDASearch(CIDAClassifier(**QUICK), grid)
        search.fit(world.x, world.training_labels, domain_index=world.u)
        assert len(search.results_) == 4
        best = max(search.results_, key=lambda tried: tried.score)
        assert search.best_params_ == best.params
        for name, value in best.params.items():
            assert getattr(search.best_estimator_, name) == value

    @pytest.mark.parametrize("validator", VALIDATORS)
    def test_every_validator_can_choose(self, world, validator):
        search = CIDASearch(CIDAClassifier(**QUICK), {"lambda_d": [0.5, 2.0]}, validator)
        search.fit(world.x, world.training_labels, domain_index=world.u)
        assert search.predict(world.x).shape == world.y.shape
        assert search.predict_proba(world.x).shape == (len(world.y), 2)

    def test_a_regression_is_searched_too(self):
        world = make_drifting_regression(n_samples=600, seed=111)
        search = CIDASearch(CIDARegressor(**QUICK), {"lambda_d": [0.5, 2.0]})
        search.fit(world.x, world.training_labels, domain_index=world.u)
        assert search.score(world.x, world.y) <= 1

    def test_it_can_be_cloned(self):
        search = CIDASearch(CIDAClassifier(), {"lambda_d": [1.0]}, "pairwise-agreement")
        assert clone(search).validator == "pairwise-agreement"


class TestExpectedAccuracy:
    @pytest.fixture(scope="class")
    @classmethod
    def found(cls):
        world = make_hours(n_samples=1500, seed=112)
        model = CIDAClassifier(capacity="mlp", steps=400, random_state=0)
        model.fit(world.x, world.training_labels, domain_index=world.u)
        with pytest.warns(CidaWarning, match="farther from the source"):
            cells = model.expected_score(world.x, world.training_labels, world.u)
        return world, model, cells

    def test_it_is_near_the_truth(self, found):
        world, model, cells = found
        right = model.predict(world.x, domain_index=world.u) == world.y
        off, inside = [], []
        for cell in cells:
            mine = ~world.source & (world.u >= cell.lo) & (world.u <= cell.hi)
            off.append(abs(right[mine].mean() - cell.score))
            inside.append(cell.low <= right[mine].mean() <= cell.high)
        assert np.mean(off) < 0.06
        assert np.mean(inside) > 0.7

    def test_an_interval_holds_its_estimate(self, found):
        for cell in found[2]:
            assert 0 <= cell.low <= cell.score <= cell.high <= 1

    def test_cells_far_from_the_source_are_not_checked(self, found):
        checked = {cell.is_within_calibration for cell in found[2]}
        assert checked == {True, False}
        for cell in found[2]:
            middle = (cell.lo + cell.hi) / 2
            away = min(abs(middle - 17) % 24, abs(9 - middle) % 24)
            assert cell.is_within_calibration == (away < 4) or abs(away - 4) < 2.5

    def test_the_model_itself_is_left_as_it_was(self, found):
        world, model, _ = found
        before = weights(model)
        with pytest.warns(CidaWarning):
            model.expected_score(world.x, world.training_labels, world.u, n_bins=5)
        assert equal(before, weights(model))

    def test_the_second_training_is_as_long_as_the_first(self, monkeypatch):
        world = make_hours(n_samples=400, seed=113)
        lengths = []
        model = CIDAClassifier(capacity="mlp", random_state=0)
        monkeypatch.setattr("cida.policy.FEW_ROWS_STEPS", 30)
        monkeypatch.setattr("cida.policy.MAX_STEPS", 30)
        model.fit(world.x, world.training_labels, domain_index=world.u)
        monkeypatch.setattr("cida.policy.FEW_ROWS_STEPS", 31)
        monkeypatch.setattr("cida.policy.MAX_STEPS", 31)
        run = Trainer.run
        monkeypatch.setattr(
            Trainer, "run", lambda t, *a: (lengths.append(t.config.steps), run(t, *a))[1]
        )
        with pytest.warns(CidaWarning, match="farther from the source"):
            assert model.expected_score(world.x, world.training_labels, world.u)
        assert lengths == [30]

    @pytest.mark.filterwarnings("ignore::cida.CidaWarning")  # of cells far from the source
    @pytest.mark.parametrize("discriminator", ["auto", "l2"])
    def test_a_loaded_model_expects_the_same(self, discriminator, tmp_path):
        world = make_hours(n_samples=400, seed=113)
        given = (world.x, world.training_labels, world.u)
        model = fitted(world, discriminator=discriminator, steps=20)
        model.save(tmp_path / "model")
        loaded = CIDAClassifier.load(tmp_path / "model")
        assert loaded.expected_score(*given) == model.expected_score(*given)

    @pytest.mark.filterwarnings("ignore::cida.CidaWarning")
    def test_a_loaded_model_asks_for_the_discriminator_that_its_file_does_not_hold(self, tmp_path):
        class OwnHead(Histogram):
            pass

        world = make_hours(n_samples=400, seed=113)
        given = (world.x, world.training_labels, world.u)
        fitted(world, discriminator=OwnHead(bins=5), steps=5).save(tmp_path / "model")
        with pytest.raises(ValueError, match="pass it again: load"):
            CIDAClassifier.load(tmp_path / "model").expected_score(*given)

    def test_a_model_without_an_index_is_refused(self):
        world = make_rotating_moons(n_samples=300, seed=111)
        model = CIDAClassifier(steps=5).fit(world.x, world.y)
        with pytest.raises(ValueError, match="no index to look along"):
            model.expected_score(world.x, world.y, world.u)
