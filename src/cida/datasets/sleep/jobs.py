"""The same work on many nights, several at a time."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from itertools import islice
from typing import TypeVar

__all__ = ["in_jobs"]

T = TypeVar("T")
R = TypeVar("R")


def in_jobs(work: Callable[[T], R], tasks: Sequence[T], jobs: int) -> Iterator[R]:
    """Every task once, in any order; no more of them wait in the pool than keep it busy."""
    if jobs == 1:
        yield from map(work, tasks)
        return
    context = multiprocessing.get_context("spawn")
    waiting = iter(tasks)
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_leave_interrupts) as pool:
        running = {pool.submit(work, task) for task in islice(waiting, 2 * jobs)}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
                running |= {pool.submit(work, task) for task in islice(waiting, len(done))}
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _leave_interrupts() -> None:
    """Ctrl-C is for the parent: it stops the jobs when their nights are done."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
