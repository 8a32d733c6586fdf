"""The alignment certificate: does z still reveal u? It can refute alignment, never prove it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from cida.certificate.cellwise import CellwiseTests, assign_cells, run_cellwise_tests
from cida.certificate.certificate_summary import summarize_certificate
from cida.certificate.pairwise import min_detectable_share_pairs
from cida.certificate.permutation_tests import (
    PermutationTest,
    PermutationTestResults,
    run_permutation_tests,
)
from cida.certificate.power import FTest, min_detectable_share, min_detectable_share_few
from cida.certificate.probes import (
    ProbeGain,
    ProbeResult,
    fit_boosted_probe,
    fit_linear_probe,
    measure_mean_variance_gain,
)
from cida.certificate.projections import Strata, sample_rows
from cida.spaces import Space

__all__ = [
    "ALPHA",
    "MIN_CERTIFICATE_ROWS",
    "Certificate",
    "DependenceTests",
    "DetectableShares",
    "certify",
    "familywise_p_value",
    "run_tests",
]

Array = np.ndarray[Any, Any]

ALPHA = 0.05  # of false alarms, in all
BOOSTING_ALPHA = 0.004  # of it, for boosting: too slow to shuffle, so it has a share of its own
MIN_CERTIFICATE_ROWS = 100
MAX_CERTIFICATE_ROWS = 20_000
MAX_ENCODING_COLUMNS = 64
MAX_PROBE_ROWS = 10_000
MIN_SPARE_ROWS = 50  # beyond the means that strata take off


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
    of z's variance.
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
    power: DetectableShares

    @property
    def is_dependent(self) -> bool:
        """Whether z depends on u, at a family-wise level of 5 %."""
        return self.p_value <= ALPHA

    @property
    def significant_tests(self) -> list[str]:
        """The tests that are significant by themselves, corrected for all others."""
        alpha = ALPHA - BOOSTING_ALPHA
        names = [
            name for name, test in self.tests.items() if test.adjusted_p_value <= alpha + 1e-12
        ]
        return names + (["boosting"] if self.boosted_p_value <= BOOSTING_ALPHA else [])


@dataclass(frozen=True)
class Certificate:
    """What the encoding still reveals about the index: the result of `certify`.

    Parameters
    ----------
    n_rows : int
        Rows that were given.
    n_rows_used : int
        Rows that were tested; at most 20,000.
    n_columns : int
        Columns of z.
    n_constant_columns : int
        Columns of z without variance.
    n_columns_used : int
        Columns that were tested.
    marginal : DependenceTests or None
        The tests that decide; None where z is constant.
    given_prediction : DependenceTests or None
        The same tests within predicted classes, or within bins of predicted numbers; None where
        nothing can be tested within them.
    prediction_kind : str
        "class" or "number"; empty without predictions.
    prediction_p_value : float or None
        p-value of the hypothesis that predictions do not change along u.
    cellwise : CellwiseTests or None
        Tests in cells along u.
    index_names : tuple of str
        Names of the index columns.
    """

    n_rows: int
    n_rows_used: int
    n_columns: int
    n_constant_columns: int
    n_columns_used: int
    marginal: DependenceTests | None
    given_prediction: DependenceTests | None
    prediction_kind: str
    prediction_p_value: float | None
    cellwise: CellwiseTests | None
    index_names: tuple[str, ...]

    @property
    def is_dependent(self) -> bool:
        """Whether dependence was found; wrong for at most one independent z in twenty."""
        return self.marginal is not None and self.marginal.is_dependent

    @property
    def is_explained_by_label_shift(self) -> bool:
        """Whether z depends on u, predictions change along u, and nothing was found given them."""
        predictions_shift = self.prediction_p_value is not None and self.prediction_p_value <= ALPHA
        return (
            self.is_dependent
            and self.given_prediction is not None
            and not self.given_prediction.is_dependent
            and predictions_shift
        )

    def summary(self) -> list[str]:
        """Return sentences for a reader, the verdict first."""
        return summarize_certificate(self)

    def to_dict(self) -> dict[str, Any]:
        """Return values for JSON."""
        values = asdict(self)
        for name, result in (("marginal", self.marginal), ("given", self.given_prediction)):
            if result is not None:
                values[name]["linear"] = result.linear_f_test.to_dict()
                values[name]["main"] = result.main_f_test.to_dict()
                values[name]["culprits"] = result.significant_tests
        values["index_names"] = list(self.index_names)
        if self.cellwise is not None:
            values["along"] = self.cellwise.to_dict()
        return {"dependence_found": self.is_dependent, **values}

    def __str__(self) -> str:
        return "\n".join(self.summary())


def certify(
    space: Space,
    z: Array,
    u: Tensor,
    predicted: Array | None = None,
    seed: int = 0,
    index_names: Sequence[str] | None = None,
) -> Certificate:
    """Test whether encodings z depend on the domain index u.

    Linear, curved and variance effects along directions of z, distance correlation, HSIC and
    boosted trees are tested together, at a family-wise level of 5 %. No label is read. Rows are
    assumed to be independent draws.

    Parameters
    ----------
    space : Space
        The fitted space of the index.
    z : ndarray of shape (rows, columns)
        Encodings; at least 100 rows.
    u : Tensor of shape (rows, width)
        Raw index values.
    predicted : ndarray of shape (rows,), optional
        Predicted classes or numbers: z is then also tested given the prediction.
    seed : int, default 0
        Seed of the permutations.
    index_names : sequence of str, optional
        Names of the index columns, for the summary.

    Returns
    -------
    Certificate
        The results. Of more than 20,000 rows a sample is tested.

    Raises
    ------
    ValueError
        If there are fewer than 100 rows, or z is not finite.
    """
    z = _validate(z, u)
    rows = sample_rows(len(z), MAX_CERTIFICATE_ROWS)
    z, u, n_rows = z[rows], u[torch.from_numpy(rows)].double(), len(z)
    standardized = _standardize(z)
    e = _embed_index(space, u)
    names = tuple(index_names or _default_index_names(space))
    n_columns, n_constant_columns = z.shape[1], z.shape[1] - standardized.shape[1]
    if not standardized.shape[1]:
        return Certificate(
            n_rows, len(z), n_columns, n_constant_columns, 0, None, None, "", None, None, names
        )
    standardized = _reduce_columns(standardized)
    cells = assign_cells(space, u)
    single_stratum = Strata.single(len(z))
    permutation_results, probe = run_tests(standardized, e, single_stratum, cells.cell_of_row, seed)
    marginal = _measure_dependence(
        standardized, e, single_stratum, permutation_results, probe, seed, with_pair_power=True
    )
    cellwise = run_cellwise_tests(
        standardized, e, cells, permutation_results.cell_tests, probe, ALPHA, seed
    )
    given_prediction, prediction_kind, prediction_p_value = None, "", None
    if predicted is not None:
        strata = Strata.from_predictions(np.asarray(predicted)[rows])
        prediction_kind = "class" if strata.covariate is None else "number"
        prediction_p_value = _test_predictions(strata, cells.bins.cell_of_row.numpy())
        if _can_test_within(standardized, e, strata):
            results_within = run_tests(standardized, e, strata, cells.cell_of_row, seed)
            given_prediction = _measure_dependence(standardized, e, strata, *results_within, seed)
    n_columns_used = standardized.shape[1]
    return Certificate(
        n_rows,
        len(z),
        n_columns,
        n_constant_columns,
        n_columns_used,
        marginal,
        given_prediction,
        prediction_kind,
        prediction_p_value,
        cellwise,
        names,
    )


def _test_predictions(strata: Strata, cells: Array) -> float | None:
    """The chi-squared test of predictions against cells along u; numbers in five parts."""
    codes = (
        strata.codes if strata.covariate is None else 5 * strata.codes // (strata.codes.max() + 1)
    )
    _, codes = np.unique(codes, return_inverse=True)
    _, cell_codes = np.unique(cells, return_inverse=True)
    if codes.max() < 1 or cell_codes.max() < 1:
        return None
    table = np.zeros((codes.max() + 1, cell_codes.max() + 1))
    np.add.at(table, (codes, cell_codes), 1)
    return float(stats.chi2_contingency(table).pvalue)


def _can_test_within(z: Array, e: Array, strata: Strata) -> bool:
    """Whether there are several strata, rows to spare in them, and z and u that change there."""
    if len(strata) < 2 or len(z) - strata.n_removed_terms < MIN_SPARE_ROWS:
        return False
    return all((strata.residualize(values).std(0) > 1e-3).any() for values in (z, e / e.std(0)))


def run_tests(
    z: Array, e: Array, strata: Strata, cells: Array | None, seed: int = 0
) -> tuple[PermutationTestResults, ProbeResult]:
    """The tests behind the verdict: those with shuffles at 4.6 %, boosting at 0.4 %."""
    permutation_results = run_permutation_tests(
        z, e, strata, cells, alpha=ALPHA - BOOSTING_ALPHA, seed=seed
    )
    sampled_rows = sample_rows(len(z), MAX_PROBE_ROWS)
    return permutation_results, fit_boosted_probe(
        z[sampled_rows], strata[sampled_rows].residualize(e[sampled_rows]), seed
    )


def familywise_p_value(permutation_results: PermutationTestResults, probe: ProbeResult) -> float:
    """One p-value of the shuffles and of boosting, each with its share of the level."""
    permutation_p_value = permutation_results.p_value * ALPHA / (ALPHA - BOOSTING_ALPHA)
    boosting_p_value = 1.0 if probe.p_value is None else probe.p_value * ALPHA / BOOSTING_ALPHA
    # The shuffles' p is a multiple of 1/500: rounding must not take the last one off.
    return min(1.0, round(permutation_p_value, 9), boosting_p_value)


def _measure_dependence(
    z: Array,
    e: Array,
    strata: Strata,
    permutation_results: PermutationTestResults,
    boosted: ProbeResult,
    seed: int,
    with_pair_power: bool = False,
) -> DependenceTests:
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
        distance_correlation=pairs["distance correlation"].value,
        hsic=pairs["hsic"].value,
        n_pair_rows=len(permutation_results.pair_rows),
        tests=permutation_results.tests,
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
    few_critical = permutation_results.tests["mean, few directions"].critical_value
    variance_test = permutation_results.tests.get("spread")
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
        distance_correlation=shares["distance correlation"],
        hsic=shares["hsic"],
    )


# --- reading what is given -----------------------------------------------------------------------


def _validate(z: Array, u: Tensor) -> Array:
    z = np.asarray(z, dtype=np.float64).reshape(len(z), -1)
    if len(z) != len(u):
        raise ValueError(f"z has {len(z)} rows and u {len(u)}; they must have the same number.")
    if len(z) < MIN_CERTIFICATE_ROWS:
        raise ValueError(
            f"X has {len(z)} rows; a certificate of alignment needs at least "
            f"{MIN_CERTIFICATE_ROWS}: with "
            "fewer hardly any dependence could be seen."
        )
    for name, values in {"z": z, "u": u.numpy()}.items():
        is_invalid = ~np.isfinite(values).all(1)
        if is_invalid.any():
            raise ValueError(
                f"{name} is not finite in {int(is_invalid.sum())} of {len(z)} rows (first: row "
                f"{int(is_invalid.argmax())}); drop these rows, or look at why the model gives "
                "them."
            )
    return z


def _standardize(z: Array) -> Array:
    """Columns at mean 0 and mean square 1; those that never change are left out."""
    std = z.std(0)
    is_varying = std > 1e-6 * np.abs(z).max(0)
    return np.asarray((z[:, is_varying] - z[:, is_varying].mean(0)) / std[is_varying])


def _reduce_columns(z: Array) -> Array:
    """Of very many columns the leading principal components, at their own size."""
    if z.shape[1] <= MAX_ENCODING_COLUMNS:
        return z
    left_vectors, singular_values, _ = np.linalg.svd(z, full_matrices=False)
    return np.asarray(
        left_vectors[:, :MAX_ENCODING_COLUMNS] * singular_values[:MAX_ENCODING_COLUMNS]
    )


def _embed_index(space: Space, u: Tensor) -> Array:
    e: Array = space.embed(u).numpy()
    is_varying = e.std(0) > 1e-9 * np.maximum(np.abs(e).max(0), 1e-9)
    if not is_varying.any():
        raise ValueError(
            f"domain_index is constant in these rows (every row has {u[0].tolist()}), so there is "
            "nothing that z could tell; give rows with different index values."
        )
    return np.asarray(e[:, is_varying])


def _default_index_names(space: Space) -> list[str]:
    return ["u"] if space.width == 1 else [f"u{number}" for number in range(space.width)]
