"""The certificate in plain sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cida.certificate.cellwise import CellDependence, CellwiseTests
from cida.certificate.dependence_tests import ALPHA, BOOSTING_ALPHA, DependenceTests
from cida.certificate.pairwise import PAIR_MEASURES
from cida.certificate.permutation_tests import N_PERMUTATIONS, VARIANCE_TESTS

if TYPE_CHECKING:
    from cida.certificate.certificate import Certificate

__all__ = ["summarize_certificate"]

TEST_DESCRIPTIONS = {  # what each test looks for
    "mean": "a line along any direction",
    "mean-few-directions": "a line along few directions",
    "bend": "a bend along one direction",
    "curvature": "a square along any direction",
    "variance": "the spread along any direction",
    "variance-few-directions": "the spread along few directions",
    "variance-bend": "a bend of the spread",
    "variance-curvature": "a square of the spread",
    "cell": "one stretch that differs",
    "distance-correlation": "distance correlation",
    "hsic": "HSIC",
}
PAIR_TITLES = {"distance-correlation": "Squared distance correlation", "hsic": "HSIC"}

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
    return [
        _describe_verdict(certificate.marginal, names, u),
        *_describe_figures(certificate.marginal, u),
        *_describe_given_prediction(certificate, u),
        *(_describe_cells(certificate.cellwise, names, u) if certificate.cellwise else ()),
        *_describe_omissions(certificate),
        LIMITS_CAVEAT,
        HELD_OUT_CAVEAT,
    ]


def _describe_verdict(result: DependenceTests, names: tuple[str, ...], u: str) -> str:
    power, p = result.power, _format_p_value(result.p_value)
    index = u if len(names) == 1 else f"the index ({', '.join(names)})"
    if result.is_dependent:
        return (
            f"The encoding still tells {index}: z depends on {u} ({p}, {result.n_rows:,} rows; "
            "where there is no dependence, one report in twenty says so); "
            f"{_describe_significant_tests(result, u)}."
        )
    squares = ""
    if power.variance is not None:
        squares = f", or {_percent(power.variance)} of the variance of {u}'s squares"
    return (
        f"The encoding shows no trace of {index}: no dependence of z on {u} was found ({p}). With "
        f"{result.n_rows:,} rows a dependence that explains {_percent(power.mean)} of V[{u}] by a "
        f"line along any direction of z ({result.n_components} principal components) would have "
        f"been seen at least 95 % of the time; so would {_percent(power.first_component)} along "
        f"its main direction, {_percent(power.bend)} by a bend along one column{squares}."
    )


def _describe_significant_tests(result: DependenceTests, u: str) -> str:
    """What z tells of u, by the tests that see it."""
    significant = set(result.significant_tests)
    tells_spread = not significant.isdisjoint(VARIANCE_TESTS)
    gain = result.probe_gain.over_mean
    probe = f" (a probe of the variance gains {gain:.3f} nats a row)" if gain > 0.0005 else ""
    if significant & {"mean", "mean-few-directions"}:
        is_minor = (
            result.n_main_components < result.n_components
            and result.main_f_test.p_value > MAIN_COMPONENTS_ALPHA
        )
        minor = " along directions that hold less than 1 % of its variance" if is_minor else ""
        spread = f", and its spread beyond that{probe}" if tells_spread else ""
        return f"z still tells the mean of {u}, by a line{minor}{spread}"
    if significant & {"bend", "curvature"}:
        spread = ", and its spread" if tells_spread else ""
        return f"z tells the mean of {u}{spread}, but only a nonlinear probe sees it"
    if tells_spread:
        return f"z tells the spread of {u} but not its mean{probe}"
    if "cell" in significant:
        return f"z differs in one stretch of {u} from z elsewhere"
    if "boosting" in significant:
        return "only gradient boosting sees it, so it lies in how columns of z act together"
    if pair_tests := significant & PAIR_MEASURES.keys():
        pairs = " and ".join(TEST_DESCRIPTIONS[name] for name in sorted(pair_tests))
        return f"only {pairs} sees it: neither mean nor spread of {u}, but more of its distribution"
    return "no single test is significant by itself"


def _describe_figures(result: DependenceTests, u: str, within: str = "") -> list[str]:
    linear, gain = result.linear_f_test, result.probe_gain
    sentences = [
        f"Linear probe{within}: explains {_percent(result.linear_r2)} of V[{u}] on rows it was not "
        f"fitted on; all its coefficients at once: F({linear.dof[0]:g}, {linear.dof[1]:g}) = "
        f"{linear.f_statistic:.2f}, {_format_p_value(linear.p_value)}"
        f"{_describe_main_components(result)}.",
        f"Gradient boosting{within}: explains {_percent(result.boosted_r2)} on rows it was not "
        f"fitted on ({_format_p_value(result.boosted_p_value)}).",
        f"Probe of mean and variance{within}: gains {gain.over_marginal:.4f} nats a row "
        f"(give or take {gain.over_marginal_std_error:.4f}) over the best prediction that ignores "
        f"z; the part of the variance is {gain.over_mean:.4f} (give or take "
        f"{gain.over_mean_std_error:.4f}).",
    ]
    for name in PAIR_MEASURES:
        field = name.replace("-", "_")
        value, share = getattr(result, field), getattr(result.power, field)
        power = "" if share is None else f"; alone it would see a line of about {_percent(share)}"
        p = _format_p_value(result.tests[name].p_value)
        rows = f"{result.n_pair_rows:,} rows"
        sentences.append(f"{PAIR_TITLES[name]}{within}: {value:.4f} on {rows} ({p}{power}).")
    return [*sentences, _explain_verdict(result, u, within)]


def _explain_verdict(result: DependenceTests, u: str, within: str) -> str:
    """``min(p_s a / a_s, p_b a / a_b)``: permutations and boosting, each with its part of a."""
    n_tests = len(result.tests)
    min_p = min(test.adjusted_p_value for test in result.tests.values())
    smallest = [test for test in result.tests.values() if test.adjusted_p_value == min_p]
    is_single = len(smallest) == 1
    names = [TEST_DESCRIPTIONS[test.name] for test in smallest]
    if len(names) > 2:
        names[1:] = [f"{len(names) - 1} others"]
    own_p = f"{_format_p_value(smallest[0].p_value)} by itself, " if is_single else ""
    whole, boosting = 100 * ALPHA, 100 * BOOSTING_ALPHA
    permutations = 100 * (ALPHA - BOOSTING_ALPHA)
    permutation_p = _format_p_value(min(1.0, min_p * whole / permutations))
    boosting_p = _format_p_value(min(1.0, result.boosted_p_value * whole / boosting))
    return (
        f"Behind the verdict{within}: of {n_tests} tests on {N_PERMUTATIONS} permutations of {u} "
        f"the most significant {'is' if is_single else 'are'} {' and '.join(names)} ({own_p}"
        f"{_format_p_value(min_p)} adjusted for all {n_tests}). The permutations have "
        f"{permutations:.2g} of the {whole:g} % and gradient boosting {boosting:.2g}, so their "
        f"p-value is multiplied by {whole:g}/{permutations:.2g} ({permutation_p}) and that of "
        f"boosting by {whole:g}/{boosting:.2g} ({boosting_p}): the smaller is that of the verdict."
    )


def _describe_main_components(result: DependenceTests) -> str:
    """How much the main directions of z explain, where these are not all."""
    count = result.n_main_components
    if count == result.n_components:
        return ""
    holders = "first principal component holds" if count == 1 else f"first {count} components hold"
    verb = "explains" if count == 1 else "explain"
    share = _percent(max(0.0, result.main_f_test.adjusted_r2))
    return f"; the {holders} 99 % of z's variance and {verb} {share}"


def _describe_given_prediction(certificate: Certificate, u: str) -> list[str]:
    result = certificate.given_prediction
    if not certificate.prediction_kind:
        return []
    given = f"Given the predicted {certificate.prediction_kind}"
    if result is None:
        reason = f"there are too few rows, or z or {u} hardly varies"
        return [f"{given} nothing can be tested: {reason}."]
    p, prediction_p = _format_p_value(result.p_value), ""
    if certificate.prediction_p_value is not None:
        prediction_p = f", {_format_p_value(certificate.prediction_p_value)}"
    if result.is_dependent:
        opening = (
            f"{given}, z still depends on {u} ({p}): {_describe_significant_tests(result, u)}. "
            "Label shift does not explain it."
        )
        if not certificate.is_dependent:
            opening += " The verdict is that of all rows, which did not see it."
    elif not certificate.is_dependent:
        opening = f"{given}, none was found either ({p})."
    else:
        opening = (
            f"{given}, no dependence is found ({p}; {_percent(result.power.mean)} of V[{u}] within "
            "would have been seen 95 % of the time)"
        )
        if certificate.is_explained_by_label_shift:
            opening += (
                f", and predictions move along {u}{prediction_p}: it can be the balance of labels "
                "that moves (label shift). z must carry that to predict well, and aligning it away "
                "would do harm."
            )
        else:
            opening += (
                f", but predictions do not move along {u}{prediction_p}, so it is no label shift: "
                "more likely too weak to be seen within."
            )
    return [opening, *_describe_figures(result, u, f" g{given[1:]}")]


def _describe_cells(cellwise: CellwiseTests, names: tuple[str, ...], u: str) -> list[str]:
    sentences = []
    if cellwise.between_share is not None:
        sentences.append(
            f"Of what boosting explains, {_percent(cellwise.between_share)} lies between the "
            f"{len(cellwise.cells)} cells along {u} and the rest within them."
        )
    if (worst := cellwise.worst_cell) is not None:
        sentences.append(
            f"z is farthest from z elsewhere at {_format_cell_range(worst, names)} "
            f"({_format_p_value(worst.between_p_value or 0.0)}, {worst.n:,} rows)."
        )
    p_values = [cell.within_p_value for cell in cellwise.cells if cell.within_p_value is not None]
    if (worst := cellwise.worst_cell_within) is not None:
        n_significant = sum(p <= cellwise.alpha for p in p_values)
        sentences.append(
            f"Within {n_significant} of {len(p_values)} cells along {u} z still tells {u}, most "
            f"surely at {_format_cell_range(worst, names)} ({_format_p_value(min(p_values))})."
        )
    elif p_values:
        sentences.append(
            f"Within none of {len(p_values)} cells along {u} does z tell {u} beyond chance."
        )
    return sentences


def _format_cell_range(cell: CellDependence, names: tuple[str, ...]) -> str:
    """The bounds in the units of u, with as many digits as tell them apart."""
    bounds = []
    for name, low, high in zip(names, cell.lo, cell.hi, strict=True):
        digits = max(0, 1 - math.floor(math.log10(high - low))) if high > low else 3
        bounds.append(f"{name} from {low:.{digits}f} to {high:.{digits}f}")
    return ", ".join(bounds)


def _describe_omissions(certificate: Certificate) -> list[str]:
    n_columns, n_constant = certificate.n_columns, certificate.n_constant_columns
    n_varying, n_used = n_columns - n_constant, certificate.n_columns_used
    omissions = []
    if n_varying > n_used:
        parts = f"the {n_used} leading principal components were tested"
        omissions.append(f"Of {n_varying} columns of z {parts}.")
    if n_constant:
        columns = f"{n_constant} of the {n_columns} columns of z"
        omissions.append(f"{columns} never change and were left out.")
    if certificate.n_rows_used < certificate.n_rows:
        omissions.append(f"{certificate.n_rows_used:,} of {certificate.n_rows:,} rows were used.")
    return omissions


def _percent(share: float) -> str:
    """``2.1 %``; small shares keep two digits."""
    value = 100 * share
    digits = 0 if value >= 10 else 1 if value >= 1 or value == 0 else 2
    return f"{value:.{digits}f} %"


def _format_p_value(p: float) -> str:
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.2g}"
