"""Is z independent of u? Many tests, one family-wise answer.

Each test is a number that grows with one kind of dependence. All are computed on the rows as they
are and on the same rows with u shuffled, some hundred times with the same shuffles for every test.
The largest of the scores, each with the weight of its test, is compared with the largest of each
shuffle (Westfall and Young, 1993): the answer is exact for any number of rows and tests, and tests
that see the same thing share their level rather than pay for it twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import gammaincc

from cida.diagnostics.directions import (
    BENDS,
    MOST_CURVED,
    Directions,
    Strata,
    directions,
    some_rows,
    uncorrelated,
)
from cida.diagnostics.pairs import MEASURES, PairMeasure, among, pair_measure
from cida.diagnostics.power import FTest, f_test

__all__ = ["SHUFFLES", "TESTS", "Independence", "Place", "Test", "independence"]

Array = np.ndarray[Any, Any]

SHUFFLES = 499
# How the level is shared out. In many columns a mean needs most of it to be seen at all; in few a
# hundredth is enough for that, and the rest is better spent on bends.
TESTS = (
    "mean",
    "mean, few directions",
    "spread",
    "spread, few directions",
    "bend",
    "curvature",
    "bend of the spread",
    "curvature of the spread",
    "place",
    "distance correlation",
    "hsic",
)
NARROW = (0.10, 0.06, 0.12, 0.08, 0.26, 0.24, 0.03, 0.02, 0.04, 0.03, 0.02)
WIDE = (0.33, 0.06, 0.29, 0.06, 0.10, 0.07, 0.02, 0.01, 0.02, 0.02, 0.02)
MOST_NARROW = 16  # axes
PAIR_ROWS = 1000  # of which all pairs are looked at
HIGHEST = 700.0  # score: beyond, p is 0 in floating point
AT_ONCE = 6_000_000  # numbers of shuffled u in memory
PAIRED = 3  # columns of u of which covariances are looked at, as well as variances


@dataclass(frozen=True)
class Test:
    """One test: its p-value alone, adjusted for all tests, and from where on it alone alarms.

    ``p`` and ``adjusted`` are shares of the shuffles, itself included, that are as extreme.
    """

    __test__ = False  # nothing for pytest

    name: str
    statistic: float
    p: float
    adjusted: float
    critical: float


@dataclass(frozen=True)
class Place:
    """How far z in one cell along u is from z elsewhere; ``p`` is adjusted for all cells."""

    surprise: float
    p: float


@dataclass(frozen=True)
class Independence:
    """``p`` is the family-wise answer; ``places`` those of the cells along u.

    ``linear`` is the F-test of all axes, ``main`` that of the first ``main_axes``, which hold 99 %
    of z's variance. ``axes`` counts the uncorrelated directions of z, ``columns`` those of u,
    ``spreads`` its variances and covariances; ``leading`` is the first axis, ``pair_rows`` the
    rows whose pairs were looked at.
    """

    p: float
    tests: dict[str, Test]
    linear: FTest
    main: FTest
    main_axes: int
    places: dict[int, Place]
    pairs: dict[str, PairMeasure]
    pair_rows: Array
    axes: int
    columns: int
    spreads: int
    leading: Array
    targets: Array


def independence(
    z: Array,
    e: Array,
    strata: Strata,
    cells: Array | None = None,
    *,
    level: float = 0.05,
    shuffles: int = SHUFFLES,
    pairs: bool = True,
    seed: int = 0,
) -> Independence:
    """Tests z, shape (rows, columns), against the embedded index e within strata.

    ``cells`` numbers places along u, -1 where a row is in none; ``pairs`` asks for distance
    correlation and HSIC, on at most `PAIR_ROWS` rows.
    """
    generator = np.random.default_rng(seed)
    views = directions(z, strata, generator)
    targets = uncorrelated(strata.without(e), tolerance=1e-9)
    some = some_rows(len(z), PAIR_ROWS)
    apart = np.isin(np.arange(len(z)), some)
    orders = strata.shuffles(shuffles, apart, generator)
    orders = np.concatenate([np.arange(len(z))[None], orders])  # the rows as they are come first

    found = _along_directions(views, targets, orders)
    places = {} if cells is None else _places(views, cells, orders)
    if places:
        found["place"] = np.max(list(places.values()), axis=0)
    measured = {}
    if pairs:
        within, parts = among(some, orders), strata[some].groups()
        for name in MEASURES:
            measured[name] = pair_measure(name, z[some], targets[some], parts, within)
            found[name] = measured[name].shuffled
    weights = NARROW if len(views.axes) <= MOST_NARROW else WIDE
    p, tests = _family(found, dict(zip(TESTS, weights, strict=True)), level)
    axes = views.axes.T.astype(np.float64)
    return Independence(
        p=p,
        tests=tests,
        linear=f_test(axes, targets, strata.taken),
        main=f_test(axes[:, : views.main], targets, strata.taken),
        main_axes=views.main,
        places={
            cell: Place(float(mine[0]), _share(found["place"], float(mine[0])))
            for cell, mine in places.items()
        },
        pairs=measured,
        pair_rows=some,
        axes=axes.shape[1],
        columns=targets.shape[1],
        spreads=_Pairs.of(targets).count,
        leading=axes[:, 0],
        targets=targets,
    )


# --- the family ----------------------------------------------------------------------------------


def _family(
    found: dict[str, Array], weights: dict[str, float], level: float
) -> tuple[float, dict[str, Test]]:
    scores = {name: _score(values) + math.log(weights[name]) for name, values in found.items()}
    largest = np.max(list(scores.values()), axis=0)
    critical = _critical(found, weights, level)
    tests = {
        name: Test(
            name,
            float(values[0]),
            _share(values, float(values[0])),
            _share(largest, float(scores[name][0])),
            critical[name],
        )
        for name, values in found.items()
    }
    return _share(largest, float(largest[0])), tests


def _critical(found: dict[str, Array], weights: dict[str, float], level: float) -> dict[str, float]:
    """From which value on each test by itself alarms, told by the shuffles alone."""
    shuffled = {name: values[1:] for name, values in found.items()}
    scores = [_score(values) + math.log(weights[name]) for name, values in shuffled.items()]
    needed = float(np.quantile(np.max(scores, axis=0), 1 - level))
    return {
        name: _quantile(values, needed - math.log(weights[name]))
        for name, values in shuffled.items()
    }


def _share(values: Array, observed: float) -> float:
    """The share of values that are as large; rounding does not part equal ones."""
    return float((values >= observed - 1e-6 * abs(observed)).mean())


def _gamma(values: Array) -> tuple[float, float]:
    """Shape and scale of the gamma distribution with the mean and variance of the values.

    Which curve is taken does not touch the validity, since it is the same for all shuffles; only
    how fairly the tests share the level hangs on it.
    """
    mean, variance = float(values.mean()), float(values.var())
    if not (mean > 0 and variance > 0):
        return 1.0, 1.0
    return mean**2 / variance, variance / mean


def _score(values: Array) -> Array:
    """``-log p`` under that curve; what falls below its support scores 0."""
    lifted = values - min(0.0, float(values.min()))  # distance correlations can be negative
    shape, scale = _gamma(lifted)
    return np.asarray(np.minimum(-stats.gamma.logsf(lifted, shape, scale=scale), HIGHEST))


def _quantile(values: Array, score: float) -> float:
    """The value of a given score."""
    low = min(0.0, float(values.min()))
    shape, scale = _gamma(values - low)
    return float(stats.gamma.isf(math.exp(-max(score, 0.0)), shape, scale=scale) + low)


# --- along directions ----------------------------------------------------------------------------


def _along_directions(views: Directions, targets: Array, orders: Array) -> dict[str, Array]:
    rows, width = targets.shape
    found: dict[str, list[Array]] = {}
    pairs = _Pairs.of(targets)
    for part in _in_parts(orders, rows * max(width, len(pairs.first))):
        mean = targets[part].transpose(1, 0, 2).astype(np.float32)  # rows, shuffles, columns
        left = _scaled(mean - _onto(views.axes, mean))
        values = {
            "mean": _all_axes(views, mean),
            "mean, few directions": _few(views, mean),
            "bend": _bent(views, left),
            "curvature": _curved(views, left),
        }
        if pairs.count:
            spread = _scaled(pairs.of_rows(left))
            bent = spread - _onto(views.axes, spread)
            values["spread"] = _all_axes(views, spread)
            values["spread, few directions"] = _few(views, spread)
            values["bend of the spread"] = _bent(views, bent)
            values["curvature of the spread"] = _curved(views, bent)
        for name, mine in values.items():
            found.setdefault(name, []).append(mine)
    return {name: np.concatenate(values).astype(np.float64) for name, values in found.items()}


def _in_parts(orders: Array, size: int) -> Iterator[Array]:
    step = max(1, AT_ONCE // size)
    for start in range(0, len(orders), step):
        yield orders[start : start + step]


@dataclass(frozen=True)
class _Pairs:
    """Products of the columns of u, in the combinations that are uncorrelated where u is free of z.

    One that never changes is left out: ``cos^2 + sin^2`` on a circle, and all where u has two
    values, whose mean tells its spread.
    """

    first: Array
    second: Array
    weights: Array

    @classmethod
    def of(cls, targets: Array) -> _Pairs:
        width = targets.shape[1]
        if width <= PAIRED:
            first, second = np.triu_indices(width)
        else:
            first = second = np.arange(width)
        products = targets[:, first] * targets[:, second]
        products = products - products.mean(0)
        products -= targets @ (targets.T @ products / len(targets))  # no more than u itself tells
        sizes, turned = np.linalg.eigh(products.T @ products / len(targets))
        there = sizes > max(1e-3 * float(sizes.max()), 1e-6)
        return cls(first, second, turned[:, there].astype(np.float32))

    @property
    def count(self) -> int:
        return int(self.weights.shape[1])

    def of_rows(self, left: Array) -> Array:
        return np.asarray((left[..., self.first] * left[..., self.second]) @ self.weights)


def _scaled(values: Array) -> Array:
    centred = values - values.mean(0)
    size = np.sqrt((centred**2).mean(0))
    return np.asarray(centred / np.where(size > 0, size, 1))


def _times(functions: Array, values: Array) -> Array:
    """``f' t / sqrt(n)`` for each function, shuffle and column: about normal where independent."""
    rows, count, width = values.shape
    product = functions @ values.reshape(rows, count * width)
    return np.asarray(product.reshape(-1, count, width) / math.sqrt(rows))


