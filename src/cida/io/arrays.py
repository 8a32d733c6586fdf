"""Arrays in files that anybody may have written: no pickle, no more memory than the file has."""

from __future__ import annotations

import mmap
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from cida.errors import error_summary

__all__ = ["advise_random_access", "map_array", "read_arrays"]

Array = np.ndarray[Any, Any]

MAX_UNPACKED_BYTES, MAX_COMPRESSION_RATIO = (
    1 << 30,
    300,
)  # bytes, from which on so many times the packed are a bomb


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """Those of these arrays that an npz file has; whatever is wrong with it is a ValueError."""
    with _raise_value_errors(), path.open("rb") as file, zipfile.ZipFile(file) as archive:
        member_names = archive.namelist()
        return {
            name: _read_member(archive, f"{name}.npy")
            for name in names
            if f"{name}.npy" in member_names
        }


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


def _read_member(archive: zipfile.ZipFile, member: str) -> Array:
    info = archive.getinfo(member)
    if info.file_size > max(MAX_UNPACKED_BYTES, MAX_COMPRESSION_RATIO * info.compress_size):
        raise ValueError(
            f"{member} unpacks to {info.file_size / max(1, info.compress_size):.0f} times its size"
        )
    with archive.open(member) as file:
        shape, is_fortran, dtype = _read_header(file)
        if dtype.hasobject:
            raise ValueError(f"{member} holds Python objects, which would need pickle")
        count = int(np.prod([int(n) for n in shape], dtype=object)) if shape else 1
        size = count * dtype.itemsize
        if min(shape, default=0) < 0 or size > info.file_size:
            raise ValueError(f"{member} is shorter than its shape {shape} of {dtype} needs")
        content = file.read(size)
    if len(content) != size:
        raise ValueError(f"{member} is cut short")
    if not dtype.itemsize:
        raise ValueError(f"{member} holds nothing, {dtype}")
    flat = np.frombuffer(bytearray(content), dtype, count)
    return flat.reshape(shape, order="F" if is_fortran else "C")


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    reader = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if reader is None:
        raise ValueError(f"npy version {version} is not read")
    return reader(file)


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
