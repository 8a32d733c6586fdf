"""Under torchrun one command is several processes; the first speaks and leaves files for all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any


@contextmanager
def as_one_rank(command: str, verb: Any) -> Iterator[Any]:
    """The verb as this process does it: the others work in folders of their own, and say nothing.

    A verb that can be done so has a ``folder`` that it works in.
    """
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    if world_size == 1:
        yield verb
        return
    if not hasattr(verb, "folder"):
        raise ValueError(
            f"torchrun started {world_size} processes, and {command} is the work of one; start it "
            "without torchrun."
        )
    flag = "scheduler" if getattr(verb, "scheduler", None) else "jobs"
    if (value := getattr(verb, flag, None) or 1) != 1:
        raise ValueError(
            f"{flag} is {value}, and torchrun started {world_size} processes that train each run "
            "together; use one of the two."
        )
    from cida import distributed  # here, where torch is needed anyway

    with distributed.process_group():
        if distributed.is_main_process():
            yield verb
            return
        # Where this rank keeps its checkpoints, found again when the command goes on.
        rank_folder = verb.folder.parent / f".{verb.folder.name}.rank{distributed.rank()}"
        with Path(os.devnull).open("w") as devnull, redirect_stdout(devnull):
            yield replace(verb, out=rank_folder)
        shutil.rmtree(rank_folder, ignore_errors=True)
