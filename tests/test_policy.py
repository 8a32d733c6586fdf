"""What the policy decides where a user leaves a setting open."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from cida import CIDAClassifier, CIDARegressor, Gaussian, Histogram, Line, Periodic, Product, load
from cida.data import IndexedDataset, RowLayout
from cida.datasets import (
    make_circle,
    make_drifting_regression,
    make_hours,
    make_noise_index,
    make_rotating_moons,
)
from cida.discriminators import DISCRIMINATORS
from cida.games import GAMES
from cida.networks import TabularEncoder
from cida.policy import FitRequest, Plan, choose_space, resolve

QUICK = {"capacity": "mlp", "steps": 1, "encoding_width": 4, "random_state": 0}


def fitted(world, kind=CIDAClassifier, **settings):
    model = kind(**{**QUICK, **settings})
    return model.fit(world.x, world.training_labels, domain_index=world.u)


@pytest.fixture(scope="module")
def discs():
    """36 source rows: too few for trials, so that fits are quick."""
    return make_circle(n_domains=6, n_per_domain=12, n_source_domains=3, seed=100)


# --- the space --------------------------------------------------------------------------------


def space_of_rows(x, u):
    rows = IndexedDataset(
        torch.from_numpy(x).float(),
        torch.zeros(len(x)).long(),
        torch.from_numpy(u.reshape(len(u), -1)),
        torch.ones(len(x)).bool(),
    )
    return choose_space(rows, RowLayout("columns", x.shape[1:]))


def space_of(world, u=None):
    return space_of_rows(world.x, world.u if u is None else u)


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
    assert space_of_rows(world.x[kept], world.u[kept]) == Line()
    few = slice(0, 100)
    assert space_of_rows(world.x[few], world.u[few]) == Line()


def test_the_units_of_x_and_the_order_of_rows_do_not_decide():
    world = make_hours(seed=100)
    order = np.random.default_rng(0).permutation(len(world.u))
    assert space_of_rows(1000 * world.x[order] - 7, world.u[order]) == Periodic(24)


def test_several_numbers_are_lines():
    world = make_hours(seed=100)
    assert space_of(world, np.stack([world.u, world.u], axis=1)) == Product([Line(), Line()])


def test_fit_takes_the_chosen_space_and_a_users_own_before_it():
    world = make_hours(n_samples=600, seed=100)
    assert isinstance(fitted(world).space_, Periodic)
    assert isinstance(fitted(world, space=Line()).space_, Line)
    assert fitted(world, space=Periodic(48)).space_.period == 48


# --- the head ---------------------------------------------------------------------------------


def head_for(rows, discriminator="auto"):
    request = FitRequest(discriminator=discriminator, coordinates="raw", capacity="mlp")
    layout = RowLayout("columns", (2,), has_index=False)  # so that one value of u is no error
    return resolve(request, rows, layout).head


def rows_with(values, rows=400):
    u = torch.arange(rows, dtype=torch.float64).remainder(values)[:, None]
    return IndexedDataset(
        torch.zeros(rows, 2), torch.zeros(rows).long(), u, torch.ones(rows).bool()
    )


@pytest.mark.parametrize(
    ("values", "bins"), [(1, 2), (2, 2), (7, 7), (30, 30), (31, 30), (400, 30)]
)
def test_the_histogram_has_as_many_bins_as_u_has_values_and_at_most_thirty(values, bins):
    head = head_for(rows_with(values))
    assert type(head) is Histogram
    assert head.bins == bins


def test_values_of_several_numbers_are_counted_together():
    rows = rows_with(3)
    rows.u = torch.cat([rows.u, torch.arange(400).remainder(4)[:, None]], dim=1)
    assert head_for(rows).bins == 12


def test_a_head_of_the_users_own_is_taken_as_a_copy():
    mine = Histogram(bins=5)
    head = head_for(rows_with(9), mine)
    assert head.bins == 5
    assert head is not mine
    assert type(head_for(rows_with(9), "gaussian")) is Gaussian


# --- widths, weight and curriculum ------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "capacity", "hidden"),
    [
        (None, "mlp", (128, 128, 128)),
        (None, "linear", (64,)),
        ([8, np.int64(4)], "mlp", (8, 4)),
        ([8, np.int64(4)], "linear", (8, 4)),
    ],
)
def test_the_encoder_is_as_wide_as_asked_for_or_as_usual(discs, asked, capacity, hidden):
    model = fitted(discs, coordinates="raw", capacity=capacity, encoder_hidden=asked)
    assert model.plan_.encoder_hidden == hidden
    if capacity == "linear":  # next to a line of its own
        assert isinstance(model.game_.encoder, TabularEncoder)
        return
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


@pytest.mark.parametrize("mode", ["moving-frame", "principal-axes", "windows", "learned", "raw"])
def test_settings_of_the_users_own_are_never_changed(discs, mode):
    model = fitted(
        discs,
        encoder_hidden=[8, 9],
        predictor_hidden=[7],
        discriminator_steps=3,
        proximity=0.7,
        learning_rate=2e-3,
        weight_decay=0.5,
        ema_decay=0.9,
        batch_size=16,
        source_batch_size=5,
        lambda_d=0.25,
        curriculum=0.5,
        discriminator=Histogram(bins=4),
        space=Line(),
        coordinates=mode,
    )
    plan = model.plan_
    assert (plan.coordinates, plan.encoder_hidden, plan.predictor_hidden) == (mode, (8, 9), (7,))
    assert (plan.lambda_d, plan.curriculum, plan.discriminator_steps) == (0.25, 0.5, 3)
    assert (plan.learning_rate, plan.weight_decay, plan.ema_decay) == (2e-3, 0.5, 0.9)
    assert (plan.proximity, plan.steps, plan.batch_size, plan.source_batch_size) == (0.7, 1, 16, 5)
    assert {reason.rule for reason in plan.reasons.values()} == {"user"}
    assert plan.summary() == []
    assert model.game_.discriminator.bins == 4
    assert model.game_.lambda_d == 0.25


def test_fitting_leaves_the_parameters_open(discs):
    model = fitted(discs)
    for name in (
        "encoder_hidden", "predictor_hidden", "lambda_d", "curriculum", "space", "learning_rate",
        "discriminator_steps", "weight_decay", "ema_decay", "proximity", "batch_size",
    ):  # fmt: skip
        assert getattr(model, name) is None
    assert (model.discriminator, model.coordinates) == ("auto", "auto")


# --- how the encoder sees u -------------------------------------------------------------------


@pytest.mark.parametrize("make", [make_rotating_moons, make_circle])
def test_auto_chooses_coordinates_and_needs_u_to_predict(make):
    model = fitted(world := make(seed=100))
    assert model.plan_.coordinates == (
        "principal-axes" if make is make_rotating_moons else "moving-frame"
    )
    assert model.game_.encoder.frame.follow == ("axes" if make is make_rotating_moons else "path")
    with pytest.raises(ValueError, match=r"^domain_index is missing"):
        model.predict(world.x)


def test_too_few_labelled_rows_leave_x_as_it_is(discs):
    model = fitted(discs)
    assert model.plan_.coordinates == "raw"
    assert np.array_equal(model.predict(discs.x), model.predict(discs.x, domain_index=discs.u))


def test_coordinates_are_not_chosen_where_nobody_adapts_or_the_encoder_is_your_own():
    world = make_circle(seed=100)
    assert fitted(world, discriminator=None).plan_.coordinates == "raw"
    assert fitted(world, encoder=nn.Linear(2, 4)).plan_.coordinates == "raw"
    plain = CIDAClassifier(**QUICK).fit(world.x, world.y)
    assert plain.plan_.coordinates == "raw"


@pytest.mark.parametrize("mode", ["moving-frame", "principal-axes"])
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


# --- capacity ---------------------------------------------------------------------------------


def plan_of(world, **request):
    rows = IndexedDataset(
        torch.from_numpy(world.x).float(),
        torch.from_numpy(world.y),
        torch.from_numpy(world.u.reshape(len(world.u), -1)),
        torch.from_numpy(world.source),
    )
    return resolve(FitRequest(**request), rows, RowLayout("columns", world.x.shape[1:]))


def test_a_moving_frame_has_a_network_and_what_a_user_sets_goes_first():
    world = make_circle(seed=100)
    plan = plan_of(world)
    assert (plan.capacity, plan.reasons["capacity"].rule) == ("mlp", "moving-frame-default")
    assert (plan.steps, plan.batch_size, plan.source_batch_size) == (2000, 128, 64)
    plan = plan_of(world, capacity="linear")
    assert (plan.capacity, plan.reasons["capacity"].rule) == ("linear", "user")
    assert (plan.predictor_hidden, plan.weight_decay, plan.steps) == ((), 3.0, 1000)


def test_few_labelled_rows_a_column_take_a_linear_capacity(discs):
    plan = plan_of(discs)
    assert (plan.coordinates, plan.capacity) == ("raw", "linear")
    reason = plan.reasons["capacity"]
    assert reason.rule == "rows-per-column"
    assert reason.evidence == {"labelled rows per column": 18.0}


def test_the_same_request_and_rows_give_the_same_plan_which_is_told_in_sentences():
    world = make_circle(n_domains=6, n_per_domain=60, n_source_domains=3, seed=100)
    first, again = plan_of(world), plan_of(world)
    assert first == again
    assert first == Plan.from_dict(json.loads(json.dumps(first.to_dict())))
    assert all(sentence.endswith(".") for sentence in first.summary())
    assert any(sentence.startswith("capacity is ") for sentence in first.summary())


# --- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [CIDAClassifier, CIDARegressor])
@pytest.mark.parametrize("mode", ["moving-frame", "principal-axes", "windows", "raw", "learned"])
def test_choices_come_back_with_the_same_bits(tmp_path, discs, kind, mode):
    model = fitted(discs, kind, coordinates=mode, discriminator="l2", lambda_d=0.5)
    model.save(tmp_path / "model.cida")
    again = load(tmp_path / "model.cida")
    assert again.plan_ == model.plan_
    plan = again.plan_
    assert (plan.coordinates, plan.encoder_hidden) == (mode, (128, 128, 128))
    assert (plan.lambda_d, plan.curriculum) == (0.5, 0.9)
    assert plan.has_index_input == (mode != "raw")
    assert plan.summary() == model.plan_.summary()
    for method in ("predict", "transform"):
        expected = getattr(model, method)(discs.x, domain_index=discs.u)
        assert np.array_equal(getattr(again, method)(discs.x, domain_index=discs.u), expected)


def test_what_was_chosen_comes_back_though_the_parameters_are_still_open(tmp_path):
    world = make_rotating_moons(seed=100)
    model = fitted(world)
    model.save(tmp_path / "model.cida")
    again = load(tmp_path / "model.cida")
    assert again.plan_ == model.plan_
    plan = again.plan_
    assert (plan.coordinates, plan.encoder_hidden) == ("principal-axes", (128, 128, 128))
    assert (plan.lambda_d, plan.curriculum) == (1.0, 0.0)
    assert (again.coordinates, again.encoder_hidden, again.lambda_d) == ("auto", None, None)
    expected = model.predict_proba(world.x, domain_index=world.u)
    assert np.array_equal(again.predict_proba(world.x, domain_index=world.u), expected)
