"""What an estimator chooses where its user leaves a setting open."""

import numpy as np
import pytest
import torch
from cida.estimators.choices import Plan, choose_head, choose_space
from torch import nn

from cida import (
    CIDAClassifier,
    CIDARegressor,
    Gaussian,
    Histogram,
    Line,
    Periodic,
    Product,
    load,
)
from cida.data import IndexedDataset
from cida.datasets import (
    make_circle,
    make_drifting_regression,
    make_hours,
    make_noise_index,
    make_rotating_moons,
)
from cida.discriminators import DISCRIMINATORS
from cida.games import GAMES

QUICK = {"steps": 1, "encoding_width": 4, "random_state": 0}


def fitted(world, kind=CIDAClassifier, **settings):
    model = kind(**{**QUICK, **settings})
    return model.fit(world.x, world.training_labels, domain_index=world.u)


@pytest.fixture(scope="module")
def discs():
    """36 source rows: too few for trials, so that fits are quick."""
    return make_circle(n_domains=6, n_per_domain=12, n_source_domains=3, seed=100)


# --- the space --------------------------------------------------------------------------------


def space_of(world, u=None):
    u = world.u if u is None else u
    return choose_space(world.x, torch.from_numpy(u.reshape(len(u), -1)))


@pytest.mark.parametrize("seed", [100, 101, 102])
@pytest.mark.parametrize("period", [24, 360, 365.25, 2 * np.pi])
def test_what_goes_once_round_a_known_period_lives_on_a_circle(period, seed):
    world = make_hours(seed=seed)
    assert space_of(world, world.u / 24 * period) == Periodic(period)


@pytest.mark.parametrize("seed", [100, 101, 102])
def test_moons_and_circle_live_on_a_line(seed):
    assert space_of(make_rotating_moons(seed=seed)) == Line()
    assert space_of(make_circle(seed=seed)) == Line()


@pytest.mark.parametrize("period", [24, 360, 365.25, 2 * np.pi])
def test_what_drifts_over_a_period_without_meeting_itself_stays_on_a_line(period):
    world = make_drifting_regression(seed=100)
    assert space_of(world, world.u / 10 * period * 0.9999) == Line()


@pytest.mark.parametrize("seed", range(100, 110))
def test_rows_that_say_nothing_of_the_hour_stay_on_a_line(seed):
    world = make_noise_index(seed=seed)
    assert space_of(world, world.u * 24) == Line()


@pytest.mark.parametrize(
    "change",
    [lambda u: u - 12, lambda u: u * 0.9, lambda u: u + 24, lambda u: u / 24, lambda u: u * 2],
    ids=["from -12", "nine tenths of a day", "the next day", "shares", "another period"],
)
def test_other_ranges_stay_on_a_line(change):
    world = make_hours(seed=100)
    assert space_of(world, change(world.u)) == Line()


def test_a_part_of_the_day_without_rows_leaves_a_line():
    world = make_hours(seed=100)
    kept = (world.u < 5) | (world.u > 9)
    assert choose_space(world.x[kept], torch.from_numpy(world.u[kept])[:, None]) == Line()
    few = slice(0, 100)
    assert choose_space(world.x[few], torch.from_numpy(world.u[few])[:, None]) == Line()


def test_the_units_of_x_and_the_order_of_rows_do_not_decide():
    world = make_hours(seed=100)
    order = np.random.default_rng(0).permutation(len(world.u))
    u = torch.from_numpy(world.u[order])[:, None]
    assert choose_space(1000 * world.x[order] - 7, u) == Periodic(24)


def test_several_numbers_are_lines():
    world = make_hours(seed=100)
    assert space_of(world, np.stack([world.u, world.u], axis=1)) == Product([Line(), Line()])


def test_fit_takes_the_chosen_space_and_a_users_own_before_it():
    world = make_hours(n_samples=600, seed=100)
    assert isinstance(fitted(world).space_, Periodic)
    assert isinstance(fitted(world, space=Line()).space_, Line)
    assert fitted(world, space=Periodic(48)).space_.period == 48


