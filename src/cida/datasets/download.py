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

from cida.files import write_atomically
from cida.version import __version__
from cida.words import JobError

__all__ = ["Content", "Dataset", "DownloadError", "Source", "Wanted", "data_home", "download"]

SECONDS_TO_ANSWER = 10.0
STALE_SECONDS = 60.0  # a part without a write for so long is of a process that was killed
ATTEMPTS = 3
Content = Generator[tuple["Wanted", bytes], None, None]
Progress = Callable[[int, int | None], None]  # called with the bytes done and of how many


class DownloadError(JobError, OSError):
    """No source gave the files; the message says what was tried and what to do."""


def data_home() -> Path:
    """The cache folder: $CIDA_DATA_HOME, else ``cida`` in the user's cache folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "cida")
    return Path(os.environ.get("CIDA_DATA_HOME") or cache).expanduser().absolute()


@dataclass(frozen=True)
class Wanted:
    """A file by its name, its exact size and its checksum."""

    name: str
    size: int
    md5: str

    def check(self, content: bytes) -> None:
        """Refuses any other content."""
        if hashlib.md5(content, usedforsecurity=False).hexdigest() != self.md5:
            sizes = f"{len(content)} of {self.size} bytes"
            raise ValueError(f"{self.name} ({sizes}) has a wrong checksum")


class Source(Protocol):
    """Gives some or all of the files; fails with an OSError, ValueError or HTTPException."""

    @property
    def name(self) -> str: ...

    def fetch(self, wanted: Sequence[Wanted], folder: Path, progress: Progress) -> Content: ...


@dataclass(frozen=True)
class Dataset:
    """Files in a folder of the cache, the sources they come from, and what to do without them."""

    name: str
    files: tuple[Wanted, ...]
    sources: tuple[Source, ...]
    otherwise: str = ""

    @property
    def folder(self) -> Path:
        """Where the files are kept."""
        return data_home() / self.name

    def faults(self) -> dict[str, str | None]:
        """The files that are not there (None), or are damaged and how."""
        found: dict[str, str | None] = {}
        for item in self.files:
            try:
                item.check((self.folder / item.name).read_bytes())
            except FileNotFoundError:
                found[item.name] = None
            except (OSError, ValueError) as error:
                found[item.name] = f"{error} in {self.folder}"
        return found

    def fetch(
        self, progress: Progress = lambda *_: None, notice: Callable[[str], None] = warnings.warn
    ) -> dict[str, str]:
        """Gets the files that are not there or damaged; returns which source each came from."""
        faults = self.faults()
        for fault in filter(None, faults.values()):
            notice(f"{fault}; it is fetched again.")
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
                failures.append(f"{source.name}: {_reason(error)}")
        if missing:
            raise DownloadError(
                f"{self.name} could not be fetched ({'; '.join(failures) or 'nothing to try'}): "
                f"put {', '.join(item.name for item in missing)}, unpacked, into {self.folder} "
                f"yourself"
                f"{self.otherwise}."
            )
        for part in self.folder.glob(".*.part") if origin else ():
            part.unlink(missing_ok=True)  # of a source that broke off before another one delivered
        return origin


def _reason(error: Exception) -> str:
    """The error in a few words."""
    inner = error.reason if isinstance(error, URLError) else error
    words = getattr(inner, "strerror", None) or str(inner) or type(inner).__name__
    return " ".join(words.split()).rstrip(".")[:160]


def download(url: str, item: Wanted, folder: Path, progress: Progress) -> bytes:
    """The content of a gzipped file in the web; a part that was fetched before is gone on with."""
    host = urlsplit(url).netloc.replace(":", "-")
    with _own(folder / f".{item.name}.gz.{host}.part") as part:
        return _verified(url, item, part, progress)


@contextmanager
def _own(part: Path) -> Iterator[Path]:
    """A name of our own for the part: renaming takes it, which only one process can do."""
    mine = part.with_name(f"{part.name}.{uuid.uuid4().hex}")
    for other in (part, *part.parent.glob(f"{part.name}.*")):
        with suppress(OSError):  # not there, or another process was faster
            if other == part or time.time() - other.stat().st_mtime > STALE_SECONDS:
                other.rename(mine)
                os.utime(mine)
                break
    try:
        yield mine
    finally:
        with suppress(FileNotFoundError):
            mine.replace(part)  # unfinished: the next may go on with it


def _verified(url: str, item: Wanted, part: Path, progress: Progress) -> bytes:
    """The unpacked content; the part stays only where it can be gone on with."""
    resumed = part.exists()
    try:
        if not any(_receive(url, item, part, progress) for _ in range(ATTEMPTS)):
            raise ConnectionError(f"the connection broke off {ATTEMPTS} times")
        content = gunzip(part.read_bytes(), item.size)
        item.check(content)
    except ValueError:
        part.unlink(missing_ok=True)
        if not resumed:
            raise
        return _verified(url, item, part, progress)  # the fault may be in the earlier bytes
    part.unlink()
    return content


def _receive(url: str, item: Wanted, part: Path, progress: Progress) -> bool:
    """Adds the missing bytes to the part; False if some are still missing."""
    done = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": f"cida/{__version__}"} | ({"Range": f"bytes={done}-"} if done else {})
    try:
        answer = _open(Request(url, headers=headers))
    except HTTPError as error:
        error.close()
        if error.code != 416 or not done:
            raise
        part.unlink()  # nothing comes after its end, and yet it was not whole: from the start
        return False
    with answer:
        if not answer.headers.get("Content-Range", "").startswith(f"bytes {done}-"):
            done = 0  # the server does not know ranges and sends the file from its start
        total = None if answer.length is None else done + answer.length
        with part.open("ab" if done else "wb") as file:
            for chunk in _chunks(answer):
                done += len(chunk)
                if done > item.size + 1024:  # packed it is shorter, or hardly longer
                    raise ValueError(f"{url} is longer than its content may be")
                file.write(chunk)
                progress(done, total)
    return total is None or done == total


def _chunks(answer: Any) -> Iterator[bytes]:
    """The body, as far as it comes."""
    with suppress(OSError, HTTPException):
        while chunk := answer.read(1 << 16):
            yield chunk


class _OnlyHttps(HTTPRedirectHandler):
    def redirect_request(self, *request: Any) -> Request | None:
        if urlsplit(request[-1]).scheme != "https":
            raise URLError(f"redirected to {request[-1]}, which is not https")
        return super().redirect_request(*request)


def _open(request: Request) -> Any:
    """The answer, in bounded time: a name or a host with many addresses could take minutes."""
    address = urlsplit(request.full_url)
    loopback = address.hostname in ("127.0.0.1", "localhost")
    if address.scheme != "https" and not (address.scheme == "http" and loopback):
        raise URLError(f"{request.full_url} is not https")
    future: Future[Any] = Future()

    def work() -> None:
        try:
            future.set_result(build_opener(_OnlyHttps).open(request, timeout=SECONDS_TO_ANSWER))
        except BaseException as error:
            future.set_exception(error)

    Thread(target=work, daemon=True).start()
    try:
        return future.result(SECONDS_TO_ANSWER)
    except TimeoutError:
        raise TimeoutError(f"no answer within {SECONDS_TO_ANSWER:.0f} s") from None


def gunzip(packed: bytes, limit: int) -> bytes:
    """The unpacked bytes, never more than the limit: a small file can hold a huge one."""
    try:
        with gzip.open(io.BytesIO(packed)) as file:
            content = file.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"it cannot be unpacked: {error}") from error
    if len(content) > limit:
        raise ValueError(f"unpacked it is longer than {limit} bytes")
    return content
