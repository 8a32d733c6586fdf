"""Where runs are made: in processes of this machine, or by the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent import futures
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from cida.errors import CommandError
from cida.estimators import CidaWarning
from cida.estimators.model_file import library_versions

T = TypeVar("T")
R = TypeVar("R")
Submit = Callable[..., Future[Any]]

SCHEDULER_TIMEOUT_SECONDS = 10  # for a scheduler to answer, and for its first worker to come


def iterate_results(
    function: Callable[[T], R],
    items: Iterable[T],
    n_jobs: int | None = None,
    scheduler: str | None = None,
) -> Generator[R, None, None]:
    """The function's results for all items as they come, ``n_jobs`` at a time.

    With the address of a Dask ``scheduler`` the workers of its cluster compute them, all of them if
    ``n_jobs`` is None; else processes of this machine, or this one where ``n_jobs`` is 1.
    """
    n_jobs = n_jobs or 1 if scheduler is None else n_jobs
    if scheduler is None and n_jobs == 1:
        yield from map(function, items)
        return
    opened = _open_processes(n_jobs or 1) if scheduler is None else _open_cluster(scheduler)
    remaining, pending = iter(items), set[Future[R]]()
    with opened as submit:
        while True:
            n_free = None if n_jobs is None else n_jobs - len(pending)
            pending |= {submit(function, item) for item in islice(remaining, n_free)}
            if not pending:
                return
            ended, pending = futures.wait(pending, return_when=futures.FIRST_COMPLETED)
            for future in ended:
                yield _get_result(future)


def _get_result(future: Future[R]) -> R:
    """What came of a call; that a cluster gave it up is told in a sentence."""
    try:
        return future.result()
    except futures.CancelledError:
        raise CommandError(
            "the scheduler is gone; finished runs are kept: start it again and go on with --resume."
        ) from None
    except ModuleNotFoundError as error:
        problem = f"a worker cannot load cida ({error})"
        raise CommandError(f"{problem}; install there what is here.") from None
    except Exception as error:
        n_failures = getattr(error, "allowed_failures", None)  # of Dask's KilledWorker
        if n_failures is None:
            raise
        raise CommandError(
            f"a run's worker died {n_failures + 1} times, perhaps because memory ran out; finished "
            "runs are kept: go on with --resume and larger workers."
        ) from None


@contextmanager
def _open_processes(n_jobs: int) -> Iterator[Submit]:
    """Processes that clean up behind them when they are terminated, and never hear of Ctrl-C."""
    other_processes = set(multiprocessing.active_children())
    spawn = multiprocessing.get_context("spawn")
    pool = futures.ProcessPoolExecutor(n_jobs, spawn, _initialize_worker)

    def submit(*call: Any) -> Future[Any]:
        # A worker that is still importing would answer Ctrl-C with a traceback.
        with _block_sigint():
            return pool.submit(_run_in_process, *call)

    try:
        yield submit
    except BaseException:
        for process in set(multiprocessing.active_children()) - other_processes:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _initialize_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to tell
    # Not killed by a signal: half-written files are removed on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def _run_in_process(function: Callable[[T], R], item: T) -> R:
    try:
        return function(item)
    except SystemExit:  # which the pool would take for the call's result, and go on
        os._exit(1)


@contextmanager
def _block_sigint() -> Iterator[None]:
    """Processes that are started inside never hear of Ctrl-C; ours is told when it is left."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)


@contextmanager
def _open_cluster(address: str) -> Iterator[Submit]:
    """The workers of a Dask cluster, once they are ready; who does not answer is told.

    What a worker that died was doing is done by another.
    """
    try:
        from distributed import Client
    except ImportError:
        raise ImportError(
            "a scheduler needs distributed, which is not installed; pip install 'cida[grid]'."
        ) from None
    with _silence_dask_logs():
        _check_scheduler(address)
        with Client(address, timeout=SCHEDULER_TIMEOUT_SECONDS, set_as_default=False) as client:
            _check_workers(client, address)
            executor = client.get_executor(pure=False)
            try:
                yield partial(executor.submit, _run_on_worker, library_versions())
            finally:
                with suppress(Exception):  # a scheduler that is gone cannot be told
                    executor.shutdown(wait=False)


