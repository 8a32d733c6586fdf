"""Files and folders that are whole or not there at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOTDIR
from pathlib import Path

from filelock import FileLock, Timeout

__all__ = [
    "LockedError",
    "atomic_new_folder",
    "atomic_replace",
    "check_empty_folder",
    "contained_path",
    "exclusive_lock",
    "remove_partial_files",
    "write_atomically",
]


class LockedError(ValueError):
    """Another command is at work in the same place; the message says which."""


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """The whole file or nothing: written beside its place, then moved there."""
    with atomic_replace(path) as temp_path:
        temp_path.write_bytes(content)


@contextmanager
def atomic_replace(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file beside its place to write into; moved there if all went well, else removed."""
    target = Path(path).absolute()
    with _create_parents(target):
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        os.close(handle)
        try:
            yield Path(name)
            with open(name, "rb+") as file:
                os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~_umask())  # mkstemp's own mode would lock the group out
            os.replace(name, target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


@contextmanager
def atomic_new_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder beside its place to write into; moved there if all went well, else removed.

    Made at once, so that a place where nothing can be written is known before the work. The place
    may be an empty folder.
    """
    target = Path(path).absolute()
    with _create_parents(target):
        temp_folder = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
        try:
            yield temp_folder
            os.chmod(temp_folder, 0o777 & ~_umask())
            if target.is_dir():
                target.rmdir()
            os.replace(temp_folder, target)
        except BaseException:
            shutil.rmtree(temp_folder, ignore_errors=True)
            raise


def check_empty_folder(folder: Path, name: str) -> None:
    """Refuses a folder that has something in it, by the name of its parameter."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise ValueError(
            f"{name} is {folder}, which is no empty folder; name one, or one that is not there."
        )


def contained_path(folder: str | os.PathLike[str], name: str) -> Path:
    """The file of this name in a folder that somebody else may have made.

    Refuses a name or a link that leads out of the folder, and what is no plain file: reading a pipe
    would wait for ever, a device never end.
    """
    path, root = Path(folder, name), Path(folder).resolve()
    if not path.resolve().is_relative_to(root):
        raise ValueError(
            f"{path} leads out of its folder, to {path.resolve()}; copy the file there."
        )
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no plain file; give the folder as cida wrote it.")
    return path


@contextmanager
def exclusive_lock(path: str | os.PathLike[str], lock_path: Path) -> Iterator[None]:
    """Inside, no other process can lock the same file; a second one gets a `LockedError`.

    The system releases the lock when the process ends, however it ends.
    """
    with _create_parents(lock_path.absolute()):
        lock = FileLock(lock_path, timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise LockedError(
                f"{os.fspath(path)} is in use by another cida command; wait until it has ended, "
                "or name another folder."
            ) from None
        try:
            yield
        finally:
            with suppress(PermissionError):  # Windows does not remove a file that is open
                lock_path.unlink(missing_ok=True)
            lock.release()


def remove_partial_files(folder: Path) -> None:
    """Removes what a killed process left half-written in a folder of ours."""
    for partial_file in folder.glob(".*.????????"):
        if partial_file.is_file() and not partial_file.is_symlink():
            partial_file.unlink(missing_ok=True)


@contextmanager
def _create_parents(target: Path) -> Iterator[None]:
    """The folders above; those that had to be made go again if the work fails."""
    new_folders = [folder for folder in target.parents if not folder.exists()]
    if target.parent.exists() and not target.parent.is_dir():
        raise NotADirectoryError(ENOTDIR, "Not a directory", str(target.parent))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for folder in new_folders:
            with suppress(OSError):  # somebody else's file may be there by now
                folder.rmdir()
        raise


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
