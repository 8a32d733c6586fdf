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
def as_one_rank(command: str, verb: Any) -> Iterator[Any]:
    """The verb as this process does it: the others work in folders of their own, and say nothing.

    A verb that can be done so has a ``folder`` that it works in.
    """
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    if world_size == 1:
        yield verb
        return
    _check_supported(command, verb, world_size)
    from cida import distributed  # here, where torch is needed anyway

    with distributed.process_group():
        if distributed.is_main_process():
            yield verb
            return
        rank_folder = _rank_folder(verb.folder, distributed.rank())
        with Path(os.devnull).open("w") as devnull, redirect_stdout(devnull):
            yield replace(verb, out=rank_folder)
        shutil.rmtree(rank_folder, ignore_errors=True)


def _check_supported(command: str, verb: Any, world_size: int) -> None:
    if not hasattr(verb, "folder"):
        raise ValueError(
            f"torchrun started {world_size} processes, and {command} is the work of one; start it "
            "without torchrun."
        )
    parallel_flag = "scheduler" if getattr(verb, "scheduler", None) else "jobs"
    if (getattr(verb, parallel_flag, None) or 1) != 1:
        raise ValueError(
            f"{parallel_flag} is {getattr(verb, parallel_flag)}, and torchrun started "
            f"{world_size} processes that "
            "train each run together; use one of the two."
        )


def _rank_folder(folder: Path, rank: int) -> Path:
    """Where this rank keeps its checkpoints, found again when the command goes on."""
    return folder.parent / f".{folder.name}.rank{rank}"