def _onto(axes: Array, values: Array) -> Array:
    rows, count, width = values.shape
    flat = values.reshape(rows, count * width)
    return np.asarray((axes.T @ (axes @ flat / rows)).reshape(values.shape))


def _surprise(squares: Array, freedom: int) -> Array:
    """``-log P(chi^2 >= squares)``."""
    return np.asarray(-np.log(np.maximum(gammaincc(freedom / 2, squares / 2), 1e-300)))


def _leading_counts(axes: int) -> list[int]:
    """How many leading axes are tested together."""
    return [count for count in (1, 2, 4, 8, 16) if count < axes] or [axes]


def _all_axes(views: Directions, values: Array) -> Array:
    return np.asarray((_times(views.axes, values) ** 2).sum((0, 2)))


def _few(views: Directions, values: Array) -> Array:
    """Leading axes together, or one single direction of many: each half of the level."""
    width = values.shape[2]
    squares = (_times(views.axes, values) ** 2).sum(2).cumsum(0)
    leading = [_surprise(squares[k - 1], k * width) for k in _leading_counts(len(views.axes))]
    one = _surprise((_times(views.single, values) ** 2).sum(2).max(0), width)
    one -= math.log(len(views.single) / len(leading))
    return np.asarray(np.max([one, *leading], axis=0))


