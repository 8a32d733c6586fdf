"""Synthetic data: Circle and Sine, and one data set for each way in which an index can matter."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_moons

from cida.array_types import Array
from cida.datasets.base import IndexedData

__all__ = [
    "make_circle",
    "make_drifting_regression",
    "make_hours",
    "make_irrelevant_index",
    "make_noise_index",
    "make_noisy_index",
    "make_plane",
    "make_rotating_moons",
    "make_shifting_labels",
    "make_sine",
]

DEFAULT_SAMPLES = 3000


def make_circle(
    n_domains: int = 30,
    n_per_domain: int = 100,
    n_source_domains: int = 6,
    seed: int = 0,
    scaling_from: IndexedData | None = None,
) -> IndexedData:
    """Discs on a half circle: domain i is centred at ``5 (cos t, sin t)``, ``t = pi i / (n - 1)``.

    The offset from the centre is a standard normal truncated to radius 1, and ``y = (|x| > 5)``, so
    that the boundary turns with the index ``u = i / (n - 1)``. x is standardized over all rows.

    Parameters
    ----------
    n_domains : int, default 30
        Number of domains n.
    n_per_domain : int, default 100
        Rows of each domain.
    n_source_domains : int, default 6
        How many of the first domains are source.
    seed : int, default 0
        Seed of the random numbers.
    scaling_from : IndexedData, optional
        Another draw, whose scaling is used: to score a model on new rows.

    Returns
    -------
    IndexedData
        The data set.
    """
    _check_sizes(n_domains, n_per_domain, n_source_domains)
    rng = np.random.default_rng(seed)
    angle = np.repeat(np.arange(n_domains) * np.pi / (n_domains - 1), n_per_domain)
    offset = _truncated_normal(rng, len(angle), 2)
    x = 5 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + offset
    y = np.linalg.norm(x, axis=1) > 5
    return _make_indexed_data("circle", x, y, n_domains, n_source_domains, scaling_from)


def make_sine(
    n_domains: int = 12,
    n_per_domain: int = 190,
    n_source_domains: int = 5,
    seed: int = 0,
    scaling_from: IndexedData | None = None,
) -> IndexedData:
    """Slices of a sine: domain i has ``x0`` uniform on ``[i pi/9, (i + 1) pi/9]``.

    ``x1 = sin(3 x0) + e`` with e a standard normal truncated to [-1, 1], ``y = (e > 0)`` and ``u =
    i / (n - 1)``. x is standardized over all rows.

    Parameters
    ----------
    n_domains : int, default 12
        Number of domains n.
    n_per_domain : int, default 190
        Rows of each domain.
    n_source_domains : int, default 5
        How many of the first domains are source.
    seed : int, default 0
        Seed of the random numbers.
    scaling_from : IndexedData, optional
        Another draw, whose scaling is used: to score a model on new rows.

    Returns
    -------
    IndexedData
        The data set.
    """
    _check_sizes(n_domains, n_per_domain, n_source_domains)
    rng = np.random.default_rng(seed)
    start = np.repeat(np.arange(n_domains), n_per_domain)
    position = (start + rng.uniform(size=len(start))) * np.pi / 9
    noise = _truncated_normal(rng, len(start), 1)[:, 0]
    x = np.stack([position, np.sin(3 * position) + noise], axis=1)
    return _make_indexed_data("sine", x, noise > 0, n_domains, n_source_domains, scaling_from)


def _make_indexed_data(
    name: str,
    x: Array,
    y: Array,
    n_domains: int,
    n_source_domains: int,
    scaling_from: IndexedData | None,
) -> IndexedData:
    domain = np.repeat(np.arange(n_domains), len(x) // n_domains)
    scaling = (x.mean(axis=0), x.std(axis=0)) if scaling_from is None else scaling_from.scaling
    if scaling is None:
        raise ValueError(
            "scaling_from has no scaling; give data that make_circle or make_sine returned."
        )
    return IndexedData(
        name=name,
        x=(x - scaling[0]) / scaling[1],
        y=y.astype(np.int64),
        u=domain / (n_domains - 1),
        source=domain < n_source_domains,
        scaling=scaling,
    )


def _check_sizes(n_domains: int, n_per_domain: int, n_source_domains: int) -> None:
    if n_domains < 2 or n_per_domain < 1 or not 1 <= n_source_domains <= n_domains:
        raise ValueError(
            f"n_domains={n_domains}, n_per_domain={n_per_domain} and "
            f"n_source_domains={n_source_domains} make no data; use at least 2 domains, 1 point "
            "in each, and from 1 to n_domains source domains."
        )


def _truncated_normal(rng: np.random.Generator, n_samples: int, width: int) -> Array:
    """Standard normal rows with norm at most 1, by rejection."""
    accepted_rows = np.empty((0, width))
    while len(accepted_rows) < n_samples:
        proposals = rng.standard_normal((2 * n_samples + 16, width))
        accepted_rows = np.concatenate(
            [accepted_rows, proposals[np.linalg.norm(proposals, axis=1) <= 1]]
        )
    return accepted_rows[:n_samples]


def make_rotating_moons(n_samples: int = DEFAULT_SAMPLES, seed: int = 0) -> IndexedData:
    """Two moons that turn by u = 0 to 180 degrees around the point between them.

    The mean does not move: only the shape turns. After 180 degrees each moon is where the other one
    was. Source: u <= 60.

    Parameters
    ----------
    n_samples : int, default 3000
        Number of rows.
    seed : int, default 0
        Seed of the random numbers.

    Returns
    -------
    IndexedData
        The data set.
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
    """``y = sin(2 s0) + s1 / 2`` with noise of 0.1; x is s, moved along an arc by u.

    u runs from 0 to 10, as years might; s is standard normal at every u. Source: u <= 4.

    Parameters
    ----------
    n_samples : int, default 3000
        Number of rows.
    seed : int, default 0
        Seed of the random numbers.

    Returns
    -------
    IndexedData
        The data set; y are numbers.
    """
    random = _make_rng(n_samples, seed)
    u = random.uniform(0, 10, n_samples)
    s = random.standard_normal((n_samples, 2))
    y = np.sin(2 * s[:, 0]) + s[:, 1] / 2 + 0.1 * random.standard_normal(n_samples)
    x = s + np.stack([4 * np.sin(u / 5), 6 - 6 * np.cos(u / 5)], axis=1)
    return IndexedData("drifting regression", x, y, u, u <= 4)


