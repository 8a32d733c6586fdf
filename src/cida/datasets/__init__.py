"""Data sets: some need no download, the others are fetched at first use."""

from cida.datasets.download import RemoteDataset, data_home
from cida.datasets.king_county import KING_COUNTY_DATASET, fetch_king_county
from cida.datasets.ladder import make_ladder
from cida.datasets.mnist import MNIST_DATASET, fetch_mnist
from cida.datasets.nhanes import NHANES_DATASET, fetch_nhanes
from cida.datasets.support2 import SUPPORT2_DATASET, fetch_support2
from cida.datasets.table import IndexedTable
from cida.datasets.toy import IndexedData, make_circle, make_sine
from cida.datasets.worlds import (
    make_drifting_regression,
    make_hours,
    make_irrelevant_index,
    make_noise_index,
    make_noisy_index,
    make_plane,
    make_rotating_moons,
    make_shifting_labels,
)

__all__ = [
    "DATASET_BY_NAME",
    "IndexedData",
    "IndexedTable",
    "data_home",
    "fetch_king_county",
    "fetch_mnist",
    "fetch_nhanes",
    "fetch_support2",
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

DATASET_BY_NAME: dict[str, RemoteDataset] = {
    each.name: each
    for each in (MNIST_DATASET, NHANES_DATASET, KING_COUNTY_DATASET, SUPPORT2_DATASET)
}
