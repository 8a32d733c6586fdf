"""The alignment certificate, as a user reads it."""

import json
import re

import numpy as np
import pytest
import torch

from cida.certificate.certificate import (
    MIN_CERTIFICATE_ROWS,
    Certificate,
    certify,
    certify_or_decline,
)
from cida.certificate.certificate_summary import TEST_DESCRIPTIONS
from cida.certificate.dependence_tests import ALPHA, familywise_p_value, run_tests
from cida.certificate.pairwise import PAIR_MEASURES
from cida.certificate.permutation_tests import TEST_NAMES
from cida.certificate.projections import Strata
from cida.datasets import make_circle, make_ladder
from cida.spaces import Line

ROWS = 1200


def certificate(z, u, predicted=None, space=None, **more):
    u = torch.as_tensor(np.asarray(u, dtype=float).reshape(len(z), -1))
    return certify((space or Line()).fit(u), z, u, predicted, **more)


def unit(values):
    return (values - values.mean()) / values.std()


def planted(kind, rows=ROWS, width=4, seed=100):
    """A dependence that explains about 5 % of the mean or of the squared deviations."""
    rng = np.random.default_rng(seed)
    z, noise = rng.normal(size=(rows, width)), rng.normal(size=rows)
    w = unit(z @ rng.normal(size=width))
    u = {
        "none": noise,
        "mean": 0.22 * w + noise,
        "spread": np.exp(0.2 * w) * noise,
        "square": 0.22 * unit(w**2) + noise,
    }[kind]
    return z, 50 + 15 * u


@pytest.fixture(scope="module")
def found():
    return {kind: certificate(*planted(kind)) for kind in ("none", "mean", "spread", "square")}


def first_words(certificate):
    return certificate.summary()[0]


# --- the verdict ---------------------------------------------------------------------------------


def test_where_nothing_is_found_the_words_say_what_would_have_been(found):
    none = found["none"]
    assert not none.is_dependent
    assert none.marginal.significant_tests == ()
    words = first_words(none)
    assert words.startswith(
        "The encoding shows no trace of u: no dependence of z on u was found (p"
    )
    assert "With 1,200 rows a dependence that explains" in words
    assert "would have been seen at least 95 % of the time" in words
    assert 0.012 < none.marginal.power.mean < 0.04


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("mean", "z still tells the mean of u, by a line"),
        ("spread", "z tells the spread of u but not its mean"),
        ("square", "only a nonlinear probe sees it"),
    ],
)
def test_each_kind_is_found_and_named(found, kind, words):
    assert found[kind].is_dependent
    assert first_words(found[kind]).startswith("The encoding still tells u: z depends on u (p ")
    assert words in first_words(found[kind])


P = re.compile(r"p [=<] [\d.e-]*\d")


@pytest.mark.parametrize("kind", ["none", "mean", "spread", "square"])
def test_every_p_of_a_verdict_is_found_again_in_the_line_behind_it(kind):
    z, u = planted(kind)
    lines = certificate(z, u, z[:, 0] > 0).summary()
    for opening, within in {
        "The encoding ": "",
        "Given the predicted class": " given the predicted class",
    }.items():
        (verdict,) = (line for line in lines if line.startswith(opening))
        (behind,) = (line for line in lines if line.startswith(f"Behind the verdict{within}: "))
        assert lines.index(behind) > lines.index(verdict)
        assert P.search(verdict)[0] in P.findall(behind)


def test_where_the_strong_probe_alone_sees_it_the_line_behind_the_verdict_says_so():
    rng = np.random.default_rng(112)
    z = rng.normal(size=(ROWS, 3))
    u = 0.2 * unit(np.cos(3 * z[:, 0])) + rng.normal(size=ROWS)
    told = certificate(z, u, index_names=["temperature"])
    view = told.marginal
    assert told.is_dependent
    assert "only a nonlinear probe sees it" in first_words(told)
    assert set(view.significant_tests) == {"bend"}
    assert "p = 0.0022" in first_words(told)  # no probe's own line has it
    others = (
        view.linear_f_test.p_value,
        view.boosted_p_value,
        *(view.tests[n].p_value for n in PAIR_MEASURES),
    )
    assert min(others) > 0.01
    behind = next(line for line in told.summary() if line.startswith("Behind the verdict"))
    assert (
        "of 11 tests on 499 permutations of temperature the most significant is a bend along one "
        "direction "
        "(p = 0.002 by itself, p = 0.002 adjusted for all 11)" in behind
    )
    assert "5/4.6 (p = 0.0022)" in behind
    assert view.p_value == pytest.approx(view.tests["bend"].adjusted_p_value * 5 / 4.6)


def test_every_test_has_a_name_for_people():
    assert list(TEST_DESCRIPTIONS) == list(TEST_NAMES)


def test_it_says_that_it_can_never_prove_and_that_trained_rows_look_better(found):
    for one in found.values():
        told = " ".join(one.summary())
        assert "can refute alignment, never prove it" in told
        assert "trained on look better aligned" in told
        assert str(one) == "\n".join(one.summary())