# --- the head ---------------------------------------------------------------------------------


def rows_with(values, rows=400):
    u = torch.arange(rows, dtype=torch.float64).remainder(values)[:, None]
    return IndexedDataset(
        torch.zeros(rows, 2), torch.zeros(rows).long(), u, torch.ones(rows).bool()
    )


@pytest.mark.parametrize(
    ("values", "bins"), [(1, 2), (2, 2), (7, 7), (30, 30), (31, 30), (400, 30)]
)
def test_the_histogram_has_as_many_bins_as_u_has_values_and_at_most_thirty(values, bins):
    head = choose_head(CIDAClassifier(), rows_with(values))
    assert type(head) is Histogram
    assert head.bins == bins


def test_values_of_several_numbers_are_counted_together():
    rows = rows_with(3)
    rows.u = torch.cat([rows.u, torch.arange(400).remainder(4)[:, None]], dim=1)
    assert choose_head(CIDAClassifier(), rows).bins == 12


def test_a_head_of_the_users_own_is_taken_as_a_copy():
    mine = Histogram(bins=5)
    head = choose_head(CIDAClassifier(discriminator=mine), rows_with(9))
    assert head.bins == 5
    assert head is not mine
    assert type(choose_head(CIDAClassifier(discriminator="gaussian"), rows_with(9))) is Gaussian


# --- widths, weight and curriculum ------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "encoder_hidden"), [(None, (128, 128, 128)), ([8, np.int64(4)], (8, 4))]
)
def test_the_encoder_is_as_wide_as_asked_for_or_as_usual(discs, asked, hidden):
    model = fitted(discs, coordinates="raw", hidden=asked)
    assert model.plan_.encoder_hidden == hidden
    widths = [m.out_features for m in model.game_.encoder.modules() if isinstance(m, nn.Linear)]
    assert widths == [*hidden, 4]


@pytest.mark.parametrize("game", GAMES)
def test_the_weight_is_the_games_usual_one_and_ten_for_measures_of_dependence(discs, game):
    measured = game in ("distance-correlation", "hsic")
    assert GAMES[game].default_lambda == (10 if measured else 1)
    assert fitted(discs, game=game).plan_.lambda_d == GAMES[game].default_lambda
    assert fitted(discs, game=game, lambda_d=0.0).plan_.lambda_d == 0.0


@pytest.mark.parametrize("head", DISCRIMINATORS)
def test_heads_that_see_a_moment_or_two_get_a_curriculum_and_the_others_none(discs, head):
    space = Periodic(4) if head.startswith("von-mises") else None
    sees_all = DISCRIMINATORS[head].aligns_all_moments
    if head in ("l2", "l1", "gaussian", "full-gaussian", "skew", "von-mises"):
        assert not sees_all
    if head in ("histogram", "mixture", "flow"):
        assert sees_all
    model = fitted(discs, discriminator=head, space=space)
    assert model.plan_.curriculum == (0.0 if sees_all else 0.9)


def test_the_default_head_needs_no_curriculum_and_cua_is_nothing_without_one(discs):
    assert fitted(discs).plan_.curriculum == 0.0
    assert fitted(discs, discriminator=None).plan_.curriculum == 0.0
    assert fitted(discs, game="cua").plan_.curriculum == 0.9
    assert fitted(discs, game="cua", curriculum=0.0).plan_.curriculum == 0.9


# --- the user's settings ----------------------------------------------------------------------


@pytest.mark.parametrize("head", ["l2", "histogram"])
@pytest.mark.parametrize("curriculum", [0.0, 0.3, 1.0])
def test_a_curriculum_of_the_users_own_is_kept(discs, head, curriculum):
    model = fitted(discs, discriminator=head, curriculum=curriculum)
    assert model.plan_.curriculum == curriculum


