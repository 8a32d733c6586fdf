"""Toy worlds with a known truth: Circle and Sine (section 5.2 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["World", "circle", "sine"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class World:
    """A data set with its truth: inputs, labels of every row, index, and which rows are source.

    ``y`` holds the labels of the target rows too, for scoring. Train on ``training_labels``,
    where they are NaN.
    """

    name: str
    x: Array
    y: Array
    u: Array
    source: Array
    scaling: tuple[Array, Array] | None = None  # the mean and deviation that x was z-scored with

    @property
    def training_labels(self) -> Array:
        """The labels with the target rows blanked out."""
        return np.where(self.source, self.y.astype(np.float64), np.nan)


def circle(
    domains: int = 30,
    points: int = 100,
    source_domains: int = 6,
    seed: int = 0,
    scaled_as: World | None = None,
) -> World:
    """Discs on a half circle: domain i is centred at ``5 (cos t, sin t)``, ``t = pi i / (n - 1)``.

    The offset from the centre is a standard normal truncated to radius 1; ``y = (|x| > 5)``, so
    the boundary turns with the index. x is z-scored over all points (or as another draw was, to
    score a model on fresh points); ``u = i / (n - 1)``.
    """
    _check(domains, points, source_domains)
    random = np.random.default_rng(seed)
    angle = np.repeat(np.arange(domains) * np.pi / (domains - 1), points)
    offset = _truncated_normal(random, len(angle), 2)
    x = 5 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + offset
    y = np.linalg.norm(x, axis=1) > 5
    return _world("circle", x, y, domains, source_domains, scaled_as)


def sine(
    domains: int = 12,
    points: int = 190,
    source_domains: int = 5,
    seed: int = 0,
    scaled_as: World | None = None,
) -> World:
    """Slices of a sine: domain i has ``x0`` uniform on ``[i pi/9, (i + 1) pi/9]``.

    ``x1 = sin(3 x0) + e`` with e a standard normal truncated to [-1, 1]; ``y = (e > 0)``. x is
    z-scored over all points (or as another draw was); ``u = i / (n - 1)``.
    """
    _check(domains, points, source_domains)
    random = np.random.default_rng(seed)
    start = np.repeat(np.arange(domains), points)
    along = (start + random.uniform(size=len(start))) * np.pi / 9
    noise = _truncated_normal(random, len(start), 1)[:, 0]
    x = np.stack([along, np.sin(3 * along) + noise], axis=1)
    return _world("sine", x, noise > 0, domains, source_domains, scaled_as)


def _world(
    name: str, x: Array, y: Array, domains: int, source_domains: int, scaled_as: World | None
) -> World:
    domain = np.repeat(np.arange(domains), len(x) // domains)
    scaling = (x.mean(axis=0), x.std(axis=0)) if scaled_as is None else scaled_as.scaling
    if scaling is None:
        raise ValueError("scaled_as is a world without a scaling; give one that a draw here made.")
    return World(
        name=name,
        x=(x - scaling[0]) / scaling[1],
        y=y.astype(np.int64),
        u=domain / (domains - 1),
        source=domain < source_domains,
        scaling=scaling,
    )


def _check(domains: int, points: int, source_domains: int) -> None:
    if domains < 2 or points < 1 or not 1 <= source_domains <= domains:
        raise ValueError(
            f"domains={domains}, points={points}, source_domains={source_domains} make no world; "
            "use at least 2 domains, 1 point each and 1 to domains source domains."
        )


def _truncated_normal(random: np.random.Generator, count: int, width: int) -> Array:
    """Standard normal rows with norm at most 1, by rejection."""
    kept = np.empty((0, width))
    while len(kept) < count:
        drawn = random.standard_normal((2 * count + 16, width))
        kept = np.concatenate([kept, drawn[np.linalg.norm(drawn, axis=1) <= 1]])
    return kept[:count]
