"""The certificate in plain sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cida.diagnostics.independence import SHUFFLES

if TYPE_CHECKING:
    from cida.diagnostics.along import Along, Cell
    from cida.diagnostics.certificate import Certificate, View

__all__ = ["certificate_words"]

MEAN = {"mean", "mean, few directions"}
BENT = {"bend", "curvature"}
SPREAD = {"spread", "spread, few directions", "bend of the spread", "curvature of the spread"}
PAIRS = {"distance correlation", "hsic"}
KINDS = {  # what each test looks for, in words
    "mean": "a line along any direction",
    "mean, few directions": "a line along few directions",
    "spread": "the spread along any direction",
    "spread, few directions": "the spread along few directions",
    "bend": "a bend along one direction",
    "curvature": "a square along any direction",
    "bend of the spread": "a bend of the spread",
    "curvature of the spread": "a square of the spread",
    "place": "one stretch that differs",
    "distance correlation": "distance correlation",
    "hsic": "HSIC",
}

THIN_LEVEL = 0.05  # of a line along the main directions, above which it counts as not there

NEVER_PROVES = (
    "This can refute alignment, never prove it: smaller or stranger dependence goes unseen, and an "
    "encoding may be free of u and still wrong, as when domains are turned against each other."
)
FRESH_ROWS = (
    "Rows that the model was trained on look better aligned than fresh ones: give rows that were "
    "held out."
)


def certificate_words(certificate: Certificate) -> list[str]:
    """The verdict and its figures, the same given the prediction, where along u, the caveats."""
    names = certificate.index_names
    u = names[0] if len(names) == 1 else "u"
    if certificate.marginal is None:
        return [
            f"The encoding is constant in all {certificate.rows:,} rows: nothing of {u} is left in "
            "it, and nothing else either.",
            FRESH_ROWS,
        ]
    told = [*_verdict(certificate, certificate.marginal, u), *_figures(certificate.marginal, u)]
    told += _given(certificate, u)
    if certificate.along is not None:
        told += _along(certificate.along, names)
    told += _columns(certificate)
    return [*told, NEVER_PROVES, FRESH_ROWS]


# --- the verdict ---------------------------------------------------------------------------------


def _verdict(certificate: Certificate, view: View, u: str) -> list[str]:
    power = view.power
    if not view.found:
        spread = (
            ""
            if power.spread is None
            else f", or {percent(power.spread)} of the variance of {u}'s squared deviations"
        )
        return [
            f"The encoding shows no trace of {_plainly(certificate.index_names)}: no dependence of "
            f"z on {u} was found ({_p(view.p)}). With {view.rows:,} rows a dependence "
            f"that explains {percent(power.mean)} of V[{u}] by a line along any direction of z "
            f"({view.axes} principal components) would have been seen at least 95 % of the time; "
            f"so would {percent(power.leading)} along its main direction, {percent(power.bend)} by "
            f"a bend along one column{spread}."
        ]
    return [
        f"The encoding still tells {_plainly(certificate.index_names)}: z depends on {u} "
        f"({_p(view.p)}, {view.rows:,} rows; where there is no dependence, one report in twenty "
        f"says so); {culprit_words(view, u)}."
    ]


def _plainly(names: tuple[str, ...]) -> str:
    """The index as whoever chose its columns calls it."""
    return names[0] if len(names) == 1 else f"the index ({', '.join(names)})"


def culprit_words(view: View, u: str) -> str:
    """What of u it is that z tells, and which tests see it."""
    named = set(view.culprits)
    if named & MEAN:
        also = f", and its spread beyond that{_moves(view)}" if named & SPREAD else ""
        thin = view.main_axes < view.axes and view.main.p > THIN_LEVEL
        where = " along directions that hold less than 1 % of its variance" if thin else ""
        return f"z still tells the mean of {u}, by a line{where}{also}"
    if named & BENT:
        also = ", and its spread" if named & SPREAD else ""
        return f"z tells the mean of {u}{also}, but only a nonlinear probe sees it"
    if named & SPREAD:
        return f"z tells the spread of {u} but not its mean{_moves(view)}"
    if "place" in named:
        return f"z differs in one stretch of {u} from z elsewhere"
    if "boosting" in named:
        return "only gradient boosting sees it, so it lies in how columns of z act together"
    if named & PAIRS:
        seen = " and ".join(_pair_name(name) for name in sorted(named & PAIRS))
        return f"only {seen} sees it: neither mean nor spread of {u}, but more of its distribution"
    return "no single test is sure of its kind"


def _moves(view: View) -> str:
    gain = view.gain.over_mean
    return f" (a probe of the variance gains {gain:.3f} nats a row)" if gain > 0.0005 else ""


# --- the figures ---------------------------------------------------------------------------------


def _figures(view: View, u: str, given: str = "") -> list[str]:
    linear, gain = view.linear, view.gain
    first, second = linear.freedom
    within = f" {given}" if given else ""
    power = view.power
    told = [
        f"Linear probe{within}: explains {percent(view.linear_share)} of V[{u}] on rows it was not "
        f"fitted on; all its coefficients at once: F({first:g}, {second:g}) = {linear.f:.2f}, "
        f"{_p(linear.p)}{_main(view)}.",
        f"Gradient boosting{within}: explains {percent(view.boosted_share)} on rows it was not "
        f"fitted on ({_p(view.boosted_p)}).",
        f"Probe of mean and variance{within}: gains {gain.over_blind:.4f} nats a row (give or take "
        f"{gain.over_blind_error:.4f}) over the best belief that ignores z; the part of the "
        f"variance is {gain.over_mean:.4f} (give or take {gain.over_mean_error:.4f}).",
    ]
    for name, value, seen in (
        ("distance correlation", view.distance_correlation, power.distance_correlation),
        ("hsic", view.hsic, power.hsic),
    ):
        could = "" if seen is None else f"; alone it would see a line of about {percent(seen)}"
        told.append(
            f"{_pair_name(name, True)}{within}: {value:.4f} on {view.pair_rows:,} rows "
            f"({_p(view.tests[name].p)}{could})."
        )
    return [*told, _behind(view, u, within)]


def _behind(view: View, u: str, within: str) -> str:
    """``min(p_s a / a_s, p_b a / a_b)``: shuffles and boosting, each with its share of a."""
    from cida.diagnostics.certificate import BOOSTED_LEVEL, LEVEL  # it imports this module

    least = min(test.adjusted for test in view.tests.values())
    first = [test for test in view.tests.values() if test.adjusted == least]
    named = " and ".join(KINDS[test.name] for test in first[:2])
    if len(first) > 2:
        named = f"{KINDS[first[0].name]} and {len(first) - 1} others"
    alone = f"{_p(first[0].p)} by itself, " if len(first) == 1 else ""
    level, mine, boosting = 100 * LEVEL, 100 * (LEVEL - BOOSTED_LEVEL), 100 * BOOSTED_LEVEL
    shuffled = min(1.0, least * level / mine)
    boosted = min(1.0, view.boosted_p * level / boosting)
    return (
        f"Behind the verdict{within}: of {len(view.tests)} tests on {SHUFFLES} shuffles of {u} the "
        f"surest {'is' if len(first) == 1 else 'are'} {named} ({alone}{_p(least)} with all "
        f"{len(view.tests)} allowed for). The shuffles have {mine:.2g} of the {level:g} % and "
        f"gradient boosting {boosting:.2g}, so their p counts {level:g}/{mine:.2g} fold "
        f"({_p(shuffled)}) and that of boosting {level:g}/{boosting:.2g} fold ({_p(boosted)}): the "
        "smaller is the verdict's."
    )


def _main(view: View) -> str:
    """How much lies in the directions that z mostly varies along, where these are not all."""
    if view.main_axes == view.axes:
        return ""
    count = view.main_axes
    named = "first principal component holds" if count == 1 else f"first {count} components hold"
    share = percent(max(0.0, view.main.adjusted))
    return f"; the {named} 99 % of z's variance and explain{'s' if count == 1 else ''} {share}"


def _pair_name(name: str, opening: bool = False) -> str:
    if name == "hsic":
        return "HSIC"
    return "Squared distance correlation" if opening else name


# --- given the prediction ------------------------------------------------------------------------


def _given(certificate: Certificate, u: str) -> list[str]:
    view = certificate.given
    if not certificate.given_what:
        return []
    same = f"the predicted {certificate.given_what}"
    if view is None:
        return [f"Given {same} there is nothing to look at: too little of z, {u} or rows changes."]
    if view.found:
        opening = (
            f"Given {same}, z still depends on {u} ({_p(view.p)}): {culprit_words(view, u)}. Label "
            "shift does not explain it."
        )
        if not certificate.dependence_found:
            opening += " The verdict is that of all rows, which did not see it."
    elif certificate.dependence_found:
        opening = (
            f"Given {same}, no dependence is found ({_p(view.p)}; {percent(view.power.mean)} of "
            f"V[{u}] within would have been seen 95 % of the time)"
        )
        moves = "" if certificate.prediction_p is None else f", {_p(certificate.prediction_p)}"
        if certificate.label_shift_explains:
            opening += (
                f", and predictions move along {u}{moves}: it can be the balance of labels that "
                "moves (label shift). z must carry that to predict well, and aligning it away "
                "would do harm."
            )
        else:
            opening += (
                f", but predictions do not move along {u}{moves}, so it is no label shift: more "
                "likely too weak to be seen within."
            )
    else:
        opening = f"Given {same}, none was found either ({_p(view.p)})."
    return [opening, *_figures(view, u, f"given {same}")]


# --- along u -------------------------------------------------------------------------------------


def _along(along: Along, names: tuple[str, ...]) -> list[str]:
    u = names[0] if len(names) == 1 else "u"
    told = []
    if along.between is not None:
        told.append(
            f"Of what boosting explains, {percent(along.between)} lies between the "
            f"{len(along.cells)} cells along {u} and the rest within them."
        )
    if along.worst is not None:
        told.append(
            f"z is farthest from z elsewhere at {stretch(along.worst, names)} "
            f"({_p(along.worst.apart or 0.0)}, {along.worst.n:,} rows)."
        )
    inside = [cell for cell in along.cells if cell.within is not None]
    if along.worst_within is not None:
        found = sum((cell.within or 1.0) <= along.level for cell in inside)
        told.append(
            f"Within {found} of {len(inside)} cells along {u} z still tells {u}, most surely at "
            f"{stretch(along.worst_within, names)} ({_p(along.worst_within.within or 0.0)})."
        )
    elif inside:
        told.append(f"Within none of {len(inside)} cells along {u} does z tell {u} beyond chance.")
    return told


def stretch(cell: Cell, names: tuple[str, ...]) -> str:
    """The bounds in the units of u, with as many digits as part them."""
    bounds = []
    for name, low, high in zip(names, cell.lo, cell.hi, strict=True):
        digits = max(0, 1 - math.floor(math.log10(high - low))) if high > low else 3
        bounds.append(f"{name} from {low:.{digits}f} to {high:.{digits}f}")
    return ", ".join(bounds)


def _columns(certificate: Certificate) -> list[str]:
    told = []
    changing = certificate.width - certificate.constant_columns
    if changing > certificate.columns_used:
        told.append(
            f"Of {changing} columns of z the {certificate.columns_used} leading principal "
            "components were looked at."
        )
    if certificate.constant_columns:
        told.append(
            f"{certificate.constant_columns} of the {certificate.width} columns of z never change "
            "and were left out."
        )
    if certificate.rows_used < certificate.rows:
        told.append(f"{certificate.rows_used:,} of {certificate.rows:,} rows were used.")
    return told


def percent(share: float) -> str:
    """``2.1 %``; small shares keep two digits."""
    value = 100 * share
    digits = 0 if value >= 10 else 1 if value >= 1 or value == 0 else 2
    return f"{value:.{digits}f} %"


def _p(p: float) -> str:
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.2g}"
