"""Files from elsewhere: fetched once, verified by checksum, then kept in a cache folder."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import time
import uuid
import warnings
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from threading import Thread
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from cida.errors import CommandError
from cida.io.files import write_atomically
from cida.version import __version__

__all__ = [
    "DownloadError",
    "DownloadSource",
    "FileContents",
    "RemoteDataset",
    "RemoteFile",
    "data_home",
    "download_file",
]

RESPONSE_TIMEOUT_SECONDS = 10.0
STALE_PART_SECONDS = 60.0  # a part without a write for so long is of a process that was killed
MAX_DOWNLOAD_ATTEMPTS = 3
FileContents = Generator[tuple["RemoteFile", bytes], None, None]
DownloadProgress = Callable[[int, int | None], None]  # called with the bytes done and of how many


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


class DownloadSource(Protocol):
    """Gives some or all of the files; fails with an OSError, ValueError or HTTPException."""

    @property
    def name(self) -> str: ...

    def fetch(
        self, files: Sequence[RemoteFile], folder: Path, progress: DownloadProgress
    ) -> FileContents: ...


@dataclass(frozen=True)
class RemoteDataset:
    """Files in a folder of the cache, the sources they come from, and what to do without them."""

    name: str
    files: tuple[RemoteFile, ...]
    sources: tuple[DownloadSource, ...]
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
        self,
        progress: DownloadProgress = lambda *_: None,
        on_warning: Callable[[str], None] = warnings.warn,
    ) -> dict[str, str]:
        """Gets the files that are not there or damaged; returns which source each came from."""
        faults = self.find_faults()
        for fault in filter(None, faults.values()):
            on_warning(f"{fault}; it is fetched again.")
        missing = [item for item in self.files if item.name in faults]
        origin: dict[str, str] = {}
        failures = []
        for source in self.sources:
            if not missing:
                break
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                with closing(source.fetch(tuple(missing), self.folder, progress)) as contents:
                    for item, content in contents:
                        item.check(content)
                        write_atomically(self.folder / item.name, content)
                        missing.remove(item)
                        origin[item.name] = source.name
            except (OSError, ValueError, HTTPException) as error:
                failures.append(f"{source.name}: {_error_reason(error)}")
        if missing:
            raise DownloadError(
                f"{self.name} could not be fetched ({'; '.join(failures) or 'nothing to try'}): "
                f"put {', '.join(item.name for item in missing)}, unpacked, into {self.folder} "
                f"yourself"
                f"{self.fallback_hint}."
            )
        for part in self.folder.glob(".*.part") if origin else ():
            part.unlink(missing_ok=True)  # of a source that broke off before another one delivered
        return origin


def _error_reason(error: Exception) -> str:
    """The error in a few words."""
    inner = error.reason if isinstance(error, URLError) else error
    message = getattr(inner, "strerror", None) or str(inner) or type(inner).__name__
    return " ".join(message.split()).rstrip(".")[:160]


def download_file(url: str, item: RemoteFile, folder: Path, progress: DownloadProgress) -> bytes:
    """The content of a gzipped file in the web; a part that was fetched before is gone on with."""
    host = urlsplit(url).netloc.replace(":", "-")
    with _claim_part_file(folder / f".{item.name}.gz.{host}.part") as part:
        return _download_verified(url, item, part, progress)


@contextmanager
def _claim_part_file(part: Path) -> Iterator[Path]:
    """A name of our own for the part: renaming takes it, which only one process can do."""
    own_part = part.with_name(f"{part.name}.{uuid.uuid4().hex}")
    for other in (part, *part.parent.glob(f"{part.name}.*")):
        with suppress(OSError):  # not there, or another process was faster
            if other == part or time.time() - other.stat().st_mtime > STALE_PART_SECONDS:
                other.rename(own_part)
                os.utime(own_part)
                break
    try:
        yield own_part
    finally:
        with suppress(FileNotFoundError):
            own_part.replace(part)  # unfinished: the next may go on with it


def _download_verified(url: str, item: RemoteFile, part: Path, progress: DownloadProgress) -> bytes:
    """The unpacked content; the part stays only where it can be gone on with."""
    resumed = part.exists()
    try:
        if not any(_receive(url, item, part, progress) for _ in range(MAX_DOWNLOAD_ATTEMPTS)):
            raise ConnectionError(f"the connection broke off {MAX_DOWNLOAD_ATTEMPTS} times")
        content = gunzip(part.read_bytes(), item.size)
        item.check(content)
    except ValueError:
        part.unlink(missing_ok=True)
        if not resumed:
            raise
        return _download_verified(
            url, item, part, progress
        )  # the fault may be in the earlier bytes
    part.unlink()
    return content


def _receive(url: str, item: RemoteFile, part: Path, progress: DownloadProgress) -> bool:
    """Adds the missing bytes to the part; False if some are still missing."""
    n_received = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": f"cida/{__version__}"} | (
        {"Range": f"bytes={n_received}-"} if n_received else {}
    )
    try:
        response = _open_url(Request(url, headers=headers))
    except HTTPError as error:
        error.close()
        if error.code != 416 or not n_received:
            raise
        part.unlink()  # nothing comes after its end, and yet it was not whole: from the start
        return False
    with response:
        if not response.headers.get("Content-Range", "").startswith(f"bytes {n_received}-"):
            n_received = 0  # the server does not know ranges and sends the file from its start
        total = None if response.length is None else n_received + response.length
        with part.open("ab" if n_received else "wb") as file:
            for chunk in _iter_chunks(response):
                n_received += len(chunk)
                if n_received > item.size + 1024:  # packed it is shorter, or hardly longer
                    raise ValueError(f"{url} is longer than its content may be")
                file.write(chunk)
                progress(n_received, total)
    return total is None or n_received == total


def _iter_chunks(response: Any) -> Iterator[bytes]:
    """The body, as far as it comes."""
    with suppress(OSError, HTTPException):
        while chunk := response.read(1 << 16):
            yield chunk


class _HttpsRedirectHandler(HTTPRedirectHandler):
    def redirect_request(self, *request: Any) -> Request | None:
        if urlsplit(request[-1]).scheme != "https":
            raise URLError(f"redirected to {request[-1]}, which is not https")
        return super().redirect_request(*request)


def _open_url(request: Request) -> Any:
    """The answer, in bounded time: a name or a host with many addresses could take minutes."""
    address = urlsplit(request.full_url)
    loopback = address.hostname in ("127.0.0.1", "localhost")
    if address.scheme != "https" and not (address.scheme == "http" and loopback):
        raise URLError(f"{request.full_url} is not https")
    future: Future[Any] = Future()

    def open_in_thread() -> None:
        try:
            future.set_result(
                build_opener(_HttpsRedirectHandler).open(request, timeout=RESPONSE_TIMEOUT_SECONDS)
            )
        except BaseException as error:
            future.set_exception(error)

    Thread(target=open_in_thread, daemon=True).start()
    try:
        return future.result(RESPONSE_TIMEOUT_SECONDS)
    except TimeoutError:
        raise TimeoutError(f"no answer within {RESPONSE_TIMEOUT_SECONDS:.0f} s") from None


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
