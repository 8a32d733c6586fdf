"""Synthetic data sets with a domain index and a known truth."""

from cida.datasets.base import IndexedData
from cida.datasets.ladder import make_ladder
from cida.datasets.synthetic import (
    make_circle,
    make_drifting_regression,
    make_hours,
    make_irrelevant_index,
    make_noise_index,
    make_noisy_index,
    make_plane,
    make_rotating_moons,
    make_shifting_labels,
    make_sine,
)

__all__ = [
    "IndexedData",
    "make_circle",
    "make_drifting_regression",
    "make_hours",
    "make_irrelevant_index",
    "make_ladder",
    "make_noise_index",
    "make_noisy_index",
    "make_plane",
    "make_rotating_moons",
    "make_shifting_labels",
    "make_sine",
]
