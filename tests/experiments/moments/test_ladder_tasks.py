"""The moment ladder as a benchmark: exact rungs, the shortcut, and what each head sees of it."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from torch import nn

from cida.datasets import make_ladder
from cida.datasets.ladder import SOURCE_EDGE, SWITCH_POINTS_BY_MOMENT, shortcut_side
from cida.discriminators import L1, L2, Gaussian, Histogram
from cida.experiments.moments import ladder_tasks
from cida.experiments.moments.ladder_tasks import (
    MOMENTS,
    LadderDistribution,
    ShortcutNetworks,
    ShortcutTaskData,
    dependence_start_metrics,
    discriminator_start_metrics,
)
from cida.experiments.spec import build_recipes
from cida.experiments.task_data import DependenceTaskData
from cida.games import GAMES
from cida.spaces import Line

ORDER = {"mean": 1, "variance": 2, "skewness": 3, "whole": 4}


@pytest.fixture(params=SWITCH_POINTS_BY_MOMENT)
def rung(request):
    return request.param


# --- the exact rung ---------------------------------------------------------------------------


def test_chances_add_up_to_one_and_every_place_has_the_same(rung):
    exact = LadderDistribution.from_rung(rung)
    assert exact.probability.shape == (len(exact.x), len(exact.u))
    assert float(exact.probability.sum()) == pytest.approx(1, abs=1e-12)
    assert float(exact.probability.min()) >= 0
    assert torch.allclose(
        exact.probability.sum(0), torch.full((300,), 1 / 300).double(), atol=1e-12
    )


def test_places_are_those_of_the_ladders_density(rung):
    u = LadderDistribution.from_rung(rung).u[:, 0].numpy()
    assert np.allclose(0.5 + 0.75 * u - 0.25 * u**3, (np.arange(300) + 0.5) / 300, atol=1e-12)
    assert np.mean(np.abs(u) <= SOURCE_EDGE) == pytest.approx(0.4, abs=1 / 300)


def test_switches_are_even_and_independent_of_the_place(rung):
    exact = LadderDistribution.from_rung(rung)
    switches = exact.x[:, 1:].double()
    for column in (switches[:, 0], switches[:, 1], switches.prod(1)):
        assert set(column.tolist()) == {-1, 1}
        assert torch.allclose(column @ exact.probability, torch.zeros(300).double(), atol=1e-12)


def test_the_shortcut_is_the_label_in_the_source_and_the_side_in_the_target(rung):
    exact = LadderDistribution.from_rung(rung)
    u, x = exact.u[:, 0].numpy(), exact.x.numpy()
    where, label = shortcut_side(u, rung), x[:, 1] * x[:, 2]
    expected = np.where(where == 0, label[:, None], where)
    relative = norm.pdf(x[:, :1], expected, 0.5)
    assert np.allclose(exact.probability.numpy(), relative / relative.sum(), atol=1e-12)


def test_by_shortcut_sums_over_the_switches_alone(rung):
    exact = LadderDistribution.from_rung(rung)
    z, chance = exact.marginal_over_switches()
    assert z.shape == (25, 1)
    assert torch.all(z.diff(dim=0) > 0)
    for value, line in zip(z, chance, strict=True):
        mine = exact.x[:, 0] == value
        assert int(mine.sum()) == 4
        assert torch.allclose(line.double(), exact.probability[mine].sum(0), atol=1e-7)


def spread_of_moments(rung):
    """The deviation over z of ``E[u^j | z]`` for j = 1 to 4."""
    exact = LadderDistribution.from_rung(rung)
    chance = exact.marginal_over_switches()[1].double()
    given_z = chance / chance.sum(1, keepdim=True)
    return [float((given_z @ exact.u**power).std()) for power in range(1, 5)]


def test_the_shortcut_tells_nothing_of_u_below_the_rungs_own_moment(rung, monkeypatch):
    below = ORDER[rung] - 1
    spread = spread_of_moments(rung)
    assert spread[below] > 4 * max(spread[:below], default=0)
    monkeypatch.setattr(ladder_tasks, "N_INDEX_VALUES", 3000)
    spread = spread_of_moments(rung)
    assert max(spread[:below], default=0) < 5e-4
    assert spread[below] > 0.01


# --- the shortcut for an encoder --------------------------------------------------------------

numbers = st.floats(-100, 100, width=32)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=8), st.integers(0, 99))
def test_the_encoder_begins_as_the_shortcut_exactly(rows, seed):
    x = torch.tensor(rows)
    assert torch.equal(ShortcutNetworks().encoder(Line(), seed)(x), x[:, :1])


def test_units_that_are_not_listened_to_yet_can_be():
    encoder = ShortcutNetworks().encoder(Line(), 0)
    x = torch.from_numpy(make_ladder(n_samples=50).x).float()
    encoder(x).square().sum().backward()
    *_, last = (m for m in encoder.modules() if isinstance(m, nn.Linear))
    # The others follow once a step has made one of these weights something else than 0.
    assert int((last.weight.grad[0, 2:] != 0).sum()) > 30
    with torch.no_grad():
        last.weight -= 0.01 * last.weight.grad
    encoder(x).square().sum().backward()
    first = next(m for m in encoder.modules() if isinstance(m, nn.Linear))
    assert int((first.weight.grad[2:] != 0).any(1).sum()) > 30


def test_a_seed_draws_what_is_not_listened_to_and_leaves_the_global_state_alone():
    before = torch.get_rng_state()
    first, again, other = (ShortcutNetworks((8, 8)).encoder(Line(), s) for s in (3, 3, 4))
    assert torch.equal(before, torch.get_rng_state())
    weights = [next(e.parameters()) for e in (first, again, other)]
    assert weights[0].shape == (8, 3)
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


# --- what heads see at the start --------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(ladder_tasks, "DISCRIMINATOR_TRAINING_STEPS", 600)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("head", "blind_to"),
    [(L2, ("variance", "skewness", "whole")), (Gaussian, ("skewness", "whole"))],
)
def test_a_head_that_is_blind_to_a_rung_sees_nothing_and_says_nothing(head, blind_to):
    for rung in blind_to:
        start = discriminator_start_metrics(head(hidden=(32,)), rung, seed=100)
        assert start["seen at the start"] == pytest.approx(0, abs=1e-3)
        assert start["gradient at the start"] < 1e-3


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("head", "rung", "least"),
    [
        (L2, "mean", 0.4),
        (L1, "mean", 0.2),
        (Gaussian, "variance", 0.05),
        (Histogram, "skewness", 0.2),
        (Histogram, "whole", 0.1),
    ],
)
def test_a_head_that_sees_the_rung_gets_below_its_ceiling_and_says_so(head, rung, least):
    start = discriminator_start_metrics(head(hidden=(32,)), rung, seed=100)
    assert start["seen at the start"] > least
    assert start["gradient at the start"] > 1e-2


@pytest.mark.usefixtures("quick")
def test_l2_sees_what_the_conditional_means_of_u_leave_of_its_variance():
    exact = LadderDistribution.from_rung("mean")
    _, chance = exact.marginal_over_switches()
    u = exact.u / exact.u.std(correction=0)
    mass = chance.double().sum(1)
    means = (chance.double() @ u)[:, 0] / mass
    seen = discriminator_start_metrics(L2(hidden=(32,)), "mean", seed=100)["seen at the start"]
    assert seen == pytest.approx(float(mass @ means**2), abs=0.02)


@pytest.fixture
def few_rows(monkeypatch):
    """Distances between all rows take their time."""
    monkeypatch.setattr(ladder_tasks.ladder, "make_ladder", partial(make_ladder, n_samples=1000))


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("game", ["distance-correlation", "hsic"])
def test_a_measure_of_dependence_sees_the_mean_best_and_every_rung_a_little(game):
    found = {
        rung: dependence_start_metrics(GAMES[game], rung, seed=100)
        for rung in SWITCH_POINTS_BY_MOMENT
    }
    seen = {rung: one["seen at the start"] for rung, one in found.items()}
    assert max(seen, key=seen.__getitem__) == "mean"
    assert all(one["gradient at the start"] > 1e-4 for one in found.values())
    assert min(seen.values()) > 0


# --- the benchmark ----------------------------------------------------------------------------


class Fitted(SimpleNamespace):
    """A model that has learned to say the shortcut."""

    def predict(self, x, domain_index):
        return (x[:, 0] > 0).astype(int)

    def transform(self, x, domain_index):
        return x[:, :1].astype(np.float32)


@pytest.mark.usefixtures("quick", "few_rows")
def test_the_start_is_told_beside_the_scores_of_methods_that_adapt():
    sample = ShortcutTaskData(
        make_ladder("variance", n_samples=1000, seed=100), "moments/variance", rung="variance"
    )
    plain = sample.evaluate(Fitted(discriminator=None))
    assert list(plain["extra_metrics"]) == ["left of u"]
    assert plain["source_score"] > 0.95
    assert plain["target_score"] == pytest.approx(0.5, abs=0.05)
    for head, game in ((Gaussian(hidden=(32,)), "adversarial"), ("l2", "hsic")):
        model = Fitted(discriminator=head, game=game, random_state=100)
        more = sample.evaluate(model)["extra_metrics"]
        assert list(more) == ["left of u", "seen at the start", "gradient at the start"]
        assert more["left of u"] == plain["extra_metrics"]["left of u"]
    expected = dependence_start_metrics(GAMES["hsic"], "variance", 100)
    assert more["seen at the start"] == expected["seen at the start"]


def test_a_task_for_each_rung_and_a_preset_that_begins_at_the_shortcut():
    assert [benchmark.task_name for benchmark in MOMENTS] == list(SWITCH_POINTS_BY_MOMENT)
    for benchmark in MOMENTS:
        points, start = benchmark.draw_data(3, "points"), benchmark.draw_data(3, "start")
        assert type(points) is DependenceTaskData
        assert type(start) is ShortcutTaskData
        assert start.rung == benchmark.task_name
        assert points.fingerprint() == start.fingerprint()
        assert points.fingerprint() != benchmark.draw_data(4, "points").fingerprint()
        for method, recipe in build_recipes(benchmark, "start").items():
            encoder = recipe.build_model(5).encoder
            x = torch.from_numpy(start.data.x[:9]).float()
            assert torch.equal(encoder(x), x[:, :1]), method
        assert all(
            one.build_model(5).encoder is None for one in build_recipes(benchmark, "best").values()
        )
