"""Data sets: some need no download, the others are fetched at first use."""

from cida.datasets.download import Dataset, data_home
from cida.datasets.king_county import KING_COUNTY, load_king_county
from cida.datasets.ladder import ladder
from cida.datasets.mnist import MNIST, load_mnist
from cida.datasets.nhanes import NHANES, load_nhanes
from cida.datasets.support2 import SUPPORT2, load_support2
from cida.datasets.table import RealTable
from cida.datasets.toy import World, circle, sine
from cida.datasets.worlds import (
    drifting_regression,
    hours,
    irrelevant_index,
    moons,
    noise_index,
    noisy_index,
    plane,
    shifting_labels,
)

__all__ = [
    "DOWNLOADS",
    "RealTable",
    "World",
    "circle",
    "data_home",
    "drifting_regression",
    "hours",
    "irrelevant_index",
    "ladder",
    "load_king_county",
    "load_mnist",
    "load_nhanes",
    "load_support2",
    "moons",
    "noise_index",
    "noisy_index",
    "plane",
    "shifting_labels",
    "sine",
]

DOWNLOADS: dict[str, Dataset] = {each.name: each for each in (MNIST, NHANES, KING_COUNTY, SUPPORT2)}
