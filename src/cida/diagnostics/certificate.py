"""The alignment certificate: does z still tell u? It can refute alignment, never prove it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from cida.diagnostics.along import Along, along_index, cells_along
from cida.diagnostics.certificate_words import certificate_words
from cida.diagnostics.directions import Strata, some_rows
from cida.diagnostics.independence import Independence, Test, independence
from cida.diagnostics.pairs import smallest_share_of_pairs
from cida.diagnostics.power import FTest, smallest_share, smallest_share_of_few
from cida.diagnostics.probes import (
    Gain,
    Probe,
    boosted_probe,
    linear_probe,
    mean_and_variance_gain,
)
from cida.space import Space

__all__ = ["FEWEST_ROWS", "LEVEL", "Certificate", "Power", "View", "certify", "family_p", "judge"]

Array = np.ndarray[Any, Any]

LEVEL = 0.05  # of false alarms, in all
BOOSTED_LEVEL = 0.004  # of it, for boosting: too slow to shuffle, so it has a share of its own
FEWEST_ROWS = 100
MOST_ROWS = 20_000
MOST_COLUMNS = 64
PROBE_ROWS = 10_000
SPARE_ROWS = 50  # beyond the means that strata take off


@dataclass(frozen=True)
class Power:
    """The least dependence that would have been seen 95 % of the time, at this level and this n.

    ``mean``: the share of V[u] explained by a line along any direction of z; ``leading``: along
    its first principal component; ``bend``: by a smooth bend along one column or leading
    component; ``spread``: the share of the variance of (u - mean)^2 along any direction, None
    where u has two values alone.
    ``distance_correlation`` and ``hsic``: the share along the first component that each of them
    alone would see, at 5 %; about, and on fewer rows.
    """

    mean: float
    leading: float
    bend: float
    spread: float | None
    distance_correlation: float | None
    hsic: float | None


@dataclass(frozen=True)
class View:
    """Everything that was measured, marginally or given the prediction.

    ``axes`` counts the principal components of z that were looked along; ``linear`` tests a line
    along all of them, ``main`` along the first ``main_axes``, which hold 99 % of z's variance.
    """

    rows: int
    axes: int
    p: float
    linear_share: float
    linear: FTest
    main: FTest
    main_axes: int
    boosted_share: float
    boosted_p: float
    gain: Gain
    distance_correlation: float
    hsic: float
    pair_rows: int
    tests: dict[str, Test]
    power: Power

    @property
    def found(self) -> bool:
        """Whether z depends on u, at a family-wise level of 5 %."""
        return self.p <= LEVEL

    @property
    def culprits(self) -> list[str]:
        """The tests that see it by themselves, with all others allowed for."""
        level = LEVEL - BOOSTED_LEVEL
        named = [name for name, test in self.tests.items() if test.adjusted <= level + 1e-12]
        return named + (["boosting"] if self.boosted_p <= BOOSTED_LEVEL else [])


@dataclass(frozen=True)
class Certificate:
    """What is left of u in z. ``marginal`` has the verdict; the rest stands beside it.

    ``given`` is the same within predicted classes, or within bins of predicted numbers
    (``given_what``: class or number), None where there is nothing to look at within;
    ``prediction_p`` is that of predictions that do not move along u; ``along`` looks at cells
    along u. ``marginal`` is None where z is constant.
    """

    rows: int
    rows_used: int
    width: int
    constant_columns: int
    columns_used: int
    marginal: View | None
    given: View | None
    given_what: str
    prediction_p: float | None
    along: Along | None
    index_names: tuple[str, ...]

    @property
    def dependence_found(self) -> bool:
        """The verdict: at most one report in twenty says yes where z and u are independent."""
        return self.marginal is not None and self.marginal.found

    @property
    def label_shift_explains(self) -> bool:
        """Whether z depends on u and predictions move along u, but given them nothing was found."""
        moves = self.prediction_p is not None and self.prediction_p <= LEVEL
        return self.dependence_found and self.given is not None and not self.given.found and moves

    def words(self) -> list[str]:
        """Plain sentences, the verdict first."""
        return certificate_words(self)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        values = asdict(self)
        for name, view in (("marginal", self.marginal), ("given", self.given)):
            if view is not None:
                values[name]["linear"] = view.linear.to_dict()
                values[name]["main"] = view.main.to_dict()
                values[name]["culprits"] = view.culprits
        values["index_names"] = list(self.index_names)
        if self.along is not None:
            values["along"] = self.along.to_dict()
        return {"dependence_found": self.dependence_found, **values}

    def __str__(self) -> str:
        return "\n".join(self.words())


def certify(
    space: Space,
    z: Array,
    u: Tensor,
    predicted: Array | None = None,
    seed: int = 0,
    index_names: Sequence[str] | None = None,
) -> Certificate:
    """Looks for any dependence of encodings z, shape (rows, columns), on the raw index u.

    ``predicted``: what the model predicts, classes or numbers; no label is read. Rows are taken to
    be independent draws. Of more than 20,000 rows as many are drawn.
    """
    z = _check(z, u)
    rows = some_rows(len(z), MOST_ROWS)
    z, u, count = z[rows], u[torch.from_numpy(rows)].double(), len(z)
    scaled = _scaled(z)
    e = _embedded(space, u)
    names = tuple(index_names or _names(space))
    width, constant = z.shape[1], z.shape[1] - scaled.shape[1]
    if not scaled.shape[1]:
        return Certificate(count, len(z), width, constant, 0, None, None, "", None, None, names)
    scaled = _narrowed(scaled)
    cells = cells_along(space, u)
    whole = Strata.whole(len(z))
    tested, probe = judge(scaled, e, whole, cells.of_rows, seed)
    marginal = _view(scaled, e, whole, tested, probe, seed, plant=True)
    along = along_index(scaled, e, cells, tested.places, probe, LEVEL, seed)
    given, what, moves = None, "", None
    if predicted is not None:
        strata = Strata.of(np.asarray(predicted)[rows])
        what = "class" if strata.along is None else "number"
        moves = _prediction_p(strata, cells.bins.rows.numpy())
        if _can_look_within(scaled, e, strata):
            within = judge(scaled, e, strata, cells.of_rows, seed)
            given = _view(scaled, e, strata, *within, seed)
    used = scaled.shape[1]
    return Certificate(
        count, len(z), width, constant, used, marginal, given, what, moves, along, names
    )


def _prediction_p(strata: Strata, cells: Array) -> float | None:
    """The chi-squared test of predictions against cells along u; numbers in five parts."""
    codes = strata.codes if strata.along is None else 5 * strata.codes // (strata.codes.max() + 1)
    _, codes = np.unique(codes, return_inverse=True)
    _, places = np.unique(cells, return_inverse=True)
    if codes.max() < 1 or places.max() < 1:
        return None
    table = np.zeros((codes.max() + 1, places.max() + 1))
    np.add.at(table, (codes, places), 1)
    return float(stats.chi2_contingency(table).pvalue)


def _can_look_within(z: Array, e: Array, strata: Strata) -> bool:
    """Whether there are several strata, rows to spare in them, and z and u that change there."""
    if len(strata) < 2 or len(z) - strata.taken < SPARE_ROWS:
        return False
    return all((strata.without(values).std(0) > 1e-3).any() for values in (z, e / e.std(0)))


def judge(
    z: Array, e: Array, strata: Strata, cells: Array | None, seed: int = 0
) -> tuple[Independence, Probe]:
    """The tests behind the verdict: those with shuffles at 4.6 %, boosting at 0.4 %."""
    tested = independence(z, e, strata, cells, level=LEVEL - BOOSTED_LEVEL, seed=seed)
    some = some_rows(len(z), PROBE_ROWS)
    return tested, boosted_probe(z[some], strata[some].without(e[some]), seed)


def family_p(tested: Independence, probe: Probe) -> float:
    """One p-value of the shuffles and of boosting, each with its share of the level."""
    shuffled = tested.p * LEVEL / (LEVEL - BOOSTED_LEVEL)
    boosted = 1.0 if probe.p is None else probe.p * LEVEL / BOOSTED_LEVEL
    # The shuffles' p is a multiple of 1/500: rounding must not take the last one off.
    return min(1.0, round(shuffled, 9), boosted)


def _view(
    z: Array,
    e: Array,
    strata: Strata,
    tested: Independence,
    boosted: Probe,
    seed: int,
    plant: bool = False,
) -> View:
    some = some_rows(len(z), PROBE_ROWS)
    inside = strata[some]
    mine, left = inside.without(z[some]), inside.without(e[some])
    pairs = tested.pairs
    return View(
        rows=len(z),
        axes=tested.axes,
        p=family_p(tested, boosted),
        linear_share=linear_probe(mine, left, seed).share,
        linear=tested.linear,
        main=tested.main,
        main_axes=tested.main_axes,
        boosted_share=boosted.share,
        boosted_p=1.0 if boosted.p is None else boosted.p,
        gain=mean_and_variance_gain(mine, left, seed),
        distance_correlation=pairs["distance correlation"].value,
        hsic=pairs["hsic"].value,
        pair_rows=len(tested.pair_rows),
        tests=tested.tests,
        power=_power(z, tested, strata, plant, seed),
    )


def _power(z: Array, tested: Independence, strata: Strata, plant: bool, seed: int) -> Power:
    rows = len(z) - strata.taken + 1
    few = tested.tests["mean, few directions"].critical
    spread = tested.tests.get("spread")
    shares: dict[str, float | None] = dict.fromkeys(tested.pairs)
    if plant:
        generator = np.random.default_rng(seed)
        some = tested.pair_rows
        for name, measured in tested.pairs.items():
            shares[name] = smallest_share_of_pairs(
                name,
                z[some],
                tested.leading[some],
                tested.targets[some],
                measured.shuffled[1:],
                generator,
            )
    return Power(
        mean=smallest_share(tested.tests["mean"].critical, rows, tested.axes, tested.columns),
        leading=smallest_share_of_few(few, rows, 1, tested.columns),
        bend=smallest_share_of_few(tested.tests["bend"].critical, rows, 2, tested.columns),
        spread=smallest_share(spread.critical, rows, tested.axes, tested.spreads)
        if spread
        else None,
        distance_correlation=shares["distance correlation"],
        hsic=shares["hsic"],
    )


# --- reading what is given -----------------------------------------------------------------------


def _check(z: Array, u: Tensor) -> Array:
    z = np.asarray(z, dtype=np.float64).reshape(len(z), -1)
    if len(z) != len(u):
        raise ValueError(f"z has {len(z)} rows and u {len(u)}; they must have the same number.")
    if len(z) < FEWEST_ROWS:
        raise ValueError(
            f"X has {len(z)} rows; a certificate of alignment needs at least {FEWEST_ROWS}: with "
            "fewer hardly any dependence could be seen."
        )
    for name, values in {"z": z, "u": u.numpy()}.items():
        broken = ~np.isfinite(values).all(1)
        if broken.any():
            raise ValueError(
                f"{name} is not finite in {int(broken.sum())} of {len(z)} rows (first: row "
                f"{int(broken.argmax())}); drop these rows, or look at why the model gives them."
            )
    return z


def _scaled(z: Array) -> Array:
    """Columns at mean 0 and mean square 1; those that never change are left out."""
    spread = z.std(0)
    changes = spread > 1e-6 * np.abs(z).max(0)
    return np.asarray((z[:, changes] - z[:, changes].mean(0)) / spread[changes])


def _narrowed(z: Array) -> Array:
    """Of very many columns the leading principal components, at their own size."""
    if z.shape[1] <= MOST_COLUMNS:
        return z
    left, sizes, _ = np.linalg.svd(z, full_matrices=False)
    return np.asarray(left[:, :MOST_COLUMNS] * sizes[:MOST_COLUMNS])


def _embedded(space: Space, u: Tensor) -> Array:
    e: Array = space.embed(u).numpy()
    changes = e.std(0) > 1e-9 * np.maximum(np.abs(e).max(0), 1e-9)
    if not changes.any():
        raise ValueError(
            f"domain_index is constant in these rows (every row has {u[0].tolist()}), so there is "
            "nothing that z could tell; give rows with different index values."
        )
    return np.asarray(e[:, changes])


def _names(space: Space) -> list[str]:
    return ["u"] if space.width == 1 else [f"u{number}" for number in range(space.width)]
