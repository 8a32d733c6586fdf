"""Parameters that cannot work, and what a failed fit leaves behind."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from torch import nn

from cida import L2, CIDAClassifier, CIDARegressor, CidaWarning, Line, Periodic, Product
from cida.games import GAMES, MDD

SMALL = {"steps": 3, "encoder_hidden": (8,), "encoding_width": 4, "random_state": 0}


def fit_is_refused(model, data, *words, error=ValueError):
    """The fit fails with one sentence that holds the words, and leaves no half model behind."""
    with pytest.raises(error) as caught:
        model.fit(**data)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    for word in words:
        assert word in message, message
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


# --- parameters -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lambda_d", -1),
        ("lambda_d", np.nan),
        ("steps", 0),
        ("steps", 2.5),
        ("batch_size", 0),
        ("batch_size", 10.5),
        ("schedule", "x"),
        ("learning_rate", 0),
        ("learning_rate", "fast"),
        ("ema_decay", 1),
        ("curriculum", 1.5),
        ("n_balance_bins", 0),
        ("encoding_width", 0),
        ("discriminator_steps", 0),
        ("encoder_hidden", (8, 0)),
        ("predictor_hidden", (8, 0)),
        ("predictor_hidden", 64),
        ("coordinates", "fram"),
        ("coordinates", None),
        ("curriculum_stages", 0),
        ("curriculum_stages", 2.5),
        ("game", "adverserial"),
        ("game", None),
        ("game", L2),
        ("discriminator", "foo"),
        ("discriminator", 3),
    ],
)
def test_a_parameter_that_cannot_work_is_refused_by_name(kind, data, name, value):
    fit_is_refused(kind(**{**SMALL, name: value}), data, name, repr(value))


def test_an_unknown_discriminator_is_told_the_names_that_exist(kind, data):
    words = "'foo'", "l2", "l1", "gaussian", "mixture", "histogram", "None"
    fit_is_refused(kind(**SMALL, discriminator="foo"), data, *words)


def test_an_unknown_game_is_told_the_names_that_exist(kind, data):
    words = "game is 'cda'", *GAMES, "cida.games.Game"
    fit_is_refused(kind(**SMALL, game="cda"), data, *words)


@pytest.mark.parametrize("discriminator", ["histogram", None])
def test_a_misspelt_game_is_named_even_in_a_plain_fit(world, discriminator):
    plain = {"X": world.x, "y": world.y}
    model = CIDAClassifier(discriminator, game="ada", **SMALL)
    fit_is_refused(model, plain, "'ada'", "adda")


@pytest.mark.parametrize("game", ["mdd", MDD])
def test_a_game_of_classes_is_refused_in_a_regression(data, game):
    fit_is_refused(CIDARegressor(game=game, **SMALL), data, "game is 'mdd'", "CIDAClassifier")


@pytest.mark.parametrize("space", ["circle", Periodic])
def test_a_space_that_is_none_is_refused(kind, data, space):
    words = "space is", repr(space), "cida.Periodic(24)"
    fit_is_refused(kind(**SMALL, space=space), data, *words, error=TypeError)


def test_a_space_of_another_width_is_refused(kind, data):
    space = Product([Line(), Line()])
    words = "domain_index has 1 columns", "space=Product", "is for 2", "one Line or Periodic"
    fit_is_refused(kind(**SMALL, space=space), data, *words)


class Cube(nn.Module):
    def forward(self, x):
        return x[:, None, :].expand(-1, 3, -1)


def test_an_encoder_that_gives_no_vectors_is_refused(kind, data):
    words = "encoder gives an output of shape (2, 3, 2)", "one vector for each row", "flatten it"
    fit_is_refused(kind(**SMALL, encoder=Cube()), data, *words)


def test_a_predictor_of_another_width_is_refused(kind, data):
    fit_is_refused(kind(**SMALL, predictor=nn.Linear(4, 5)), data, "predictor", "5")


# --- what a failed fit leaves behind ----------------------------------------------------------


def test_a_fit_that_breaks_while_training_leaves_the_model_unfitted(kind, data):
    def stop(event):
        raise KeyboardInterrupt

    model = kind(**SMALL, callbacks=[stop])
    with pytest.raises(KeyboardInterrupt):
        model.fit(**data)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


@pytest.mark.parametrize(
    "broken",
    [
        {"y": np.array([np.inf, *[np.nan] * 71])},
        {"domain_index": np.ones(72)},
        {"X": np.full((72, 5), np.nan)},
        {"y": np.array([3.0, *[np.nan] * 71]), "X": np.ones((72, 2)) * 50},
    ],
    ids=["infinite y", "constant u", "NaN in a wider X", "one class, X elsewhere"],
)
def test_a_second_fit_that_fails_leaves_the_first_model_as_it_was(data, world, broken):
    model = CIDAClassifier(**SMALL).fit(**data)
    before = model.predict_proba(world.x, domain_index=world.u)
    with pytest.raises(ValueError):  # noqa: PT011
        model.fit(**{**data, **broken})
    assert np.array_equal(model.predict_proba(world.x, domain_index=world.u), before)
    assert np.array_equal(model.classes_, [0, 1])


@pytest.mark.parametrize("columns", [1, 3, 11])
def test_rows_that_were_fitted_are_never_called_far(columns):
    random = np.random.default_rng(0)
    x, u = random.normal(size=(6000, 2)), random.normal(size=(6000, columns))
    y = np.where(u[:, 0] < 0, x[:, 0] > 0, np.nan)
    model = CIDAClassifier(**SMALL).fit(x, y, domain_index=u)
    model.predict(x, domain_index=u)  # a warning would be an error here
    u[7, -1] = 40
    with pytest.warns(CidaWarning, match="in 1 of 6000 rows"):
        model.predict(x, domain_index=u)


def test_index_columns_in_another_order_are_refused(world):
    u = pd.DataFrame({"depth": world.u, "hour": 24 * world.u**2})
    model = CIDAClassifier(**SMALL).fit(world.x, world.training_labels, domain_index=u)
    with pytest.raises(ValueError, match=r"columns hour, depth but .* fitted with depth, hour"):
        model.predict(world.x, domain_index=u[["hour", "depth"]])


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"encoder": "mlp"}, TypeError, ("encoder is 'mlp'", "torch.nn.Module")),
        ({"encoder": nn.Linear(7, 3)}, ValueError, ("encoder cannot take", "(2, 2)")),
        ({"encoder": nn.Linear(2, 3).double()}, ValueError, ("encoder cannot take", "float32")),
        ({"predictor": nn.Linear(9, 2)}, ValueError, ("predictor cannot take",)),
        ({"encoder_hidden": 64}, ValueError, ("encoder_hidden", "64")),
        ({"callbacks": print}, TypeError, ("callbacks", "list of functions")),
    ],
)
def test_modules_and_settings_that_do_not_fit_are_named(data, settings, error, words):
    fit_is_refused(CIDAClassifier(**{**SMALL, **settings}), data, *words, error=error)


def test_score_by_index_needs_a_bin(data):
    model = CIDAClassifier(**SMALL).fit(**data)
    with pytest.raises(ValueError, match="bins is 0"):
        model.score_by_index(**data, n_bins=0)


def test_a_misspelt_discriminator_is_named_even_in_a_plain_fit(world):
    plain = {"X": world.x, "y": world.y}
    fit_is_refused(CIDAClassifier("histgram", **SMALL), plain, "'histgram'", "histogram")


def test_a_discriminator_that_was_built_before_is_refused(data, world):
    built = L2().build(4, Line(), torch.from_numpy(world.u)[:, None])
    fit_is_refused(CIDAClassifier(built, **SMALL), data, "built before", "give a new one")


def test_values_far_too_large_at_predict_are_named(data, world):
    model = CIDAClassifier(**SMALL).fit(**data)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"X .* 1e\+60"):
        model.predict(world.x * 0 + 1e60, domain_index=world.u)


def test_images_of_another_shape_at_predict_are_refused(world):
    images = np.zeros((len(world.x), 1, 4, 4)) + world.x[:, :1, None, None]
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    model = CIDAClassifier(encoder=encoder, steps=2)
    model.fit(images, world.training_labels, domain_index=world.u)
    with pytest.raises(ValueError, match=r"\(1, 5, 4\) but the model was fitted with \(1, 4, 4\)"):
        model.predict(np.zeros((3, 1, 5, 4)), domain_index=world.u[:3])
