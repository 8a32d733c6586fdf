"""What can go wrong with a night, and with all of them."""

from __future__ import annotations

import os

from cida.errors import CommandError

__all__ = ["PreparationError", "RecordingError"]


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
