"""The certificate in plain sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cida.certificate.cellwise import CellDependence, CellwiseTests
from cida.certificate.dependence_tests import ALPHA, BOOSTING_ALPHA, DependenceTests
from cida.certificate.permutation_tests import N_PERMUTATIONS

if TYPE_CHECKING:
    from cida.certificate.certificate import Certificate

__all__ = ["summarize_certificate"]

MEAN_TESTS = {"mean", "mean-few-directions"}
BEND_TESTS = {"bend", "curvature"}
VARIANCE_TESTS = {
    "variance",
    "variance-few-directions",
    "variance-bend",
    "variance-curvature",
}
PAIR_TESTS = {"distance-correlation", "hsic"}
TEST_DESCRIPTIONS = {  # what each test looks for
    "mean": "a line along any direction",
    "mean-few-directions": "a line along few directions",
    "variance": "the spread along any direction",
    "variance-few-directions": "the spread along few directions",
    "bend": "a bend along one direction",
    "curvature": "a square along any direction",
    "variance-bend": "a bend of the spread",
    "variance-curvature": "a square of the spread",
    "cell": "one stretch that differs",
    "distance-correlation": "distance correlation",
    "hsic": "HSIC",
}

MAIN_COMPONENTS_ALPHA = 0.05  # above this p-value the main directions show no linear dependence

LIMITS_CAVEAT = (
    "This can refute alignment, never prove it: smaller or more complex dependence is missed, and "
    "an encoding may be free of u and still wrong, as when domains are turned against each other."
)
DECLINED_SENTENCES = {
    "too-few-rows": "{n_rows:,} rows are too few to detect a dependence; at least 100 are needed.",
    "not-finite": "the encoding or the index is not finite in some of the {n_rows:,} rows.",
    "constant-index": "the index has the same value in all {n_rows:,} rows.",
}
HELD_OUT_CAVEAT = (
    "Rows that the model was trained on look better aligned than fresh ones: give rows that were "
    "held out."
)


def summarize_certificate(certificate: Certificate) -> list[str]:
    """The verdict and its figures, the same given the prediction, where along u, the caveats."""
    names = certificate.index_names
    u = names[0] if len(names) == 1 else "u"
    if certificate.verdict in DECLINED_SENTENCES:
        reason = DECLINED_SENTENCES[certificate.verdict].format(n_rows=certificate.n_rows)
        return [f"No certificate of alignment: {reason}"]
    if certificate.marginal is None:
        return [
            f"The encoding is constant in all {certificate.n_rows:,} rows: nothing of {u} is left "
            "in it, and nothing else either.",
            HELD_OUT_CAVEAT,
        ]
    sentences = [
        *_describe_verdict(certificate, certificate.marginal, u),
        *_describe_figures(certificate.marginal, u),
    ]
    sentences += _describe_given_prediction(certificate, u)
    if certificate.cellwise is not None:
        sentences += _describe_cells(certificate.cellwise, names)
    sentences += _describe_omissions(certificate)
    return [*sentences, LIMITS_CAVEAT, HELD_OUT_CAVEAT]


# --- the verdict ---------------------------------------------------------------------------------


def _describe_verdict(certificate: Certificate, result: DependenceTests, u: str) -> list[str]:
    power = result.power
    if not result.is_dependent:
        variance_clause = (
            ""
            if power.variance is None
            else f", or {format_percent(power.variance)} of the variance of {u}'s squares"
        )
        return [
            f"The encoding shows no trace of {_name_index(certificate.index_names)}: no dependence "
            f"of z on {u} was found ({_format_p_value(result.p_value)}). With {result.n_rows:,} "
            f"rows a dependence that explains {format_percent(power.mean)} of V[{u}] by a line "
            f"along any direction of z ({result.n_components} principal components) would have "
            "been seen at least 95 % of the time; so would "
            f"{format_percent(power.first_component)} along its main direction, "
            f"{format_percent(power.bend)} by a bend along one column{variance_clause}."
        ]
    return [
        f"The encoding still tells {_name_index(certificate.index_names)}: z depends on {u} "
        f"({_format_p_value(result.p_value)}, {result.n_rows:,} rows; where there is no "
        f"dependence, one report in twenty says so); {describe_significant_tests(result, u)}."
    ]


def _name_index(names: tuple[str, ...]) -> str:
    """The index by the names of its columns."""
    return names[0] if len(names) == 1 else f"the index ({', '.join(names)})"


def describe_significant_tests(result: DependenceTests, u: str) -> str:
    """What z tells of u, by the tests that see it."""
    significant = set(result.significant_tests)
    if significant & MEAN_TESTS:
        variance_clause = (
            f", and its spread beyond that{_describe_variance_gain(result)}"
            if significant & VARIANCE_TESTS
            else ""
        )
        is_minor = (
            result.n_main_components < result.n_components
            and result.main_f_test.p_value > MAIN_COMPONENTS_ALPHA
        )
        direction_clause = (
            " along directions that hold less than 1 % of its variance" if is_minor else ""
        )
        return f"z still tells the mean of {u}, by a line{direction_clause}{variance_clause}"
    if significant & BEND_TESTS:
        variance_clause = ", and its spread" if significant & VARIANCE_TESTS else ""
        return f"z tells the mean of {u}{variance_clause}, but only a nonlinear probe sees it"
    if significant & VARIANCE_TESTS:
        return f"z tells the spread of {u} but not its mean{_describe_variance_gain(result)}"
    if "cell" in significant:
        return f"z differs in one stretch of {u} from z elsewhere"
    if "boosting" in significant:
        return "only gradient boosting sees it, so it lies in how columns of z act together"
    if significant & PAIR_TESTS:
        pair_names = " and ".join(
            _format_pair_test(name) for name in sorted(significant & PAIR_TESTS)
        )
        return (
            f"only {pair_names} sees it: neither mean nor spread of {u}, but more of its "
            "distribution"
        )
    return "no single test is significant by itself"


def _describe_variance_gain(result: DependenceTests) -> str:
    gain = result.probe_gain.over_mean
    return f" (a probe of the variance gains {gain:.3f} nats a row)" if gain > 0.0005 else ""


# --- the figures ---------------------------------------------------------------------------------


def _describe_figures(result: DependenceTests, u: str, condition: str = "") -> list[str]:
    linear, gain = result.linear_f_test, result.probe_gain
    numerator_dof, denominator_dof = linear.dof
    within = f" {condition}" if condition else ""
    power = result.power
    sentences = [
        f"Linear probe{within}: explains {format_percent(result.linear_r2)} of V[{u}] on rows it "
        f"was not fitted on; all its coefficients at once: F({numerator_dof:g}, "
        f"{denominator_dof:g}) = {linear.f_statistic:.2f}, "
        f"{_format_p_value(linear.p_value)}{_describe_main_components(result)}.",
        f"Gradient boosting{within}: explains {format_percent(result.boosted_r2)} on rows it was "
        f"not fitted on ({_format_p_value(result.boosted_p_value)}).",
        f"Probe of mean and variance{within}: gains {gain.over_marginal:.4f} nats a row "
        f"(give or take {gain.over_marginal_std_error:.4f}) over the best prediction that ignores "
        f"z; the part of the variance is {gain.over_mean:.4f} (give or take "
        f"{gain.over_mean_std_error:.4f}).",
    ]
    for name, value, detectable in (
        ("distance-correlation", result.distance_correlation, power.distance_correlation),
        ("hsic", result.hsic, power.hsic),
    ):
        power_clause = (
            ""
            if detectable is None
            else f"; alone it would see a line of about {format_percent(detectable)}"
        )
        sentences.append(
            f"{_format_pair_test(name, True)}{within}: {value:.4f} on {result.n_pair_rows:,} rows "
            f"({_format_p_value(result.tests[name].p_value)}{power_clause})."
        )
    return [*sentences, _explain_verdict(result, u, within)]


def _explain_verdict(result: DependenceTests, u: str, within: str) -> str:
    """``min(p_s a / a_s, p_b a / a_b)``: permutations and boosting, each with its part of a."""
    min_p_value = min(test.adjusted_p_value for test in result.tests.values())
    smallest = [test for test in result.tests.values() if test.adjusted_p_value == min_p_value]
    test_names = " and ".join(TEST_DESCRIPTIONS[test.name] for test in smallest[:2])
    if len(smallest) > 2:
        test_names = f"{TEST_DESCRIPTIONS[smallest[0].name]} and {len(smallest) - 1} others"
    own_p_clause = (
        f"{_format_p_value(smallest[0].p_value)} by itself, " if len(smallest) == 1 else ""
    )
    alpha_percent, permutation_percent, boosting_percent = (
        100 * ALPHA,
        100 * (ALPHA - BOOSTING_ALPHA),
        100 * BOOSTING_ALPHA,
    )
    permutation_p_value = min(1.0, min_p_value * alpha_percent / permutation_percent)
    boosting_p_value = min(1.0, result.boosted_p_value * alpha_percent / boosting_percent)
    return (
        f"Behind the verdict{within}: of {len(result.tests)} tests on {N_PERMUTATIONS} "
        f"permutations of {u} the most significant {'is' if len(smallest) == 1 else 'are'} "
        f"{test_names} ({own_p_clause}{_format_p_value(min_p_value)} adjusted for all "
        f"{len(result.tests)}). The permutations have {permutation_percent:.2g} of the "
        f"{alpha_percent:g} % and gradient boosting {boosting_percent:.2g}, so their p-value is "
        f"multiplied by {alpha_percent:g}/{permutation_percent:.2g} "
        f"({_format_p_value(permutation_p_value)}) and that of boosting by "
        f"{alpha_percent:g}/{boosting_percent:.2g} ({_format_p_value(boosting_p_value)}): the "
        "smaller is that of the verdict."
    )


def _describe_main_components(result: DependenceTests) -> str:
    """How much the main directions of z explain, where these are not all."""
    if result.n_main_components == result.n_components:
        return ""
    n_components = result.n_main_components
    component_phrase = (
        "first principal component holds"
        if n_components == 1
        else f"first {n_components} components hold"
    )
    share = format_percent(max(0.0, result.main_f_test.adjusted_r2))
    return (
        f"; the {component_phrase} 99 % of z's variance and "
        f"explain{'s' if n_components == 1 else ''} {share}"
    )


def _format_pair_test(name: str, opening: bool = False) -> str:
    return (
        f"Squared {TEST_DESCRIPTIONS[name]}"
        if opening and name != "hsic"
        else TEST_DESCRIPTIONS[name]
    )


# --- given the prediction ------------------------------------------------------------------------


def _describe_given_prediction(certificate: Certificate, u: str) -> list[str]:
    result = certificate.given_prediction
    if not certificate.prediction_kind:
        return []
    condition = f"the predicted {certificate.prediction_kind}"
    if result is None:
        return [
            f"Given {condition} nothing can be tested: there are too few rows, or z or {u} "
            "hardly varies."
        ]
    if result.is_dependent:
        opening = (
            f"Given {condition}, z still depends on {u} ({_format_p_value(result.p_value)}): "
            f"{describe_significant_tests(result, u)}. Label shift does not explain it."
        )
        if not certificate.is_dependent:
            opening += " The verdict is that of all rows, which did not see it."
    elif certificate.is_dependent:
        opening = (
            f"Given {condition}, no dependence is found ({_format_p_value(result.p_value)}; "
            f"{format_percent(result.power.mean)} of "
            f"V[{u}] within would have been seen 95 % of the time)"
        )
        p_value_clause = (
            ""
            if certificate.prediction_p_value is None
            else f", {_format_p_value(certificate.prediction_p_value)}"
        )
        if certificate.is_explained_by_label_shift:
            opening += (
                f", and predictions move along {u}{p_value_clause}: it can be the balance of "
                "labels that moves (label shift). z must carry that to predict well, and aligning "
                "it away would do harm."
            )
        else:
            opening += (
                f", but predictions do not move along {u}{p_value_clause}, so it is no label "
                "shift: more likely too weak to be seen within."
            )
    else:
        opening = f"Given {condition}, none was found either ({_format_p_value(result.p_value)})."
    return [opening, *_describe_figures(result, u, f"given {condition}")]


# --- along u -------------------------------------------------------------------------------------


def _describe_cells(cellwise: CellwiseTests, names: tuple[str, ...]) -> list[str]:
    u = names[0] if len(names) == 1 else "u"
    sentences = []
    if cellwise.between_share is not None:
        sentences.append(
            f"Of what boosting explains, {format_percent(cellwise.between_share)} lies between the "
            f"{len(cellwise.cells)} cells along {u} and the rest within them."
        )
    if cellwise.worst_cell is not None:
        sentences.append(
            f"z is farthest from z elsewhere at {format_cell_range(cellwise.worst_cell, names)} "
            f"({_format_p_value(cellwise.worst_cell.between_p_value or 0.0)}, "
            f"{cellwise.worst_cell.n:,} rows)."
        )
    tested_cells = [cell for cell in cellwise.cells if cell.within_p_value is not None]
    if cellwise.worst_cell_within is not None:
        n_significant = sum((cell.within_p_value or 1.0) <= cellwise.alpha for cell in tested_cells)
        sentences.append(
            f"Within {n_significant} of {len(tested_cells)} cells along {u} z still tells {u}, "
            f"most surely at {format_cell_range(cellwise.worst_cell_within, names)} "
            f"({_format_p_value(cellwise.worst_cell_within.within_p_value or 0.0)})."
        )
    elif tested_cells:
        sentences.append(
            f"Within none of {len(tested_cells)} cells along {u} does z tell {u} beyond chance."
        )
    return sentences


def format_cell_range(cell: CellDependence, names: tuple[str, ...]) -> str:
    """The bounds in the units of u, with as many digits as tell them apart."""
    bounds = []
    for name, low, high in zip(names, cell.lo, cell.hi, strict=True):
        digits = max(0, 1 - math.floor(math.log10(high - low))) if high > low else 3
        bounds.append(f"{name} from {low:.{digits}f} to {high:.{digits}f}")
    return ", ".join(bounds)


def _describe_omissions(certificate: Certificate) -> list[str]:
    sentences = []
    n_varying = certificate.n_columns - certificate.n_constant_columns
    if n_varying > certificate.n_columns_used:
        sentences.append(
            f"Of {n_varying} columns of z the {certificate.n_columns_used} leading principal "
            "components were tested."
        )
    if certificate.n_constant_columns:
        sentences.append(
            f"{certificate.n_constant_columns} of the {certificate.n_columns} columns of z never "
            "change and were left out."
        )
    if certificate.n_rows_used < certificate.n_rows:
        sentences.append(f"{certificate.n_rows_used:,} of {certificate.n_rows:,} rows were used.")
    return sentences


def format_percent(share: float) -> str:
    """``2.1 %``; small shares keep two digits."""
    value = 100 * share
    digits = 0 if value >= 10 else 1 if value >= 1 or value == 0 else 2
    return f"{value:.{digits}f} %"


def _format_p_value(p: float) -> str:
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.2g}"
