"""The same work on many nights, several at a time."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TypeVar

from cida.experiments.sleep.recording_errors import PreparationError

__all__ = ["ProgressCallback", "map_parallel", "require_packages", "translate_job_errors"]

ProgressCallback = Callable[[int, int], None]  # called with the nights done and of how many

T = TypeVar("T")
R = TypeVar("R")


def map_parallel(function: Callable[[T], R], tasks: Sequence[T], n_jobs: int) -> Iterator[R]:
    """Every task once, in any order; no more of them wait in the pool than keep it busy."""
    if n_jobs == 1:
        yield from map(function, tasks)
        return
    context = multiprocessing.get_context("spawn")
    pending = iter(tasks)
    with ProcessPoolExecutor(n_jobs, mp_context=context, initializer=_ignore_interrupts) as pool:
        running = {pool.submit(function, task) for task in islice(pending, 2 * n_jobs)}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
                running |= {pool.submit(function, task) for task in islice(pending, len(done))}
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _ignore_interrupts() -> None:
    """Ctrl-C is for the parent: it stops the jobs when their nights are done."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    """A parent that is killed cannot stop its jobs, and they would wait for work forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def require_packages(purpose: str, *packages: str) -> None:
    """Refuses to begin what would fail at the first night."""
    for package in packages:
        if find_spec(package) is None:
            raise ImportError(
                f"{purpose} needs {package}, which is not installed; pip install 'cida[sleep]'."
            )


@contextmanager
def translate_job_errors(out: Path) -> Iterator[None]:
    """A full disk and a killed job in a sentence each; what is finished is kept."""
    retry_hint = "and run it again: what is finished is kept"
    try:
        yield
    except BrokenProcessPool:
        raise PreparationError(
            f"a job was killed, perhaps for want of memory; use fewer jobs {retry_hint}."
        ) from None
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise PreparationError(
            f"the disk of {out} is full; free some space {retry_hint}."
        ) from error
