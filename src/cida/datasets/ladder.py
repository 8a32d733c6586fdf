"""The moment ladder: data sets whose shortcut shows in one moment of p(u|z) only."""

from __future__ import annotations

import numpy as np

from cida.array_types import Array
from cida.datasets.base import IndexedData
from cida.errors import did_you_mean

__all__ = [
    "SHORTCUT_NOISE",
    "SOURCE_EDGE",
    "SWITCH_POINTS_BY_MOMENT",
    "index_quantile",
    "make_ladder",
    "shortcut_side",
]


# Where |u| passes from one side to the other, given that u has the density 3/4 (1 - u^2) and that
# the source, |u| below SOURCE_EDGE, holds four tenths of the rows. Each solves its moment equations
# (the tests check them): nothing below the rung's own moment tells the sides apart.
SOURCE_EDGE = 0.2734850178188648
SWITCH_POINTS_BY_MOMENT: dict[str, tuple[float, ...]] = {
    "mean": (),
    "variance": (0.5111952910981554,),
    "skewness": (0.5880311235607217,),
    "whole": (0.3243095066609761, 0.5, 0.7562042801928476),
}
ODD_MOMENTS = ("mean", "skewness")
SWITCH_NOISE = (
    0.25  # of the two switches; the shortcut has more, so that no gap parts its two values
)
SHORTCUT_NOISE = 0.5


def shortcut_side(u: Array, moment: str) -> Array:
    """+1 or -1 outside the source, 0 inside: on which side of the moment u is.

    ``E[u^j side(u)] = 0`` for j below the moment's order, and for j = 3 too in the last data set.
    """
    distance = np.abs(u)
    n_crossed = np.searchsorted(SWITCH_POINTS_BY_MOMENT[moment], distance)
    sign = np.where(n_crossed % 2 == len(SWITCH_POINTS_BY_MOMENT[moment]) % 2, 1, -1)
    sign = sign * np.where(u < 0, -1, 1) if moment in ODD_MOMENTS else sign
    return np.where(distance > SOURCE_EDGE, sign, 0)


def make_ladder(moment: str = "mean", n_samples: int = 4000, seed: int = 0) -> IndexedData:
    """Three switches, each +-1 with a little noise: ``y = x1 x2`` everywhere, and x0 a shortcut.

    In the source (the middle of the range) x0 repeats the label; in the target it is ``side(u)``
    and carries no information about it. The shortcut is learned first, and an encoding that keeps
    it looks aligned to every head that does not see the moment. An encoding of the product is
    independent of u and right everywhere.

    Parameters
    ----------
    moment : {"mean", "variance", "skewness", "whole"}, default "mean"
        The lowest moment of p(u|z) in which the shortcut shows; "whole" shows in none of the first
        three.
    n_samples : int, default 4000
        Number of rows.
    seed : int, default 0
        Seed of the random numbers.

    Returns
    -------
    IndexedData
        The data set.

    Raises
    ------
    ValueError
        If the moment is unknown or there are fewer than 10 rows.
    """
    if moment not in SWITCH_POINTS_BY_MOMENT:
        hint = did_you_mean(moment, SWITCH_POINTS_BY_MOMENT)
        raise ValueError(
            f"rung is {moment!r}; {hint}known are {', '.join(SWITCH_POINTS_BY_MOMENT)}."
        )
    if n_samples < 10:
        raise ValueError(f"rows is {n_samples}; a ladder needs at least 10.")
    rng = np.random.default_rng(seed)
    # One row in each of as many even shares: moments that are equal by design are so in the sample.
    u = index_quantile((np.arange(n_samples) + rng.uniform(size=n_samples)) / n_samples)
    switches = rng.choice([-1, 1], size=(n_samples, 2))
    label = switches.prod(axis=1)
    shortcut = np.where(shortcut_side(u, moment) == 0, label, shortcut_side(u, moment))
    noise = np.array([SHORTCUT_NOISE, SWITCH_NOISE, SWITCH_NOISE]) * rng.standard_normal(
        (n_samples, 3)
    )
    x = np.column_stack([shortcut, switches]) + noise
    return IndexedData(
        name=f"ladder of the {moment}",
        x=x,
        y=(label > 0).astype(np.int64),
        u=u,
        source=np.abs(u) <= SOURCE_EDGE,
    )


def index_quantile(share: Array) -> Array:
    """The inverse of ``1/2 + 3/4 u - 1/4 u^3``, the share of rows below u."""
    u: Array = 2 * np.cos((np.arccos(1 - 2 * share) + 4 * np.pi) / 3)
    return u
