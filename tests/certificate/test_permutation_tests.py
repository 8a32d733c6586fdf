"""Many tests of independence, one family-wise answer."""

import numpy as np
import pytest
import torch
from scipy import stats

from cida.certificate.pairwise import compute_pair_measure
from cida.certificate.permutation_tests import (
    NARROW_TEST_WEIGHTS,
    TEST_NAMES,
    WIDE_TEST_WEIGHTS,
    run_permutation_tests,
)
from cida.certificate.projections import N_BENDS, Strata, compute_projections, whiten
from cida.dependence import (
    centered_distances,
    centered_kernel,
    distance_correlation,
    normalized_hsic,
)


def answer(z, e, strata=None, **more):
    scaled = (z - z.mean(0)) / z.std(0)
    return run_permutation_tests(scaled, e, strata or Strata.single(len(z)), **more)


def unit(values):
    return (values - values.mean()) / values.std()


# --- validity ------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [False, True])
def test_p_values_are_even_where_z_and_u_are_independent(given):
    found = []
    for seed in range(120):
        rng = np.random.default_rng([seed, given])
        z, u = rng.exponential(size=(100, 4)), rng.integers(0, 7, (100, 1)).astype(float)
        strata = Strata.from_predictions(z[:, 0] > 1) if given else None
        found.append(answer(z, u, strata, n_permutations=39, seed=seed).p_value)
    # With 39 shuffles p is one of 1/40 ... 40/40.
    assert stats.kstest(np.array(found) - 1 / 80, "uniform").pvalue > 0.005
    assert np.mean(np.array(found) <= 0.05) <= 0.11  # three standard errors


def test_shuffles_stay_within_classes_and_within_the_rows_of_pairs():
    classes = np.array([0, 1, 2] * 20)
    apart = np.arange(60) < 25
    orders = Strata(classes).permutations(30, apart, np.random.default_rng(0))
    assert (np.sort(orders, axis=1) == np.arange(60)).all()
    assert (classes[orders] == classes).all()
    assert (apart[orders] == apart).all()
    assert len(np.unique(orders, axis=0)) == 30


def test_the_level_is_shared_out_in_full():
    assert sum(NARROW_TEST_WEIGHTS) == pytest.approx(1)
    assert sum(WIDE_TEST_WEIGHTS) == pytest.approx(1)
    assert len(NARROW_TEST_WEIGHTS) == len(WIDE_TEST_WEIGHTS) == len(TEST_NAMES)


def test_the_same_seed_gives_the_same_answer():
    rng = np.random.default_rng(100)
    z, u = rng.normal(size=(150, 3)), rng.normal(size=(150, 1))
    first, again = (answer(z, u, n_permutations=49, seed=3) for _ in range(2))
    assert first.p_value == again.p_value
    assert first.tests == again.tests


def test_the_statistic_of_the_mean_is_n_times_the_explained_share():
    rng = np.random.default_rng(101)
    z = rng.normal(size=(300, 4))
    u = z[:, :1] + rng.normal(size=(300, 1))
    found = answer(z, u, n_permutations=19)
    assert found.tests["mean"].statistic == pytest.approx(300 * found.linear_f_test.r2, rel=1e-4)


# --- each kind is seen, and by the test that is meant for it -------------------------------------


def planted(kind, rng, rows=2000):
    z = rng.normal(size=(rows, 5)) @ rng.normal(size=(5, 5))
    w, noise = unit(z[:, 0]), rng.normal(size=rows)
    two = unit(z @ rng.normal(size=5))
    u = {
        "mean": 0.2 * two + noise,
        "variance": np.exp(0.25 * two) * noise,
        "bend": 0.25 * unit(np.cos(2 * w)) + noise,
        "curvature": 0.25 * unit(two**2) + noise,
        "variance-bend": np.exp(0.4 * np.cos(2 * w)) * noise,
        # The longer tail changes sides: mean and variance are the same everywhere.
        "distance-correlation": np.sign(w) * (rng.exponential(size=rows) - 1),
        "cell": noise,
    }[kind]
    if kind == "cell":
        z = z + 2.5 * (np.abs(u) < 0.1)[:, None]
    return z, u[:, None]


@pytest.mark.parametrize(
    "kind",
    ["mean", "variance", "bend", "curvature", "variance-bend", "distance-correlation", "cell"],
)
def test_each_kind_of_dependence_is_seen_by_the_test_meant_for_it(kind):
    z, u = planted(kind, np.random.default_rng(102))
    cells = np.clip(np.floor(5 * u[:, 0] + 10), 0, 19).astype(int)
    found = answer(z, u, cells=cells, n_permutations=199)
    assert found.p_value <= 0.01
    assert found.tests[kind].adjusted_p_value <= 0.05
    if kind != "mean":
        assert found.tests["mean"].adjusted_p_value > 0.05


def test_the_place_where_z_differs_is_named():
    z, u = planted("cell", np.random.default_rng(103))
    cells = np.clip(np.floor(5 * u[:, 0] + 10.5), 0, 20).astype(int)  # |u| < 0.1 is cell 10
    found = answer(z, u, cells=cells, n_permutations=99, with_pairs=False)
    assert max(found.cell_tests, key=lambda cell: found.cell_tests[cell].neg_log_p) == 10
    assert found.cell_tests[10].p_value <= 0.02
    assert np.median([place.p_value for place in found.cell_tests.values()]) > 0.1


