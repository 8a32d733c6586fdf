"""Toy worlds with a known truth: Circle and Sine (section 5.2 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["IndexedData", "make_circle", "make_sine"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class IndexedData:
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


def make_circle(
    n_domains: int = 30,
    n_per_domain: int = 100,
    n_source_domains: int = 6,
    seed: int = 0,
    scaling_from: IndexedData | None = None,
) -> IndexedData:
    """Discs on a half circle: domain i is centred at ``5 (cos t, sin t)``, ``t = pi i / (n - 1)``.

    The offset from the centre is a standard normal truncated to radius 1; ``y = (|x| > 5)``, so
    the boundary turns with the index. x is z-scored over all points (or as another draw was, to
    score a model on fresh points); ``u = i / (n - 1)``.
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

    ``x1 = sin(3 x0) + e`` with e a standard normal truncated to [-1, 1]; ``y = (e > 0)``. x is
    z-scored over all points (or as another draw was); ``u = i / (n - 1)``.
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
        raise ValueError("scaled_as is a world without a scaling; give one that a draw here made.")
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
            f"domains={n_domains}, points={n_per_domain}, source_domains={n_source_domains} "
            "make no world; "
            "use at least 2 domains, 1 point each and 1 to domains source domains."
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