def _bent(views: Directions, values: Array) -> Array:
    """The largest surprise of a few functions along one direction: even ones, odd ones or all."""
    count, width = values.shape[1:]
    squares = (_times(views.bends, values) ** 2).sum(2).reshape(-1, BENDS, count)
    sums = [
        _surprise(squares[:, chosen].sum(1).max(0), len(chosen) * width)
        for chosen in ([0], [1], [0, 2], [1, 3], [0, 1, 2, 3], list(range(BENDS)))
    ]
    return np.asarray(np.max(sums, axis=0))


def _curved(views: Directions, values: Array) -> Array:
    """The largest eigenvalue of ``sum_i t_i z_i z_i'``: a square along any direction there is.

    The sum of all squared entries would drown one direction in the noise of the others. Of k axes
    noise alone gives ``2 sqrt(k)``, give or take ``k^(-1/6)`` (Tracy and Widom): so the leading
    axes and all of them are put on one scale.
    """
    count, width = values.shape[1:]
    entries = _times(views.products, values).reshape(-1, count * width).T
    first, second = np.triu_indices(views.curved)
    matrix = np.zeros((len(entries), views.curved, views.curved), dtype=np.float32)
    matrix[:, first, second] = matrix[:, second, first] = entries
    sizes = []
    for k in {min(k, views.curved) for k in (4, 8, MOST_CURVED)}:
        ends = np.linalg.eigvalsh(matrix[:, :k, :k])[:, [0, -1]]
        sizes.append((np.abs(ends).max(1) - 2 * math.sqrt(k)) * k ** (1 / 6))
    return np.asarray(np.max(sizes, axis=0).reshape(count, width).max(1))


def _places(views: Directions, cells: Array, orders: Array) -> dict[int, Array]:
    """How far the mean of z in a cell along u is from the mean of z elsewhere (Hotelling)."""
    found = {}
    shuffled = np.ascontiguousarray(cells[orders].T)
    for cell in np.unique(cells[cells >= 0]):
        share = float((cells == cell).mean())
        if share == 1:
            continue
        inside = (shuffled == cell).astype(np.float32)[..., None]
        inside /= math.sqrt(share * (1 - share))
        squares = (_times(views.axes, inside) ** 2).sum(2).cumsum(0)
        counts = {*_leading_counts(len(views.axes)), len(views.axes)}
        found[int(cell)] = np.max([_surprise(squares[k - 1], k) for k in counts], axis=0)
    return found
