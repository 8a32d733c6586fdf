"""Fresh probes on rows that they were not fitted on."""

import numpy as np
import pytest

from cida.certificate.probes import fit_boosted_probe, fit_linear_probe, measure_mean_variance_gain


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_line_explains_its_share(share):
    z = normal(100, 4000, 6)
    u = np.sqrt(share) * z[:, :1] + np.sqrt(1 - share) * normal(101, 4000, 1)
    assert fit_linear_probe(z, u).r2 == pytest.approx(share, abs=0.03)


def test_trees_explain_what_a_line_does_not():
    z = normal(102, 3000, 2)
    u = np.sign(z[:, :1] * z[:, 1:]) + 0.3 * normal(103, 3000, 1)
    assert fit_linear_probe(z, u).r2 < 0.02
    boosted = fit_boosted_probe(z, u)
    assert boosted.r2 > 0.6
    assert boosted.p_value < 1e-6


def test_shares_of_several_columns_are_weighted_by_their_variance():
    z = normal(104, 3000, 2)
    u = np.column_stack([3 * z[:, 0], normal(105, 3000)])  # 9 of 10 parts of the variance are told
    assert fit_linear_probe(z, u).r2 == pytest.approx(0.9, abs=0.02)


def test_of_noise_nothing_is_explained():
    z, u = normal(106, 600, 10), normal(107, 600, 1)
    assert fit_linear_probe(z, u).r2 < 0.01
    assert fit_boosted_probe(z, u).r2 == 0


def test_boosting_does_not_take_its_folds_for_independent():
    # Without the doubled variance, several in a hundred would fall below 1 in 100.
    low = [
        fit_boosted_probe(normal([k, 0], 150, 2), normal([k, 1], 150, 1)).p_value < 0.01
        for k in range(40)
    ]
    assert sum(low) <= 2


@pytest.mark.parametrize("share", [0.2, 0.6])
def test_the_gain_of_a_mean_is_that_of_theory(share):
    z = normal(108, 6000, 3)
    u = np.sqrt(share) * z[:, :1] + np.sqrt(1 - share) * normal(109, 6000, 1)
    gain = measure_mean_variance_gain(z, u)
    assert gain.over_marginal == pytest.approx(-0.5 * np.log(1 - share), abs=0.02)
    assert gain.over_mean == pytest.approx(0, abs=0.003)


def test_the_gain_of_a_variance_is_that_of_theory():
    z = normal(110, 8000, 3)
    log_variance = 0.8 * z[:, :1]
    u = np.exp(log_variance / 2) * normal(111, 8000, 1)
    # Blind: 1/2 log E[v] + 1/2; probe: 1/2 E[log v] + 1/2. E[exp(0.8 z)] is exp(0.32).
    gain = measure_mean_variance_gain(z, u)
    assert gain.over_marginal == pytest.approx(0.16, abs=0.03)
    assert gain.over_mean == pytest.approx(gain.over_marginal, abs=0.005)
    assert gain.over_marginal_std_error < 0.02


def test_a_probe_of_noise_gains_nothing_to_speak_of():
    gain = measure_mean_variance_gain(normal(112, 1000, 8), normal(113, 1000, 2))
    assert -0.02 < gain.over_marginal < 0.002
