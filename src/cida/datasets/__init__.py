"""Data sets: some need no download, the others are fetched at first use."""

from cida.datasets.download import Dataset, data_home
from cida.datasets.mnist import MNIST, load_mnist
from cida.datasets.toy import World, circle, sine

__all__ = ["DOWNLOADS", "World", "circle", "data_home", "load_mnist", "sine"]

DOWNLOADS: dict[str, Dataset] = {MNIST.name: MNIST}