def test_the_figures_go_with_the_kind(found):
    assert found["mean"].marginal.linear_r2 == pytest.approx(0.045, abs=0.02)
    assert found["mean"].marginal.linear_f_test.p_value < 1e-6
    assert found["square"].marginal.linear_f_test.p_value > 0.01
    assert found["spread"].marginal.probe_gain.over_mean > 0.003
    assert found["mean"].marginal.probe_gain.over_marginal == pytest.approx(0.023, abs=0.012)
    assert found["none"].marginal.probe_gain.over_marginal < 0.003


def test_the_size_that_it_states_is_seen():
    share = certificate(*planted("none", rows=600, width=3)).marginal.power.mean
    seen = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(600, 3))
        w = unit(z @ rng.normal(size=3))
        u = np.sqrt(share) * w + np.sqrt(1 - share) * rng.normal(size=600)
        seen += (
            familywise_p_value(*run_tests(z, u[:, None], Strata.single(600), None, seed)) <= ALPHA
        )
    assert seen >= 17  # fewer happen in one of sixty such scores


def test_more_rows_see_less(found):
    few, many = certificate(*planted("none", rows=300)).marginal.power, found["none"].marginal.power
    assert many.mean < few.mean / 2.5
    assert many.bend < few.bend / 2.5
    assert many.distance_correlation < few.distance_correlation


def test_json_values(found):
    values = json.loads(json.dumps(found["mean"].to_dict(), allow_nan=False))
    assert values["verdict"] == "dependent"
    assert "mean" in values["marginal"]["significant_tests"]
    assert values["marginal"]["linear_f_test"]["dof"] == [4, 1195]
    assert values["given_prediction"] is None
    assert sum(cell["n"] for cell in values["cellwise"]["cells"]) == ROWS
    assert Certificate.from_dict(values) == found["mean"]
    assert Certificate.from_dict(values).summary() == found["mean"].summary()
    values["marginal"]["tests"]["mood"] = values["marginal"]["tests"].pop("hsic")
    with pytest.raises(ValueError, match="not ours"):
        Certificate.from_dict(values)


def test_the_verdict_and_the_effect_size_are_data(found):
    assert found["none"].verdict == "no-dependence-found"
    assert found["none"].effect_size < 0.01
    assert found["mean"].effect_size == pytest.approx(0.045, abs=0.02)


def test_rows_that_cannot_be_tested_are_declined_with_a_code():
    rng = np.random.default_rng(0)
    z, u = rng.normal(size=(200, 2)), torch.arange(200.0, dtype=torch.float64)[:, None]
    bad = np.where(np.arange(200)[:, None] == 7, np.nan, z)
    for verdict, rows in {
        "too-few-rows": (z[:99], u[:99]),
        "not-finite": (bad, u),
        "constant-index": (z, torch.ones_like(u)),
    }.items():
        declined = certify_or_decline(Line(), *rows)
        assert (declined.verdict, declined.marginal, declined.effect_size) == (verdict, None, None)
        assert declined.summary()[0].startswith("No certificate of alignment: ")
        assert Certificate.from_dict(json.loads(json.dumps(declined.to_dict()))) == declined


# --- invariances ---------------------------------------------------------------------------------


def test_units_of_z_and_u_change_nothing(found):
    z, u = planted("mean")
    other = certificate(1000 * z - 7, 3 * u + 1e4)
    one = found["mean"]
    assert other.marginal.p_value == pytest.approx(one.marginal.p_value)
    assert other.marginal.linear_f_test.f_statistic == pytest.approx(
        one.marginal.linear_f_test.f_statistic
    )
    assert other.marginal.distance_correlation == pytest.approx(one.marginal.distance_correlation)
    assert other.marginal.boosted_r2 == pytest.approx(one.marginal.boosted_r2, abs=1e-3)
    assert other.marginal.significant_tests == one.marginal.significant_tests


def test_the_order_of_rows_changes_no_verdict(found):
    order = np.random.default_rng(0).permutation(ROWS)
    for kind in ("none", "square"):
        z, u = planted(kind)
        other = certificate(z[order], u[order])
        assert other.is_dependent == found[kind].is_dependent
        assert other.marginal.linear_f_test.f_statistic == pytest.approx(
            found[kind].marginal.linear_f_test.f_statistic
        )


def test_rows_sorted_along_u_are_no_dependence():
    z, u = planted("none", rows=400)
    order = np.argsort(u)
    assert not certificate(z[order], u[order]).is_dependent


# --- odd encodings, and refusals -----------------------------------------------------------------


def test_a_constant_encoding_tells_nothing():
    told = certificate(np.ones((200, 3)), np.arange(200))
    assert not told.is_dependent
    assert (told.verdict, told.marginal) == ("constant-encoding", None)
    assert first_words(told).startswith("The encoding is constant in all 200 rows")
    json.dumps(told.to_dict(), allow_nan=False)


def test_columns_that_never_change_are_left_out_and_counted(found):
    z, u = planted("mean")
    more = np.column_stack([z[:, :2], np.full(ROWS, 3.3), z[:, 2:]]).astype(np.float32)
    told = certificate(more, u)
    assert told.n_constant_columns == 1
    assert told.marginal.linear_f_test.f_statistic == pytest.approx(
        found["mean"].marginal.linear_f_test.f_statistic, rel=1e-4
    )
    assert "1 of the 5 columns of z never change and were left out." in told.summary()


