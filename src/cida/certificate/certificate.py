"""The alignment certificate: does z still reveal u? It can refute alignment, never prove it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from cida.array_types import Array
from cida.certificate.cellwise import CellwiseTests, assign_cells, run_cellwise_tests
from cida.certificate.certificate_summary import summarize_certificate
from cida.certificate.dependence_tests import ALPHA, DependenceTests, measure_dependence, run_tests
from cida.certificate.pairwise import PAIR_MEASURES
from cida.certificate.permutation_tests import TEST_NAMES
from cida.certificate.projections import Strata, sample_rows
from cida.io.json_decode import from_dict
from cida.kernel_ridge import standardize_columns
from cida.spaces import Space

__all__ = ["Certificate", "UncertifiableError", "certify", "certify_or_decline"]

MIN_CERTIFICATE_ROWS = 100
MAX_CERTIFICATE_ROWS = 20_000
MAX_ENCODING_COLUMNS = 64
MIN_RESIDUAL_ROWS = 50  # rows beyond the means and slopes that strata take up

DeclinedVerdict = Literal["too-few-rows", "not-finite", "constant-index"]
Verdict = Literal["dependent", "no-dependence-found", "constant-encoding"] | DeclinedVerdict


class UncertifiableError(ValueError):
    """Rows for which no certificate can be made; ``verdict`` is the code of the reason."""

    def __init__(self, verdict: DeclinedVerdict, message: str) -> None:
        super().__init__(message)
        self.verdict: DeclinedVerdict = verdict


@dataclass(frozen=True)
class Certificate:
    """What the encoding still reveals about the index: the result of `certify`.

    Parameters
    ----------
    verdict : str
        "dependent", "no-dependence-found" or "constant-encoding"; or, where nothing could be
        tested, "too-few-rows", "not-finite" (z or u) or "constant-index".
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
    index_names : tuple of str
        Names of the index columns.
    marginal : DependenceTests or None
        The tests that decide; None where z is constant or nothing could be tested.
    given_prediction : DependenceTests or None
        The same tests within predicted classes, or within bins of predicted numbers; None where
        nothing can be tested within them.
    prediction_kind : str
        "class" or "number"; empty without predictions.
    prediction_p_value : float or None
        p-value of the hypothesis that predictions do not change along u.
    cellwise : CellwiseTests or None
        Tests in cells along u.
    """

    verdict: Verdict
    n_rows: int
    n_rows_used: int
    n_columns: int
    n_constant_columns: int
    n_columns_used: int
    index_names: tuple[str, ...]
    marginal: DependenceTests | None = None
    given_prediction: DependenceTests | None = None
    prediction_kind: str = ""
    prediction_p_value: float | None = None
    cellwise: CellwiseTests | None = None

    @property
    def is_dependent(self) -> bool:
        """Whether dependence was found; wrong for at most one independent z in twenty."""
        return self.marginal is not None and self.marginal.is_dependent

    @property
    def effect_size(self) -> float | None:
        """The share of V[u] that a probe of z explains on rows it did not see; None if untested."""
        return None if self.marginal is None else self.marginal.effect_size

    @property
    def is_explained_by_label_shift(self) -> bool:
        """Whether z depends on u, predictions change along u, and nothing was found given them."""
        within, p = self.given_prediction, self.prediction_p_value
        is_found_within = within is None or within.is_dependent
        return self.is_dependent and not is_found_within and p is not None and p <= ALPHA

    def summary(self) -> list[str]:
        """Return sentences for a reader, the verdict first."""
        return summarize_certificate(self)

    def to_dict(self) -> dict[str, Any]:
        """Return values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` returned."""
        certificate = from_dict(cls, dict(data))
        for result in (certificate.marginal, certificate.given_prediction):
            if result is not None and not {*PAIR_MEASURES} <= {*result.tests} <= {*TEST_NAMES}:
                names = ", ".join(result.tests)[:60]
                raise ValueError(f"the tests are {names}, which are not ours")
        return certificate

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
    UncertifiableError
        If there are fewer than 100 rows, u is constant, or z or u is not finite.
    """
    z = _validate(z, u)
    rows = sample_rows(len(z), MAX_CERTIFICATE_ROWS)
    (n_rows, n_columns), u = z.shape, u[torch.from_numpy(rows)].double()
    z = z[rows]
    z = standardize_columns(z[:, z.std(0) > 1e-6 * np.abs(z).max(0)])
    e = _embed_index(space, u)
    n_varying = z.shape[1]
    z = _reduce_columns(z)
    certificate = Certificate(
        verdict="constant-encoding",
        n_rows=n_rows,
        n_rows_used=len(z),
        n_columns=n_columns,
        n_constant_columns=n_columns - n_varying,
        n_columns_used=z.shape[1],
        index_names=_index_names(space, index_names),
    )
    if not n_varying:
        return certificate
    cells, pooled = assign_cells(space, u), Strata.single(len(z))
    results, probe = run_tests(z, e, pooled, cells.cell_of_row, seed)
    marginal = measure_dependence(z, e, pooled, results, probe, seed, with_pair_power=True)
    certificate = replace(
        certificate,
        verdict="dependent" if marginal.is_dependent else "no-dependence-found",
        marginal=marginal,
        cellwise=run_cellwise_tests(z, e, cells, results.cell_tests, probe, ALPHA, seed),
    )
    if predicted is None:
        return certificate
    strata = Strata.from_predictions(np.asarray(predicted)[rows])
    given_prediction = None
    if _can_test_within(z, e, strata):
        within = run_tests(z, e, strata, cells.cell_of_row, seed)
        given_prediction = measure_dependence(z, e, strata, *within, seed)
    return replace(
        certificate,
        given_prediction=given_prediction,
        prediction_kind="class" if strata.covariate is None else "number",
        prediction_p_value=_test_predictions(strata, cells.bins.cell_of_row.numpy()),
    )


def certify_or_decline(
    space: Space,
    z: Array,
    u: Tensor,
    predicted: Array | None = None,
    index_names: Sequence[str] | None = None,
) -> Certificate:
    """Do as `certify`, but return a certificate with the reason where rows cannot be tested.

    Parameters
    ----------
    space : Space
        The fitted space of the index.
    z : ndarray of shape (rows, columns)
        Encodings.
    u : Tensor of shape (rows, width)
        Raw index values.
    predicted : ndarray of shape (rows,), optional
        Predicted classes or numbers.
    index_names : sequence of str, optional
        Names of the index columns.

    Returns
    -------
    Certificate
        Its verdict says whether and why nothing was tested.
    """
    try:
        return certify(space, z, u, predicted, index_names=index_names)
    except UncertifiableError as error:
        n_columns = z[0].size if len(z) else 0
        names = _index_names(space, index_names)
        return Certificate(error.verdict, len(z), 0, n_columns, 0, 0, names)


def _test_predictions(strata: Strata, cells: Array) -> float | None:
    """The chi-squared test of predictions against cells along u; numbers in five parts."""
    codes = strata.codes
    if strata.covariate is not None:
        codes = 5 * codes // (codes.max() + 1)
    table = stats.contingency.crosstab(codes, cells).count
    return float(stats.chi2_contingency(table).pvalue) if min(table.shape) > 1 else None


def _can_test_within(z: Array, e: Array, strata: Strata) -> bool:
    """Whether there are several strata, rows to spare in them, and z and u that change there."""
    if len(strata) < 2 or len(z) - strata.n_removed_terms < MIN_RESIDUAL_ROWS:
        return False
    return all((strata.residualize(values).std(0) > 1e-3).any() for values in (z, e / e.std(0)))


def _validate(z: Array, u: Tensor) -> Array:
    z = np.asarray(z, dtype=np.float64).reshape(len(z), -1)
    if len(z) != len(u):
        raise ValueError(f"z has {len(z)} rows and u {len(u)}; they must have the same number.")
    if len(z) < MIN_CERTIFICATE_ROWS:
        raise UncertifiableError(
            "too-few-rows",
            f"X has {len(z)} rows; a certificate of alignment needs at least "
            f"{MIN_CERTIFICATE_ROWS}: with fewer hardly any dependence could be seen.",
        )
    for name, values in {"z": z, "u": u.numpy()}.items():
        invalid = np.flatnonzero(~np.isfinite(values).all(1))
        if len(invalid):
            raise UncertifiableError(
                "not-finite",
                f"{name} is not finite in {len(invalid)} of {len(z)} rows (first: row "
                f"{invalid[0]}); drop these rows, or look at why the model gives them.",
            )
    return z


def _reduce_columns(z: Array) -> Array:
    """Of very many columns the leading principal components, at their own size."""
    if z.shape[1] <= MAX_ENCODING_COLUMNS:
        return z
    left, singular_values, _ = np.linalg.svd(z, full_matrices=False)
    return np.asarray(left[:, :MAX_ENCODING_COLUMNS] * singular_values[:MAX_ENCODING_COLUMNS])


def _embed_index(space: Space, u: Tensor) -> Array:
    e: Array = space.embed(u).numpy()
    is_varying = e.std(0) > 1e-9 * np.maximum(np.abs(e).max(0), 1e-9)
    if not is_varying.any():
        raise UncertifiableError(
            "constant-index",
            f"domain_index is constant in these rows (every row has {u[0].tolist()}), so there is "
            "nothing that z could tell; give rows with different index values.",
        )
    return np.asarray(e[:, is_varying])


def _index_names(space: Space, names: Sequence[str] | None) -> tuple[str, ...]:
    default = ["u"] if space.width == 1 else [f"u{number}" for number in range(space.width)]
    return tuple(names or default)
