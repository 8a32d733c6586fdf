"""Probabilistic encoders: what is averaged, how sure it is, and that it all repeats."""

import copy
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from cida import CIDAClassifier, CIDARegressor, load
from cida.data import IndexedDataset
from cida.networks import GaussianCode, MonteCarloDropout, fixed_draw, is_stochastic

SMALL = {"steps": 20, "encoder_hidden": (8,), "encoding_width": 4, "random_state": 0, "n_draws": 5}
KINDS = ("gaussian", "dropout")
NOISE = 0.3


@pytest.fixture(params=KINDS)
def stochastic(request):
    return request.param


@pytest.fixture(scope="module")
def classifiers(world):
    """A fitted classifier of three classes for each kind of encoder."""
    y = np.where(world.source, world.y + (world.x[:, 0] > 0), -1)
    return {
        kind: CIDAClassifier(**SMALL, stochastic=kind).fit(world.x, y, domain_index=world.u)
        for kind in KINDS
    }


@pytest.fixture(scope="module")
def line():
    """``y = x_1 + x_2 / 2`` and noise, for rows around 0."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, 2))
    return x, x @ [1.0, 0.5] + NOISE * rng.normal(size=800)


@pytest.fixture(scope="module")
def regressors(line):
    made = {"steps": 400, "encoder_hidden": (32, 32), "encoding_width": 8, "learning_rate": 3e-3}
    made |= {"ema_decay": 0.9, "random_state": 0}
    return {kind: CIDARegressor(**made, stochastic=kind).fit(*line) for kind in KINDS}


def by_hand(model, x, u):
    """The raw output of each draw, by the players themselves."""
    game, found = model.game_, []
    for draw in range(model.n_draws):
        with torch.no_grad(), fixed_draw(nn.ModuleList([game.encoder, game.predictor]), draw):
            found.append(
                game.predict(model.state_.scaler.transform(x), torch.as_tensor(u)[:, None])
            )
    return torch.stack(found).double()


# --- what is predicted ------------------------------------------------------------------------


def test_probabilities_are_the_mean_over_draws(classifiers, world, stochastic):
    model = classifiers[stochastic]
    drawn = by_hand(model, world.x, world.u).softmax(2)
    assert float(drawn.std(0).max()) > 1e-3
    found = model.predict_proba(world.x, domain_index=world.u)
    assert np.allclose(found, drawn.mean(0), atol=1e-6)
    assert np.allclose(found.sum(1), 1)
    predicted = model.predict(world.x, domain_index=world.u)
    assert np.array_equal(predicted, model.classes_[found.argmax(1)])


def test_the_number_is_the_mean_over_draws_and_std_adds_the_residuals(regressors, line, stochastic):
    model, (x, y) = regressors[stochastic], line
    drawn = (
        by_hand(model, x, np.zeros(len(x)))[..., 0].numpy() * model.state_.labels.scale
        + model.state_.labels.mean
    )
    predicted, std = model.predict(x, return_std=True)
    assert np.array_equal(predicted, model.predict(x))
    assert np.allclose(predicted, drawn.mean(0), atol=1e-5)
    residual = np.mean((y - predicted) ** 2)
    assert np.allclose(std, np.sqrt(drawn.var(0) + residual), rtol=1e-4)


def test_the_encoding_is_its_mean(data, kind, stochastic):
    model = kind(**SMALL, stochastic=stochastic).fit(**data)
    z = model.transform(data["X"], domain_index=data["domain_index"])
    u = torch.as_tensor(data["domain_index"])[:, None]
    with torch.no_grad():
        resting = model.game_.encode(model.state_.scaler.transform(data["X"]), u)
    assert z.shape == (len(data["X"]), 4)
    assert np.allclose(z, resting, atol=1e-5)


def test_the_number_of_draws_may_change_after_the_fit(regressors, line):
    model = copy.deepcopy(regressors["dropout"])
    many = model.set_params(n_draws=64).predict(line[0][:5])
    one = model.set_params(n_draws=1).predict(line[0][:5], return_std=True)
    assert not np.array_equal(one[0], many)
    assert one[1] == pytest.approx(
        np.sqrt(model.state_.labels.residual_variance) * model.state_.labels.scale
    )  # no spread in one
    with pytest.raises(ValueError, match=r"draws must be a whole number of at least 1, got 0\."):
        model.set_params(n_draws=0).predict(line[0])


# --- how sure -----------------------------------------------------------------------------------


def test_inside_the_source_the_deviation_is_that_of_the_noise(regressors, stochastic):
    x = np.random.default_rng(1).normal(size=(500, 2))
    _, std = regressors[stochastic].predict(x, return_std=True)
    assert np.median(std) == pytest.approx(NOISE, rel=0.2)
    assert std.min() > 0.85 * NOISE


def test_far_away_it_is_at_least_that_and_with_dropout_it_grows(regressors):
    x = np.random.default_rng(1).normal(size=(500, 2))
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    at = {
        kind: [np.median(model.predict(r * unit, return_std=True)[1]) for r in (1, 6, 12)]
        for kind, model in regressors.items()
    }
    assert min(at["gaussian"]) > 0.85 * NOISE
    near, far, farther = at["dropout"]
    assert far > 1.5 * near
    assert farther > 1.5 * far


def test_residuals_are_those_of_the_source_alone_and_weighted(line):
    x, y = line
    source, weight = x[:, 0] > 0, np.where(x[:, 1] > 0, 1.0, 0.0)
    counts = source & (weight > 0)
    wild = np.where(counts, y, y + 100.0)
    model = CIDARegressor(**SMALL, stochastic="gaussian")
    model.fit(x, wild, domain_index=x[:, 0], source=source, sample_weight=weight)
    predicted = model.predict(x, domain_index=x[:, 0])
    expected = np.mean((y - predicted)[counts] ** 2)
    assert model.state_.labels.residual_variance * model.state_.labels.scale**2 == pytest.approx(
        expected, rel=1e-4
    )


class Shaken(IndexedDataset):
    """Rows that are moved a little whenever they are dealt."""

    def __getitem__(self, indices):
        batch = super().__getitem__(indices)
        return replace(batch, x=batch.x + 1e-4 * torch.randn_like(batch.x))


def test_rows_made_on_the_fly_have_residuals_too(line):
    x, y = (torch.as_tensor(part, dtype=torch.float32) for part in line)
    rows = Shaken(x, y[:, None], x[:, :1], torch.ones(800, dtype=torch.bool))
    model = CIDARegressor(None, **SMALL, stochastic="dropout", coordinates="raw")
    before = torch.random.get_rng_state()
    predicted = model.fit_dataset(rows).predict(line[0])
    assert model.state_.labels.residual_variance == pytest.approx(
        np.mean((line[1] - predicted) ** 2), rel=1e-3
    )
    assert torch.equal(torch.random.get_rng_state(), before)


# --- it repeats -------------------------------------------------------------------------------


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(chosen=st.lists(st.integers(0, 71), min_size=1, max_size=72, unique=True))
@pytest.mark.parametrize("stochastic", KINDS)
def test_a_row_is_predicted_the_same_alone_and_among_others(classifiers, world, stochastic, chosen):
    model = classifiers[stochastic]
    whole = model.predict_proba(world.x, domain_index=world.u)
    part = model.predict_proba(world.x[chosen], domain_index=world.u[chosen])
    assert np.array_equal(part, whole[chosen])


def test_a_row_has_the_same_deviation_alone_and_among_others(regressors, line, stochastic):
    model, x = regressors[stochastic], line[0]
    whole = np.stack(model.predict(x, return_std=True))
    for row in (0, 255, 256, 799):
        alone = np.stack(model.predict(x[row : row + 1], return_std=True))
        assert np.array_equal(alone[:, 0], whole[:, row])


def test_predictions_repeat_and_leave_the_random_state_alone(classifiers, world, stochastic):
    before = torch.random.get_rng_state()
    first, second = (
        classifiers[stochastic].predict_proba(world.x, domain_index=world.u) for _ in range(2)
    )
    assert np.array_equal(first, second)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_fit_repeats_bit_for_bit(kind, data, stochastic):
    where = {"domain_index": data["domain_index"]}
    one, two = (kind(**SMALL, stochastic=stochastic).fit(**data) for _ in range(2))
    assert np.array_equal(one.predict(data["X"], **where), two.predict(data["X"], **where))


def test_clones_and_pickles_keep_it(kind, data, stochastic):
    model = kind(**SMALL, stochastic=stochastic).fit(**data)
    where = {"domain_index": data["domain_index"]}
    fresh = clone(model)
    assert (fresh.stochastic, fresh.n_draws) == (stochastic, 5)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(data["X"], **where), model.predict(data["X"], **where))


# --- every encoder, every game ----------------------------------------------------------------


@pytest.mark.parametrize("coordinates", ["moving-frame", "windows", "learned", "raw"])
def test_each_built_in_encoder_can_be_probabilistic_and_saved(
    kind, data, stochastic, coordinates, tmp_path
):
    model = kind(**SMALL, stochastic=stochastic, coordinates=coordinates).fit(**data)
    assert is_stochastic(model.game_.encoder)
    assert not is_stochastic(model.game_.predictor)
    model.save(tmp_path / "model.cida")
    again = load(tmp_path / "model.cida")
    asked = [("predict", {})]
    asked.append(
        ("predict", {"return_std": True}) if kind is CIDARegressor else ("predict_proba", {})
    )
    for method, named in asked:
        mine, theirs = (
            getattr(m, method)(data["X"], domain_index=data["domain_index"], **named)
            for m in (model, again)
        )
        assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("game", ["adversarial", "conditional", "dann", "adda", "mdd", "cua"])
def test_each_game_can_be_played_with_one(data, stochastic, game, tmp_path):
    model = CIDAClassifier(**SMALL, stochastic=stochastic, game=game).fit(**data)
    model.save(tmp_path / "model.cida")
    again = CIDAClassifier.load(tmp_path / "model.cida")
    where = {"domain_index": data["domain_index"]}
    found = model.predict_proba(data["X"], **where)
    assert np.array_equal(again.predict_proba(data["X"], **where), found)


# --- a user's own modules ---------------------------------------------------------------------


def own_modules():
    return {
        "encoder": nn.Sequential(nn.Linear(2, 8), GaussianCode()),
        "predictor": nn.Sequential(MonteCarloDropout(0.3), nn.Linear(4, 1)),
    }


@pytest.mark.parametrize("mine", ["encoder", "predictor"])
def test_a_module_of_ones_own_is_drawn_where_it_can_be(data, mine, tmp_path):
    modules = {mine: own_modules()[mine]}
    model = CIDARegressor(**SMALL, **modules, coordinates="raw").fit(**data)
    predicted, std = model.predict(data["X"], return_std=True)
    assert (std > np.sqrt(model.state_.labels.residual_variance) * model.state_.labels.scale).all()
    model.save(tmp_path / "model.cida")
    again = np.stack(load(tmp_path / "model.cida", **modules).predict(data["X"], return_std=True))
    assert np.array_equal(again, [predicted, std])


def test_dropout_that_only_regularises_is_not_drawn(data):
    model = CIDAClassifier(**SMALL, coordinates="windows").fit(**data)
    dropouts = [m for m in model.game_.encoder.modules() if isinstance(m, nn.Dropout)]
    assert dropouts
    assert not is_stochastic(model.game_.encoder)


def test_a_model_that_is_not_probabilistic_predicts_in_one_pass(data, kind):
    model = kind(**SMALL).fit(**data)
    calls = []
    model.game_.predictor.register_forward_hook(lambda *_: calls.append(1))
    where = {"domain_index": data["domain_index"]}
    before = model.predict(data["X"], **where)
    assert len(calls) == 1
    assert np.array_equal(model.set_params(n_draws=1).predict(data["X"], **where), before)


# --- files and pipelines ----------------------------------------------------------------------


def test_a_file_from_before_there_were_draws_still_loads(data, tmp_path):
    path, where = tmp_path / "model.cida", {"domain_index": data["domain_index"]}
    model = CIDARegressor(**{**SMALL, "n_draws": 32}).fit(**data)
    model.save(path)
    with safe_open(path, "pt") as file:
        words = file.metadata()
    header = json.loads(words["cida"])
    del header["parameters"]["stochastic"], header["parameters"]["n_draws"]
    del header["labels"]["residual"]
    save_file(load_file(path), path, {**words, "cida": json.dumps(header)})
    again = CIDARegressor.load(path)
    assert again.get_params() == model.get_params()
    assert np.array_equal(again.predict(data["X"], **where), model.predict(data["X"], **where))


def test_the_deviation_comes_through_a_pipeline(line):
    x, y = line
    with config_context(enable_metadata_routing=True):
        model = CIDARegressor(None, **SMALL, stochastic="dropout")
        pipeline = make_pipeline(StandardScaler(), model).fit(x, y, domain_index=x[:, 0])
        predicted, std = pipeline.predict(x, domain_index=x[:, 0], return_std=True)
        assert np.array_equal(pipeline.predict(x, domain_index=x[:, 0]), predicted)
    assert std.shape == (800,)


# --- what is refused --------------------------------------------------------------------------


def test_a_deviation_needs_a_probabilistic_encoder(data):
    model = CIDARegressor(**SMALL).fit(**data)
    with pytest.raises(ValueError, match=r"return_std is True.*stochastic='gaussian'.*\.$"):
        model.predict(data["X"], domain_index=data["domain_index"], return_std=True)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"stochastic": "normal"}, "stochastic must be 'gaussian', 'dropout' or None"),
        ({"stochastic": True}, "stochastic must be 'gaussian', 'dropout' or None, got True"),
        ({"n_draws": 0}, "draws must be a whole number of at least 1, got 0"),
        ({"n_draws": 2.5}, "draws must be a whole number of at least 1, got 2.5"),
        (
            {"stochastic": "gaussian", "encoder": nn.Linear(2, 3)},
            "encoder is your own; put cida.networks.GaussianCode into it",
        ),
        (
            {"stochastic": "dropout", "encoder": nn.Linear(2, 3)},
            "encoder is your own; put cida.networks.MonteCarloDropout into it",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(kind, data, parameters, words):
    with pytest.raises(ValueError, match=words):
        kind(**{**SMALL, **parameters}).fit(**data)