def test_what_hides_in_a_direction_of_little_variance_is_told_from_what_does_not():
    rng = np.random.default_rng(109)
    broad, thin = rng.normal(size=(400, 2)), rng.normal(size=400)
    z = broad @ rng.normal(size=(2, 6)) + 0.02 * thin[:, None] * rng.normal(size=6)
    report = certificate(z, thin + 0.2 * rng.normal(size=400))
    assert "along directions that hold less than 1 % of its variance" in first_words(report)
    told = report.marginal
    assert told.is_dependent
    assert (told.n_components, told.n_main_components) == (3, 2)
    assert told.linear_f_test.adjusted_r2 > 0.9
    assert told.main_f_test.adjusted_r2 < 0.05


def test_of_very_many_columns_the_leading_components_are_looked_at():
    rng = np.random.default_rng(107)
    hidden = rng.normal(size=(400, 3))
    z = hidden @ rng.normal(size=(3, 100)) + 0.01 * rng.normal(size=(400, 100))
    told = certificate(z, hidden[:, 0] + 2 * rng.normal(size=400))
    assert told.n_columns_used == 64
    assert told.is_dependent
    assert any("the 64 leading principal components" in line for line in told.summary())


def test_an_index_of_two_values_has_a_mean_alone():
    rng = np.random.default_rng(108)
    u = rng.integers(0, 2, 300)
    told = certificate(rng.normal(size=(300, 2)) + u[:, None], u)
    assert told.is_dependent
    assert told.marginal.power.variance is None
    assert "spread" not in first_words(told)


def test_too_few_rows_are_refused_with_how_many_are_needed():
    with pytest.raises(
        ValueError, match=f"X has 99 rows; .* needs at least {MIN_CERTIFICATE_ROWS}"
    ):
        certificate(np.zeros((99, 2)), np.arange(99))


def test_an_index_that_never_changes_is_refused():
    u = torch.full((200, 1), 4.0, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"domain_index is constant in these rows \(every row has"):
        certify(Line(), np.random.default_rng(0).normal(size=(200, 2)), u)


def test_numbers_that_are_not_finite_are_refused():
    z, u = planted("none", rows=200)
    z[7, 1] = np.nan
    with pytest.raises(ValueError, match=r"z is not finite in 1 of 200 rows \(first: row 7\)"):
        certificate(z, u)


def test_rows_that_do_not_match_are_refused():
    with pytest.raises(ValueError, match="z has 200 rows and u 150"):
        certify(Line(), np.zeros((200, 2)), torch.zeros(150, 1))


def test_of_very_many_rows_some_are_used(monkeypatch):
    monkeypatch.setattr("cida.certificate.certificate.MAX_CERTIFICATE_ROWS", 300)
    z, u = planted("mean")
    told = certificate(z, u, z[:, 0] > 0)
    assert isinstance(told, Certificate)
    assert (told.n_rows, told.n_rows_used) == (ROWS, 300)
    assert "300 of 1,200 rows were used." in told.summary()


# --- known worlds --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rung", "words"),
    [
        ("mean", "z still tells the mean of u, by a line"),
        ("variance", "z tells the spread of u but not its mean"),
        ("skewness", "z differs in one stretch of u"),
        ("whole", "z differs in one stretch of u"),
    ],
)
def test_on_each_rung_of_the_ladder_the_shortcut_is_seen_and_the_honest_encoding_is_not(
    rung, words
):
    world = make_ladder(rung, n_samples=1000, seed=100)
    shortcut = certificate(world.x[:, :1], world.u)
    assert shortcut.is_dependent
    assert words in first_words(shortcut)
    honest = certificate((world.x[:, 1] * world.x[:, 2])[:, None], world.u)
    assert not honest.is_dependent


def test_it_cannot_tell_discs_that_are_turned_against_each_other():
    world = make_circle(n_per_domain=40, seed=100)
    x = world.x * world.scaling[1] + world.scaling[0]
    around = np.pi * world.u
    offset = x - 5 * np.column_stack([np.cos(around), np.sin(around)])
    for turns in (1.0, -2.5):  # the first is right everywhere, the other nearly nowhere
        angle = -turns * around
        turned = np.column_stack(
            [
                np.cos(angle) * offset[:, 0] - np.sin(angle) * offset[:, 1],
                np.sin(angle) * offset[:, 0] + np.cos(angle) * offset[:, 1],
            ]
        )
        assert not certificate(turned, world.u).is_dependent
        right = np.mean((turned[:, 0] > 0) == world.y)
        assert right > 0.9 if turns == 1 else right < 0.6


def test_the_same_rows_have_the_same_certificate():
    rng = np.random.default_rng(100)
    u = rng.uniform(size=400)
    z = rng.normal(size=(400, 2)) + u[:, None]
    first = certificate(z, u).summary()
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    assert certificate(z, u).summary() == first
