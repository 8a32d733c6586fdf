"""The tests behind a certificate: one verdict of all, at a family-wise level of 5 %."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cida.certificate.multiple_testing import PermutationTest
from cida.certificate.pairwise import min_detectable_share_pairs
from cida.certificate.permutation_tests import PermutationTestResults, run_permutation_tests
from cida.certificate.power import FTest, min_detectable_share, min_detectable_share_few
from cida.certificate.probes import (
    ProbeGain,
    ProbeResult,
    fit_boosted_probe,
    fit_linear_probe,
    measure_mean_variance_gain,
)
from cida.certificate.projections import Strata, sample_rows

__all__ = [
    "ALPHA",
    "BOOSTING_ALPHA",
    "DependenceTests",
    "DetectableShares",
    "familywise_p_value",
    "measure_dependence",
    "run_tests",
]

Array = np.ndarray[Any, Any]

ALPHA = 0.05  # the family-wise level of all tests
BOOSTING_ALPHA = 0.004  # the part of it for boosting, which is too slow to permute
MAX_PROBE_ROWS = 10_000


@dataclass(frozen=True)
class DetectableShares:
    """The smallest dependence that would have been detected 95 % of the time, at this level and n.

    Parameters
    ----------
    mean : float
        Share of V[u] explained by a line along any direction of z.
    first_component : float
        The same along the first principal component of z.
    bend : float
        Share explained by a smooth curve along one column or leading component.
    variance : float or None
        Share of the variance of (u - mean)^2 along any direction; None where u has only two values.
    distance_correlation : float or None
        Share along the first component that the distance correlation alone would detect at 5 %;
        approximate, and on fewer rows.
    hsic : float or None
        The same for HSIC.
    """

    mean: float
    first_component: float
    bend: float
    variance: float | None
    distance_correlation: float | None
    hsic: float | None


@dataclass(frozen=True)
class DependenceTests:
    """All test results, marginally or given the prediction.

    ``n_components`` counts the principal components of z that were tested; ``linear_f_test`` is a
    line along all of them, ``main_f_test`` along the first ``n_main_components``, which hold 99 %
    of z's variance. ``significant_tests`` names the tests that are significant by themselves,
    corrected for all others; "boosting" is the gradient-boosted probe.
    """

    n_rows: int
    n_components: int
    p_value: float
    linear_r2: float
    linear_f_test: FTest
    main_f_test: FTest
    n_main_components: int
    boosted_r2: float
    boosted_p_value: float
    probe_gain: ProbeGain
    distance_correlation: float
    hsic: float
    n_pair_rows: int
    tests: dict[str, PermutationTest]
    significant_tests: tuple[str, ...]
    power: DetectableShares

    @property
    def is_dependent(self) -> bool:
        """Whether z depends on u, at a family-wise level of 5 %."""
        return self.p_value <= ALPHA

    @property
    def effect_size(self) -> float:
        """The share of V[u] that the better probe of the two explains on rows it did not see."""
        return max(self.linear_r2, self.boosted_r2)


def run_tests(
    z: Array, e: Array, strata: Strata, cells: Array | None, seed: int = 0
) -> tuple[PermutationTestResults, ProbeResult]:
    """Run the tests behind the verdict: permutation tests at 4.6 %, boosting at 0.4 %."""
    permutation_results = run_permutation_tests(
        z, e, strata, cells, alpha=ALPHA - BOOSTING_ALPHA, seed=seed
    )
    sampled_rows = sample_rows(len(z), MAX_PROBE_ROWS)
    return permutation_results, fit_boosted_probe(
        z[sampled_rows], strata[sampled_rows].residualize(e[sampled_rows]), seed
    )


def familywise_p_value(permutation_results: PermutationTestResults, probe: ProbeResult) -> float:
    """One p-value of the permutation tests and of boosting, each with its part of the level."""
    permutation_p_value = permutation_results.p_value * ALPHA / (ALPHA - BOOSTING_ALPHA)
    boosting_p_value = 1.0 if probe.p_value is None else probe.p_value * ALPHA / BOOSTING_ALPHA
    # The p-value of permutations is a multiple of 1/500: rounding must not cost the last one.
    return min(1.0, round(permutation_p_value, 9), boosting_p_value)


def _significant_tests(
    permutation_results: PermutationTestResults, boosted: ProbeResult
) -> tuple[str, ...]:
    alpha = ALPHA - BOOSTING_ALPHA + 1e-12  # p-values are multiples of 1/500, up to rounding
    names = [
        name for name, test in permutation_results.tests.items() if test.adjusted_p_value <= alpha
    ]
    is_boosting_significant = boosted.p_value is not None and boosted.p_value <= BOOSTING_ALPHA
    return (*names, "boosting") if is_boosting_significant else tuple(names)


def measure_dependence(
    z: Array,
    e: Array,
    strata: Strata,
    permutation_results: PermutationTestResults,
    boosted: ProbeResult,
    seed: int,
    with_pair_power: bool = False,
) -> DependenceTests:
    """Collect all figures of the tests that `run_tests` made, and those of further probes."""
    sampled_rows = sample_rows(len(z), MAX_PROBE_ROWS)
    sampled_strata = strata[sampled_rows]
    z_residual, e_residual = (
        sampled_strata.residualize(z[sampled_rows]),
        sampled_strata.residualize(e[sampled_rows]),
    )
    pairs = permutation_results.pair_measures
    return DependenceTests(
        n_rows=len(z),
        n_components=permutation_results.n_components,
        p_value=familywise_p_value(permutation_results, boosted),
        linear_r2=fit_linear_probe(z_residual, e_residual, seed).r2,
        linear_f_test=permutation_results.linear_f_test,
        main_f_test=permutation_results.main_f_test,
        n_main_components=permutation_results.n_main_components,
        boosted_r2=boosted.r2,
        boosted_p_value=1.0 if boosted.p_value is None else boosted.p_value,
        probe_gain=measure_mean_variance_gain(z_residual, e_residual, seed),
        distance_correlation=pairs["distance-correlation"].value,
        hsic=pairs["hsic"].value,
        n_pair_rows=len(permutation_results.pair_rows),
        tests=permutation_results.tests,
        significant_tests=_significant_tests(permutation_results, boosted),
        power=_detectable_shares(z, permutation_results, strata, with_pair_power, seed),
    )


def _detectable_shares(
    z: Array,
    permutation_results: PermutationTestResults,
    strata: Strata,
    with_pair_power: bool,
    seed: int,
) -> DetectableShares:
    rows = len(z) - strata.n_removed_terms + 1
    few_critical = permutation_results.tests["mean-few-directions"].critical_value
    variance_test = permutation_results.tests.get("variance")
    shares: dict[str, float | None] = dict.fromkeys(permutation_results.pair_measures)
    if with_pair_power:
        generator = np.random.default_rng(seed)
        pair_rows = permutation_results.pair_rows
        for name, measure in permutation_results.pair_measures.items():
            shares[name] = min_detectable_share_pairs(
                name,
                z[pair_rows],
                permutation_results.first_component[pair_rows],
                permutation_results.index_components[pair_rows],
                measure.permuted_values[1:],
                generator,
            )
    return DetectableShares(
        mean=min_detectable_share(
            permutation_results.tests["mean"].critical_value,
            rows,
            permutation_results.n_components,
            permutation_results.n_index_columns,
        ),
        first_component=min_detectable_share_few(
            few_critical, rows, 1, permutation_results.n_index_columns
        ),
        bend=min_detectable_share_few(
            permutation_results.tests["bend"].critical_value,
            rows,
            2,
            permutation_results.n_index_columns,
        ),
        variance=min_detectable_share(
            variance_test.critical_value,
            rows,
            permutation_results.n_components,
            permutation_results.n_second_moments,
        )
        if variance_test
        else None,
        distance_correlation=shares["distance-correlation"],
        hsic=shares["hsic"],
    )
