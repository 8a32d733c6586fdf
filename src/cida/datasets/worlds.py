"""More worlds with a known truth, one for each way in which an index can matter, or not."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import make_moons

from cida.datasets.toy import IndexedData

__all__ = [
    "make_drifting_regression",
    "make_hours",
    "make_irrelevant_index",
    "make_noise_index",
    "make_noisy_index",
    "make_plane",
    "make_rotating_moons",
    "make_shifting_labels",
]

Array = np.ndarray[Any, Any]
DEFAULT_SAMPLES = 3000


def make_rotating_moons(n_samples: int = DEFAULT_SAMPLES, seed: int = 0) -> IndexedData:
    """Two moons that turn by u = 0 to 180 degrees around the point between them; source u <= 60.

    The mean stays where it is: only the shape turns. After 180 degrees each moon is where the other
    one was.
    """
    random = _make_rng(n_samples, seed)
    x, y = make_moons(n_samples, noise=0.1, random_state=seed)
    u = random.uniform(0, 180, n_samples)
    angle = np.deg2rad(u)
    x = x - [0.5, 0.25]
    rotated = np.stack(
        [
            np.cos(angle) * x[:, 0] - np.sin(angle) * x[:, 1],
            np.sin(angle) * x[:, 0] + np.cos(angle) * x[:, 1],
        ],
        axis=1,
    )
    return IndexedData("moons", rotated, y, u, u <= 60)


def make_drifting_regression(n_samples: int = DEFAULT_SAMPLES, seed: int = 0) -> IndexedData:
    """``y = sin(2 s0) + s1 / 2`` and noise of 0.1; x is s, carried along an arc by u.

    u runs from 0 to 10, as years might, the source up to 4; s is standard normal at every u.
    """
    random = _make_rng(n_samples, seed)
    u = random.uniform(0, 10, n_samples)
    s = random.standard_normal((n_samples, 2))
    y = np.sin(2 * s[:, 0]) + s[:, 1] / 2 + 0.1 * random.standard_normal(n_samples)
    x = s + np.stack([4 * np.sin(u / 5), 6 - 6 * np.cos(u / 5)], axis=1)
    return IndexedData("drifting regression", x, y, u, u <= 4)


def make_plane(n_samples: int = DEFAULT_SAMPLES, seed: int = 0) -> IndexedData:
    """An index (a, b) of two numbers that act together: classes drift by 4 a b and 2 (a - b).

    Either number alone tells little of where a row is. Source: a and b below 1/2; the rest of the
    unit square is target.
    """
    random = _make_rng(n_samples, seed)
    u = random.uniform(size=(n_samples, 2))
    y, x = _make_two_classes(random, n_samples, 3)
    x[:, 0] += 4 * u[:, 0] * u[:, 1]
    x[:, 1] += 2 * (u[:, 0] - u[:, 1])
    source: Array = np.all(u < 0.5, axis=1)
    return IndexedData("plane", x, y, u, source)


def make_hours(n_samples: int = DEFAULT_SAMPLES, seed: int = 0) -> IndexedData:
    """The hour of the day: classes swing once a day, and 24 is 0 again; source 9 to 17 o'clock."""
    random = _make_rng(n_samples, seed)
    u = random.uniform(0, 24, n_samples)
    y, x = _make_two_classes(random, n_samples, 3)
    angle = u * np.pi / 12
    x[:, 0] += 2 * np.cos(angle)
    x[:, 1] += 2 * np.sin(angle)
    return IndexedData("hours", x, y, u, (u >= 9) & (u <= 17))


def make_noisy_index(
    n_samples: int = DEFAULT_SAMPLES, noise: float = 0.05, seed: int = 0
) -> IndexedData:
    """Classes drift with t in [0, 1], and ``u = t + noise * normal`` is all that is known of t.

    Source: u <= 0.4.
    """
    random = _make_rng(n_samples, seed)
    t = random.uniform(size=n_samples)
    y, x = _make_two_classes(random, n_samples, 3)
    x[:, 0] += 4 * t
    x[:, 1] += np.sin(4 * t)
    u = t + noise * random.standard_normal(n_samples)
    return IndexedData("noisy index", x, y, u, u <= 0.4)


def make_irrelevant_index(n_samples: int = DEFAULT_SAMPLES, seed: int = 0) -> IndexedData:
    """u carries two columns along that say nothing of the label; source u <= 0.4."""
    random = _make_rng(n_samples, seed)
    u = random.uniform(size=n_samples)
    y, x = _make_two_classes(random, n_samples, 4)
    x[:, 2] += 3 * u
    x[:, 3] += np.sin(6 * u)
    return IndexedData("irrelevant index", x, y, u, u <= 0.4)


def make_noise_index(n_samples: int = DEFAULT_SAMPLES, seed: int = 0) -> IndexedData:
    """u is drawn on its own and has nothing to do with x or y; source u <= 0.4."""
    random = _make_rng(n_samples, seed)
    u = random.uniform(size=n_samples)
    y, x = _make_two_classes(random, n_samples, 3)
    return IndexedData("noise index", x, y, u, u <= 0.4)


def make_shifting_labels(n_samples: int = DEFAULT_SAMPLES, seed: int = 0) -> IndexedData:
    """The share of class 1 goes from 0.05 to 0.95 along u, and x given y stays as it is.

    Invariance is the wrong wish here: what tells u is the label itself. Source u <= 0.5.
    """
    random = _make_rng(n_samples, seed)
    u = random.uniform(size=n_samples)
    y = (random.uniform(size=n_samples) < 0.05 + 0.9 * u).astype(np.int64)
    x = _sample_around_class(random, y, 3)
    return IndexedData("shifting labels", x, y, u, u <= 0.5)


def _make_rng(n_samples: int, seed: int) -> np.random.Generator:
    if n_samples < 10:
        raise ValueError(f"rows is {n_samples}; a world needs at least 10.")
    return np.random.default_rng(seed)


def _make_two_classes(
    random: np.random.Generator, n_samples: int, n_features: int
) -> tuple[Array, Array]:
    y = random.integers(0, 2, n_samples)
    return y, _sample_around_class(random, y, n_features)


def _sample_around_class(random: np.random.Generator, y: Array, n_features: int) -> Array:
    """Normal clouds, two deviations either side of the middle along the first column."""
    x = random.standard_normal((len(y), n_features))
    x[:, 0] = 0.5 * x[:, 0] + np.where(y == 1, 1.0, -1.0)
    return x
