"""The tests behind a certificate: one verdict of all, at a family-wise level of 5 %."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cida.array_types import Array
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

__all__ = ["DependenceTests", "familywise_p_value", "measure_dependence", "run_tests"]

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
    alpha = ALPHA - BOOSTING_ALPHA
    results = run_permutation_tests(z, e, strata, cells, alpha=alpha, seed=seed)
    rows = sample_rows(len(z), MAX_PROBE_ROWS)
    return results, fit_boosted_probe(z[rows], strata[rows].residualize(e[rows]), seed)


def familywise_p_value(results: PermutationTestResults, boosted: ProbeResult) -> float:
    """One p-value of the permutation tests and of boosting, each with its part of the level."""
    # The p-value of permutations is a multiple of 1/500: rounding must not cost the last one.
    permutation_p_value = round(results.p_value * ALPHA / (ALPHA - BOOSTING_ALPHA), 9)
    return min(1.0, permutation_p_value, boosted.p_value * ALPHA / BOOSTING_ALPHA)


def measure_dependence(
    z: Array,
    e: Array,
    strata: Strata,
    results: PermutationTestResults,
    boosted: ProbeResult,
    seed: int,
    with_pair_power: bool = False,
) -> DependenceTests:
    """Collect all figures of the tests that `run_tests` made, and those of further probes."""
    rows = sample_rows(len(z), MAX_PROBE_ROWS)
    z_residual, e_residual = (strata[rows].residualize(values[rows]) for values in (z, e))
    alpha = ALPHA - BOOSTING_ALPHA + 1e-12  # p-values are multiples of 1/500, up to rounding
    significant = [name for name, t in results.tests.items() if t.adjusted_p_value <= alpha]
    if boosted.p_value <= BOOSTING_ALPHA:
        significant.append("boosting")
    return DependenceTests(
        n_rows=len(z),
        n_components=results.components.shape[1],
        p_value=familywise_p_value(results, boosted),
        linear_r2=fit_linear_probe(z_residual, e_residual, seed).r2,
        linear_f_test=results.linear_f_test,
        main_f_test=results.main_f_test,
        n_main_components=results.n_main_components,
        boosted_r2=boosted.r2,
        boosted_p_value=boosted.p_value,
        probe_gain=measure_mean_variance_gain(z_residual, e_residual, seed),
        distance_correlation=results.pair_measures["distance-correlation"].value,
        hsic=results.pair_measures["hsic"].value,
        n_pair_rows=len(results.pair_rows),
        tests=results.tests,
        significant_tests=tuple(significant),
        power=_detectable_shares(z, results, strata, with_pair_power, seed),
    )


def _detectable_shares(
    z: Array, results: PermutationTestResults, strata: Strata, with_pair_power: bool, seed: int
) -> DetectableShares:
    n_rows, width = len(z) - strata.n_removed_terms + 1, results.index_components.shape[1]
    n_components = results.components.shape[1]
    critical = {name: test.critical_value for name, test in results.tests.items()}
    shares: dict[str, float | None] = dict.fromkeys(results.pair_measures)
    if with_pair_power:
        generator, rows = np.random.default_rng(seed), results.pair_rows
        axis, index = results.components[rows, 0], results.index_components[rows]
        for name, measure in results.pair_measures.items():
            permuted = measure.permuted_values[1:]
            shares[name] = min_detectable_share_pairs(
                name, z[rows], axis, index, permuted, generator
            )
    return DetectableShares(
        mean=min_detectable_share(critical["mean"], n_rows, n_components, width),
        first_component=min_detectable_share_few(critical["mean-few-directions"], n_rows, 1, width),
        bend=min_detectable_share_few(critical["bend"], n_rows, 2, width),
        variance=min_detectable_share(
            critical["variance"], n_rows, n_components, results.n_second_moments
        )
        if "variance" in critical
        else None,
        distance_correlation=shares["distance-correlation"],
        hsic=shares["hsic"],
    )