# A process makes one run at a time: all of its threads share torch's random state.
_RUN_LOCK = threading.Lock()
_IS_WANTED = ContextVar[Callable[[], bool]]("_IS_WANTED", default=lambda: True)


def _run_on_worker(versions: Mapping[str, str], function: Callable[[T], R], item: T) -> R:
    """Makes the call, in a worker that has the versions of whoever asks: one may have come late."""
    from distributed import get_worker

    worker = get_worker()
    _check_versions(f"the worker at {worker.address}", library_versions(), versions)
    key = worker.get_current_task()

    def is_wanted() -> bool:
        task_state = worker.state.tasks.get(key)
        return task_state is not None and task_state.state != "cancelled"

    with _RUN_LOCK:
        _IS_WANTED.set(is_wanted)  # for this thread, whose next run sets its own
        stop_if_cancelled()
        return function(item)


def stop_if_cancelled(*_: object) -> None:
    """In a worker, ends a run that nobody waits for any more: its command was interrupted."""
    if not _IS_WANTED.get()():
        from distributed import Reschedule

        raise Reschedule  # which is made again, should somebody ask for it by now


def _check_scheduler(address: str) -> None:
    """Refuses an address where no scheduler answers; a client would stay and try on."""
    from distributed import Security, rpc

    async def query_type() -> str:
        connection_args = Security().get_connection_args("client")
        async with rpc(address, connection_args=connection_args) as scheduler:
            return str((await scheduler.identity())["type"])

    try:
        answer = asyncio.wait_for(query_type(), SCHEDULER_TIMEOUT_SECONDS)
        with futures.ThreadPoolExecutor(1) as thread:  # a notebook has a loop that runs already
            server_type = thread.submit(asyncio.run, answer).result()
    except ValueError as error:
        raise ValueError(
            f"scheduler is {address!r}, which is no address ({error}); write it as dask scheduler "
            "prints it, such as tcp://10.0.0.1:8786."
        ) from None
    except OSError:  # a timeout is one
        server_type = "nobody"
    if server_type != "Scheduler":
        raise CommandError(
            f"scheduler is {address}, where no scheduler answers; start one with dask scheduler, "
            "which prints its address."
        )


def _check_workers(client: Any, address: str) -> None:
    """Refuses a cluster that has no worker, or something else installed than is here."""
    versions = library_versions()
    try:
        scheduler_versions = client.run_on_scheduler(library_versions)
    except Exception as error:  # whatever comes of loading cida there
        scheduler_versions = error
    _check_versions(f"the scheduler {address}", scheduler_versions, versions)
    try:
        client.wait_for_workers(1, timeout=SCHEDULER_TIMEOUT_SECONDS)
    except TimeoutError:
        raise CommandError(
            f"the scheduler {address} has no worker; start some with dask worker {address} "
            "--nworkers 2 --nthreads 1."
        ) from None
    for worker, worker_versions in client.run(library_versions, on_error="return").items():
        _check_versions(f"the worker at {worker}", worker_versions, versions)
    n_workers, n_threads = len(client.nthreads()), sum(client.nthreads().values())
    if n_threads > n_workers:
        warnings.warn(
            f"the cluster has {n_threads} threads and makes {n_workers} run(s) at a time, one in "
            "each worker process; start workers with --nthreads 1 and more --nworkers.",
            CidaWarning,
            stacklevel=2,
        )


def _check_versions(where: str, remote: Any, local: Mapping[str, str]) -> None:
    """Refuses another version there of what numbers depend on."""
    if isinstance(remote, BaseException):
        raise CommandError(f"{where} cannot load cida ({remote}); install there what is here.")
    for name, version in local.items():
        if (other := remote.get(name)) != version:
            problem = f"{where} has {name} {other}, here is {version}"
            raise CommandError(f"{problem}; install the same there.")


@contextmanager
def _silence_dask_logs() -> Iterator[None]:
    """Inside, Dask logs nothing: what matters of it is told in sentences."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    previous = {logger: logger.level for logger in loggers}
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in previous.items():
            logger.setLevel(level)
