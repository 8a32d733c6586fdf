"""The F-test of a linear probe, and the smallest dependence that would be seen."""

import numpy as np
import pytest
from scipy import stats

from cida.certificate.power import f_test, min_detectable_share, min_detectable_share_few
from cida.certificate.projections import Strata, whiten


def least_squares_f(x, y):
    """The textbook F-test: residual sums of squares with and without the regressors."""
    design = np.column_stack([np.ones(len(x)), x])
    left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    whole, rest = ((y - y.mean()) ** 2).sum(), (left**2).sum()
    spare = len(x) - x.shape[1] - 1
    f = (whole - rest) / x.shape[1] / (rest / spare)
    return f, stats.f.sf(f, x.shape[1], spare)


def centred(values):
    return whiten(values - values.mean(0))


@pytest.mark.parametrize("slope", [0.0, 0.1, 3.0])
def test_for_one_column_of_u_it_is_the_test_of_ordinary_least_squares(slope):
    rng = np.random.default_rng(100)
    z = rng.normal(size=(300, 5)) @ rng.normal(size=(5, 5))
    u = slope * z[:, :1] + rng.normal(size=(300, 1))
    found = f_test(centred(z), centred(u))
    f, p = least_squares_f(z, u[:, 0])
    assert found.f_statistic == pytest.approx(f)
    assert found.p_value == pytest.approx(p)
    assert found.dof == (5, 294)


def test_for_one_column_of_z_and_one_of_u_it_is_the_test_of_a_correlation():
    rng = np.random.default_rng(101)
    z = rng.normal(size=(80, 1))
    u = 0.2 * z + rng.normal(size=z.shape)
    r, p = stats.pearsonr(z[:, 0], u[:, 0])
    found = f_test(centred(z), centred(u))
    assert found.r2 == pytest.approx(r**2)
    assert found.p_value == pytest.approx(p)


def test_for_two_groups_and_several_columns_of_u_it_is_hotellings():
    rng = np.random.default_rng(102)
    group = np.repeat([0.0, 1.0], [60, 40])[:, None]
    u = rng.normal(size=(100, 3)) + 0.3 * group
    first, second = u[group[:, 0] == 0], u[group[:, 0] == 1]
    pooled = (59 * np.cov(first.T) + 39 * np.cov(second.T)) / 98
    apart = first.mean(0) - second.mean(0)
    squared = 60 * 40 / 100 * apart @ np.linalg.solve(pooled, apart)
    f = squared * (100 - 3 - 1) / (98 * 3)
    found = f_test(centred(group), centred(u))
    assert found.f_statistic == pytest.approx(f)
    assert found.p_value == pytest.approx(stats.f.sf(f, 3, 96))


def test_within_classes_it_is_the_test_beside_a_column_for_each_class():
    rng = np.random.default_rng(103)
    classes = rng.integers(0, 4, 200)
    z = rng.normal(size=(200, 3)) + classes[:, None]
    u = rng.normal(size=(200, 1)) + classes[:, None] ** 2 + 0.1 * z[:, :1]
    strata = Strata.from_predictions(classes)
    found = f_test(
        whiten(strata.residualize(z)), whiten(strata.residualize(u)), strata.n_removed_terms
    )  # fmt: skip
    dummies = (classes[:, None] == np.arange(4)).astype(float)
    rest = [
        ((u - x @ np.linalg.lstsq(x, u, rcond=None)[0]) ** 2).sum()
        for x in (dummies, np.column_stack([dummies, z]))
    ]
    f = (rest[0] - rest[1]) / 3 / (rest[1] / (200 - 4 - 3))
    assert found.f_statistic == pytest.approx(f)
    assert found.p_value == pytest.approx(stats.f.sf(f, 3, 193))


def test_the_adjusted_share_is_zero_on_the_mean_for_independent_rows():
    shares = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        z, u = rng.normal(size=(100, 10)), rng.normal(size=(100, 1))
        shares.append(f_test(centred(z), centred(u)).adjusted_r2)
    assert np.mean(shares) == pytest.approx(0, abs=4 * np.std(shares) / np.sqrt(200))


@pytest.mark.parametrize(("axes", "columns"), [(1, 1), (8, 1), (32, 1), (4, 2)])
def test_the_smallest_share_is_seen_95_times_in_100(axes, columns):
    rows, level = 500, 0.01
    critical = stats.chi2.isf(level, axes * columns)
    share = min_detectable_share(critical, rows, axes, columns)
    seen = 0
    for seed in range(400):
        rng = np.random.default_rng([seed, axes])
        z = rng.normal(size=(rows, axes))
        u = np.sqrt(1 - share) * rng.normal(size=(rows, columns)) + np.sqrt(share) * z[:, :1]
        found = (((centred(z).T @ centred(u)) / rows) ** 2).sum() * rows
        seen += found >= critical
    assert seen / 400 == pytest.approx(0.95, abs=0.035)


def test_more_rows_and_fewer_directions_see_less():
    shares = [min_detectable_share(stats.chi2.isf(0.01, k), 2000, k, 1) for k in (1, 4, 16, 64)]
    assert shares == sorted(shares)
    shares = [min_detectable_share(50.0, rows, 8, 1) for rows in (200, 2000, 20_000)]
    assert shares == sorted(shares, reverse=True)
    assert min_detectable_share(1e9, 100, 8, 1) == 1


def test_of_few_functions_it_agrees_with_that_of_all_directions_in_large_samples():
    surprise = 7.0
    critical = stats.chi2.isf(np.exp(-surprise), 3)
    few = min_detectable_share_few(surprise, 50_000, 3, 1)
    assert few == pytest.approx(min_detectable_share(critical, 50_000, 3, 1), rel=0.01)