def test_a_circle_has_one_spread_less_and_two_values_have_none():
    rng = np.random.default_rng(104)
    z, angle = rng.normal(size=(300, 2)), rng.uniform(0, 2 * np.pi, 300)
    around = np.column_stack([np.cos(angle), np.sin(angle)])
    assert answer(z, around, n_permutations=9).n_second_moments == 2  # of cos^2, cos sin and sin^2
    two = answer(z, (rng.random((300, 1)) < 0.3).astype(float), n_permutations=9)
    assert two.n_second_moments == 0
    assert "variance" not in two.tests


# --- the directions ------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [1, 3])
def test_directions_are_uncorrelated_and_orthogonal_to_classes(classes):
    rng = np.random.default_rng(105)
    z = rng.normal(size=(400, 4)) @ rng.normal(size=(4, 4))
    strata = Strata(rng.integers(0, classes, 400))
    views = compute_projections(z / z.std(0), strata, rng)
    axes = views.components.astype(float)
    assert np.allclose(axes @ axes.T / 400, np.eye(4), atol=1e-4)
    for group in strata.groups():
        for told in (views.components, views.directions, views.bends, views.products):
            assert np.abs(told[:, group].mean(1)).max() < 1e-4
    assert np.abs(views.bends @ views.components.T / 400).max() < 1e-4
    along = views.bends.reshape(-1, N_BENDS, 400)
    assert np.allclose(along @ along.transpose(0, 2, 1) / 400, np.eye(N_BENDS), atol=1e-3)


def test_a_column_of_two_values_has_no_bends():
    rng = np.random.default_rng(106)
    z = np.column_stack([rng.normal(size=300), np.repeat([-1.0, 1.0], 150)])
    views = compute_projections(z, Strata.single(300), rng)
    first, second = (views.bends[k * N_BENDS : (k + 1) * N_BENDS] for k in range(2))
    assert np.allclose((first**2).mean(1), 1, atol=1e-3)
    assert np.allclose(second, 0)


def test_components_without_variance_are_left_out():
    rng = np.random.default_rng(107)
    z = rng.normal(size=(100, 2))
    twice = np.column_stack([z, z @ rng.normal(size=(2, 3))])
    assert whiten(twice - twice.mean(0)).shape == (100, 2)


def test_bins_of_a_predicted_number_take_its_line_off():
    rng = np.random.default_rng(108)
    predicted = rng.normal(size=1000)
    strata = Strata.from_predictions(predicted)
    assert len(strata) == 25
    assert np.bincount(strata.codes).tolist() == [40] * 25
    assert np.abs(strata.residualize(np.column_stack([predicted, 3 - 2 * predicted]))).max() < 1e-12
    assert strata.n_removed_terms == 50


def test_few_numbers_and_all_words_are_classes():
    for predicted in (np.array([0.0, 1.0] * 50), np.array(["a", "b", "c", "d"] * 25)):
        strata = Strata.from_predictions(predicted)
        assert strata.covariate is None
        assert len(strata) == len(np.unique(predicted))


# --- all pairs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "measure", "centred"),
    [
        ("distance-correlation", distance_correlation, centered_distances),
        ("hsic", normalized_hsic, centered_kernel),
    ],
)
def test_pairs_agree_with_the_measures_of_batches(name, measure, centred):
    rng = np.random.default_rng(109)
    z = rng.normal(size=(120, 3))
    e = z[:, :1] ** 2 + rng.normal(size=(120, 1))
    orders = np.stack([np.arange(120), *(rng.permutation(120) for _ in range(5))])
    found = compute_pair_measure(name, z, e, [np.arange(120)], orders)
    first, second = torch.from_numpy(z), torch.from_numpy(e)
    assert found.value == pytest.approx(float(measure(first, second)))
    assert found.value == pytest.approx(float((centred(first) * centred(second)).sum()))
    exact = [float(measure(first, second[torch.from_numpy(order)])) for order in orders]
    # The largest terms hold nearly all of it.
    assert np.allclose(found.permuted_values, exact, atol=0.01)
    assert np.corrcoef(found.permuted_values, exact)[0, 1] > 0.98


def test_pairs_given_the_class_are_those_of_each_class():
    rng = np.random.default_rng(110)
    classes = np.repeat([0, 1], [40, 80])
    z = rng.normal(size=(120, 2)) + 5 * classes[:, None]
    e = rng.normal(size=(120, 1)) + 5 * classes[:, None]
    groups = Strata(classes).groups()
    found = compute_pair_measure("distance-correlation", z, e, groups, np.arange(120)[None])
    alone = [
        float(distance_correlation(torch.from_numpy(z[rows]), torch.from_numpy(e[rows])))
        for rows in groups
    ]
    assert found.value == pytest.approx((40 * alone[0] + 80 * alone[1]) / 120)
    assert found.value < 0.1
