"""Arrays in files that anybody may have written: no pickle, no more memory than the file has."""

from __future__ import annotations

import mmap
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np

from cida.array_types import Array
from cida.errors import error_summary

__all__ = ["advise_random_access", "map_array", "read_arrays"]


MAX_UNPACKED_BYTES = 1 << 30  # an array that is larger must not be packed too well:
MAX_COMPRESSION_RATIO = 300  # above it, the file was made to fill the memory


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """Those of these arrays that an npz file has; whatever is wrong with it is a ValueError."""
    with _raise_value_errors(), zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            size, packed_size = member.file_size, max(1, member.compress_size)
            if size > max(MAX_UNPACKED_BYTES, MAX_COMPRESSION_RATIO * packed_size):
                ratio = size / packed_size
                raise ValueError(f"{member.filename} unpacks to {ratio:.0f} times its size")
        with np.load(path, allow_pickle=False) as members:
            arrays = {name: members[name] for name in names if name in members}
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):  # numpy gives other files as bytes
            raise ValueError(f"{name} is no array")
    return arrays


def map_array(path: Path, mode: Literal["r", "c"] = "r") -> Array:
    """The array of an npy file, read as it is used; with "c" it may be changed in memory."""
    with _raise_value_errors():
        return np.lib.format.open_memmap(path, mode=mode)


def advise_random_access(array: Array) -> Array:
    """The array; where it is mapped, the system learns that its rows are read in no order.

    Otherwise it reads 128 KB around each row of a file that is larger than its memory.
    """
    mapped = getattr(array, "_mmap", None)
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_RANDOM"):
        mapped.madvise(mmap.MADV_RANDOM)
    return array


@contextmanager
def _raise_value_errors() -> Iterator[None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy's, of headers that it reads leniently
            yield
    except FileNotFoundError:
        raise
    except Exception as error:  # whatever broken bytes make of zipfile, zlib and numpy
        raise ValueError(error_summary(error)) from None
