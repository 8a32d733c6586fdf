"""More worlds with a known truth, one for each way in which an index can matter, or not."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import make_moons

from cida.datasets.toy import World

__all__ = [
    "drifting_regression",
    "hours",
    "irrelevant_index",
    "moons",
    "noise_index",
    "noisy_index",
    "plane",
    "shifting_labels",
]

Array = np.ndarray[Any, Any]
ROWS = 3000


def moons(rows: int = ROWS, seed: int = 0) -> World:
    """Two moons that turn by u = 0 to 180 degrees around the point between them; source u <= 60.

    The mean stays where it is: only the shape turns. After 180 degrees each moon is where the other
    one was.
    """
    random = _random(rows, seed)
    x, y = make_moons(rows, noise=0.1, random_state=seed)
    u = random.uniform(0, 180, rows)
    angle = np.deg2rad(u)
    x = x - [0.5, 0.25]
    turned = np.stack(
        [
            np.cos(angle) * x[:, 0] - np.sin(angle) * x[:, 1],
            np.sin(angle) * x[:, 0] + np.cos(angle) * x[:, 1],
        ],
        axis=1,
    )
    return World("moons", turned, y, u, u <= 60)


def drifting_regression(rows: int = ROWS, seed: int = 0) -> World:
    """``y = sin(2 s0) + s1 / 2`` and noise of 0.1; x is s, carried along an arc by u.

    u runs from 0 to 10, as years might, the source up to 4; s is standard normal at every u.
    """
    random = _random(rows, seed)
    u = random.uniform(0, 10, rows)
    s = random.standard_normal((rows, 2))
    y = np.sin(2 * s[:, 0]) + s[:, 1] / 2 + 0.1 * random.standard_normal(rows)
    x = s + np.stack([4 * np.sin(u / 5), 6 - 6 * np.cos(u / 5)], axis=1)
    return World("drifting regression", x, y, u, u <= 4)


def plane(rows: int = ROWS, seed: int = 0) -> World:
    """An index (a, b) of two numbers that act together: classes drift by 4 a b and 2 (a - b).

    Either number alone tells little of where a row is. Source: a and b below 1/2; the rest of the
    unit square is target.
    """
    random = _random(rows, seed)
    u = random.uniform(size=(rows, 2))
    y, x = _two_classes(random, rows, 3)
    x[:, 0] += 4 * u[:, 0] * u[:, 1]
    x[:, 1] += 2 * (u[:, 0] - u[:, 1])
    source: Array = np.all(u < 0.5, axis=1)
    return World("plane", x, y, u, source)


def hours(rows: int = ROWS, seed: int = 0) -> World:
    """The hour of the day: classes swing once a day, and 24 is 0 again; source 9 to 17 o'clock."""
    random = _random(rows, seed)
    u = random.uniform(0, 24, rows)
    y, x = _two_classes(random, rows, 3)
    angle = u * np.pi / 12
    x[:, 0] += 2 * np.cos(angle)
    x[:, 1] += 2 * np.sin(angle)
    return World("hours", x, y, u, (u >= 9) & (u <= 17))


def noisy_index(rows: int = ROWS, noise: float = 0.05, seed: int = 0) -> World:
    """Classes drift with t in [0, 1], and ``u = t + noise * normal`` is all that is known of t.

    Source: u <= 0.4.
    """
    random = _random(rows, seed)
    t = random.uniform(size=rows)
    y, x = _two_classes(random, rows, 3)
    x[:, 0] += 4 * t
    x[:, 1] += np.sin(4 * t)
    u = t + noise * random.standard_normal(rows)
    return World("noisy index", x, y, u, u <= 0.4)


def irrelevant_index(rows: int = ROWS, seed: int = 0) -> World:
    """u carries two columns along that say nothing of the label; source u <= 0.4."""
    random = _random(rows, seed)
    u = random.uniform(size=rows)
    y, x = _two_classes(random, rows, 4)
    x[:, 2] += 3 * u
    x[:, 3] += np.sin(6 * u)
    return World("irrelevant index", x, y, u, u <= 0.4)


def noise_index(rows: int = ROWS, seed: int = 0) -> World:
    """u is drawn on its own and has nothing to do with x or y; source u <= 0.4."""
    random = _random(rows, seed)
    u = random.uniform(size=rows)
    y, x = _two_classes(random, rows, 3)
    return World("noise index", x, y, u, u <= 0.4)


def shifting_labels(rows: int = ROWS, seed: int = 0) -> World:
    """The share of class 1 goes from 0.05 to 0.95 along u, and x given y stays as it is.

    Invariance is the wrong wish here: what tells u is the label itself. Source u <= 0.5.
    """
    random = _random(rows, seed)
    u = random.uniform(size=rows)
    y = (random.uniform(size=rows) < 0.05 + 0.9 * u).astype(np.int64)
    x = _around(random, y, 3)
    return World("shifting labels", x, y, u, u <= 0.5)


def _random(rows: int, seed: int) -> np.random.Generator:
    if rows < 10:
        raise ValueError(f"rows is {rows}; a world needs at least 10.")
    return np.random.default_rng(seed)


def _two_classes(random: np.random.Generator, rows: int, columns: int) -> tuple[Array, Array]:
    y = random.integers(0, 2, rows)
    return y, _around(random, y, columns)


def _around(random: np.random.Generator, y: Array, columns: int) -> Array:
    """Normal clouds, two deviations either side of the middle along the first column."""
    x = random.standard_normal((len(y), columns))
    x[:, 0] = 0.5 * x[:, 0] + np.where(y == 1, 1.0, -1.0)
    return x