@pytest.mark.parametrize("mode", ["frame", "axes", "windows", True, False])
def test_settings_of_the_users_own_are_never_changed(discs, mode):
    model = fitted(
        discs,
        hidden=[8, 9],
        lambda_d=0.25,
        curriculum=0.5,
        discriminator=Histogram(bins=4),
        space=Line(),
        coordinates=mode,
    )
    assert model.plan_ == Plan(mode, (8, 9), 0.25, 0.5)
    assert model.game_.discriminator.bins == 4
    assert model.game_.lambda_d == 0.25


def test_fitting_leaves_the_parameters_open(discs):
    model = fitted(discs)
    for name in ("encoder_hidden", "lambda_d", "curriculum", "space"):
        assert getattr(model, name) is None
    assert (model.discriminator, model.coordinates) == ("auto", "auto")


# --- how the encoder sees u -------------------------------------------------------------------


@pytest.mark.parametrize("make", [make_rotating_moons, make_circle])
def test_auto_chooses_coordinates_and_needs_u_to_predict(make):
    model = fitted(world := make(seed=100))
    assert model.plan_.coordinates == ("axes" if make is make_rotating_moons else "frame")
    assert model.game_.encoder.frame.follow == ("axes" if make is make_rotating_moons else "path")
    with pytest.raises(ValueError, match=r"^domain_index is missing"):
        model.predict(world.x)


def test_too_few_labelled_rows_leave_x_as_it_is(discs):
    model = fitted(discs)
    assert model.plan_.coordinates is False
    assert np.array_equal(model.predict(discs.x), model.predict(discs.x, domain_index=discs.u))


def test_coordinates_are_not_chosen_where_nobody_adapts_or_the_encoder_is_your_own():
    world = make_circle(seed=100)
    assert fitted(world, discriminator=None).plan_.coordinates is False
    assert fitted(world, encoder=nn.Linear(2, 4)).plan_.coordinates is False
    plain = CIDAClassifier(**QUICK).fit(world.x, world.y)
    assert plain.plan_.coordinates is False


@pytest.mark.parametrize("mode", ["frame", "axes"])
def test_a_frame_is_refused_on_a_circle_by_the_name_it_was_asked_by(mode):
    world = make_hours(n_samples=400, seed=100)
    with pytest.raises(ValueError, match=f"^coordinates is '{mode}', which needs .* Line"):
        fitted(world, coordinates=mode, space=Periodic(24))


def test_target_labels_decide_nothing():
    world = make_circle(seed=100)
    models = []
    for target in (0, 1):
        y = np.where(world.source, world.y, target)
        model = CIDAClassifier(**QUICK)
        models.append(model.fit(world.x, y, domain_index=world.u, source=world.source))
    first, other = (model.transform(world.x, domain_index=world.u) for model in models)
    assert models[0].plan_ == models[1].plan_
    assert np.array_equal(first, other)


# --- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [CIDAClassifier, CIDARegressor])
@pytest.mark.parametrize("mode", ["frame", "axes", "windows", False, True])
def test_choices_come_back_with_the_same_bits(tmp_path, discs, kind, mode):
    model = fitted(discs, kind, coordinates=mode, discriminator="l2", lambda_d=0.5)
    model.save(tmp_path / "model.cida")
    again = load(tmp_path / "model.cida")
    assert again.plan_ == model.plan_ == Plan(mode, (128, 128, 128), 0.5, 0.9)
    assert again.plan_.index_mode is model.plan_.coordinates or isinstance(mode, str)
    for method in ("predict", "transform"):
        expected = getattr(model, method)(discs.x, domain_index=discs.u)
        assert np.array_equal(getattr(again, method)(discs.x, domain_index=discs.u), expected)


def test_what_was_chosen_comes_back_though_the_parameters_are_still_open(tmp_path):
    world = make_rotating_moons(seed=100)
    model = fitted(world)
    model.save(tmp_path / "model.cida")
    again = load(tmp_path / "model.cida")
    assert again.plan_ == model.plan_ == Plan("axes", (128, 128, 128), 1.0, 0.0)
    assert (again.coordinates, again.hidden, again.lambda_d) == ("auto", None, None)
    expected = model.predict_proba(world.x, domain_index=world.u)
    assert np.array_equal(again.predict_proba(world.x, domain_index=world.u), expected)