def make_plane(n_samples: int = DEFAULT_SAMPLES, seed: int = 0) -> IndexedData:
    """An index (a, b) of two numbers that act together: classes drift by 4 a b and 2 (a - b).

    Either number alone tells little about where a row is. Source: a and b below 1/2; the rest of
    the unit square is target.

    Parameters
    ----------
    n_samples : int, default 3000
        Number of rows.
    seed : int, default 0
        Seed of the random numbers.

    Returns
    -------
    IndexedData
        The data set; u has two columns.
    """
    random = _make_rng(n_samples, seed)
    u = random.uniform(size=(n_samples, 2))
    y, x = _make_two_classes(random, n_samples, 3)
    x[:, 0] += 4 * u[:, 0] * u[:, 1]
    x[:, 1] += 2 * (u[:, 0] - u[:, 1])
    source: Array = np.all(u < 0.5, axis=1)
    return IndexedData("plane", x, y, u, source)


def make_hours(n_samples: int = DEFAULT_SAMPLES, seed: int = 0) -> IndexedData:
    """The hour of the day: classes swing once a day, and 24 is 0 again.

    Source: 9 to 17 o'clock.

    Parameters
    ----------
    n_samples : int, default 3000
        Number of rows.
    seed : int, default 0
        Seed of the random numbers.

    Returns
    -------
    IndexedData
        The data set; u has a period of 24.
    """
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
    """Classes drift with t in [0, 1], and only ``u = t + noise * normal`` is known of t.

    Source: u <= 0.4.

    Parameters
    ----------
    n_samples : int, default 3000
        Number of rows.
    noise : float, default 0.05
        Standard deviation of the error of u.
    seed : int, default 0
        Seed of the random numbers.

    Returns
    -------
    IndexedData
        The data set.
    """
    random = _make_rng(n_samples, seed)
    t = random.uniform(size=n_samples)
    y, x = _make_two_classes(random, n_samples, 3)
    x[:, 0] += 4 * t
    x[:, 1] += np.sin(4 * t)
    u = t + noise * random.standard_normal(n_samples)
    return IndexedData("noisy index", x, y, u, u <= 0.4)


def make_irrelevant_index(n_samples: int = DEFAULT_SAMPLES, seed: int = 0) -> IndexedData:
    """The index moves two columns that carry no information about the label.

    Source: u <= 0.4.

    Parameters
    ----------
    n_samples : int, default 3000
        Number of rows.
    seed : int, default 0
        Seed of the random numbers.

    Returns
    -------
    IndexedData
        The data set.
    """
    random = _make_rng(n_samples, seed)
    u = random.uniform(size=n_samples)
    y, x = _make_two_classes(random, n_samples, 4)
    x[:, 2] += 3 * u
    x[:, 3] += np.sin(6 * u)
    return IndexedData("irrelevant index", x, y, u, u <= 0.4)


def make_noise_index(n_samples: int = DEFAULT_SAMPLES, seed: int = 0) -> IndexedData:
    """The index is independent of x and y.

    Source: u <= 0.4.

    Parameters
    ----------
    n_samples : int, default 3000
        Number of rows.
    seed : int, default 0
        Seed of the random numbers.

    Returns
    -------
    IndexedData
        The data set.
    """
    random = _make_rng(n_samples, seed)
    u = random.uniform(size=n_samples)
    y, x = _make_two_classes(random, n_samples, 3)
    return IndexedData("noise index", x, y, u, u <= 0.4)


def make_shifting_labels(n_samples: int = DEFAULT_SAMPLES, seed: int = 0) -> IndexedData:
    """The share of class 1 grows from 0.05 to 0.95 along u, while p(x|y) stays the same.

    Invariance is the wrong aim here: it is the label itself that depends on u. Source: u <= 0.5.

    Parameters
    ----------
    n_samples : int, default 3000
        Number of rows.
    seed : int, default 0
        Seed of the random numbers.

    Returns
    -------
    IndexedData
        The data set.
    """
    random = _make_rng(n_samples, seed)
    u = random.uniform(size=n_samples)
    y = (random.uniform(size=n_samples) < 0.05 + 0.9 * u).astype(np.int64)
    x = _sample_around_class(random, y, 3)
    return IndexedData("shifting labels", x, y, u, u <= 0.5)


def _make_rng(n_samples: int, seed: int) -> np.random.Generator:
    if n_samples < 10:
        raise ValueError(f"n_samples is {n_samples}; use at least 10.")
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
