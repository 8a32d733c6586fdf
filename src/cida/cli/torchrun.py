"""Under torchrun one command is several processes; the first speaks and leaves files for all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

__all__ = ["as_one_rank"]


@contextmanager
def as_one_rank(command: str, asked: Any) -> Iterator[Any]:
    """The verb as this process does it: the others work in folders of their own, and say nothing.

    A verb that can be done so has a ``folder`` that it works in.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield asked
        return
    _check(command, asked, count)
    from cida import ranks  # here, where torch is needed anyway

    with ranks.together():
        if ranks.leads():
            yield asked
            return
        own = _aside(asked.folder, ranks.number())
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
            yield replace(asked, out=own)
        shutil.rmtree(own, ignore_errors=True)


def _check(command: str, asked: Any, count: int) -> None:
    if not hasattr(asked, "folder"):
        raise ValueError(
            f"torchrun started {count} processes, and {command} is the work of one; start it "
            "without torchrun."
        )
    apart = "scheduler" if getattr(asked, "scheduler", None) else "jobs"
    if (getattr(asked, apart, None) or 1) != 1:
        raise ValueError(
            f"{apart} is {getattr(asked, apart)}, and torchrun started {count} processes that "
            "train each run together; use one of the two."
        )


def _aside(folder: Path, number: int) -> Path:
    """Where this rank keeps its checkpoints, found again when the command goes on."""
    return folder.parent / f".{folder.name}.rank{number}"
