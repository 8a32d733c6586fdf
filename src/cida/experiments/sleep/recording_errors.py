"""What can go wrong with a night, and with all of them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from cida.errors import CommandError

ProgressCallback = Callable[[int, int], None]  # called with the nights done and of how many


class RecordingError(ValueError):
    """One file of one subject cannot be used; the others may go on."""

    def __init__(self, path: str | os.PathLike[str], message: str) -> None:
        super().__init__(os.fspath(path), message)

    @property
    def path(self) -> str:
        """The file."""
        return str(self.args[0])

    @property
    def message(self) -> str:
        """What is wrong with it and what to do, without its name."""
        return str(self.args[1])

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class PreparationError(CommandError, RuntimeError):
    """No store could be written; the message says why and what to do."""


def require_packages(purpose: str, *packages: str) -> None:
    """Refuses to begin what would fail at the first night."""
    for package in packages:
        if find_spec(package) is None:
            problem = f"{purpose} needs {package}, which is not installed"
            raise ImportError(f"{problem}; pip install 'cida[sleep]'.")


@contextmanager
def translate_job_errors(out: Path) -> Iterator[None]:
    """A full disk and a killed job in a sentence each; what is finished is kept."""
    again = "and run it again: what is finished is kept"
    try:
        yield
    except BrokenProcessPool:
        problem = "a job was killed, perhaps because memory ran out"
        raise PreparationError(f"{problem}; use fewer jobs {again}.") from None
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        problem = f"the disk of {out} is full"
        raise PreparationError(f"{problem}; free some space {again}.") from error
