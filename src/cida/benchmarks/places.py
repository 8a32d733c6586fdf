"""Where runs are made, for joblib: processes of this machine, or workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from joblib.parallel import LokyBackend, ParallelBackendBase

from cida.estimators import CidaWarning
from cida.estimators.saving import versions
from cida.words import JobError

__all__ = ["Cluster", "Processes", "connected", "interrupts_held_back", "leave_if_unwanted"]

PATIENCE = 10  # seconds for a scheduler to answer, and for its first worker to come


class Processes(LokyBackend):  # type: ignore[misc]  # joblib has no types
    """joblib's processes, one thread each, that end with the work and clean up behind them."""

    def __init__(self) -> None:
        super().__init__(inner_max_num_threads=1, initializer=_start_process)
        self._others = set(multiprocessing.active_children())

    def terminate(self) -> None:
        """The work is done; joblib would keep its processes for the next."""
        pool = self._workers
        super().terminate()
        if pool is not None:
            pool.shutdown()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """joblib would kill them, and leave what they were writing."""
        mine = [p for p in multiprocessing.active_children() if p not in self._others]
        for process in mine:
            process.terminate()
        for process in mine:
            process.join(5)
        super().abort_everything(ensure_ready)


def _start_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to tell
    signal.signal(signal.SIGTERM, _stop)


def _stop(*_: object) -> None:
    raise SystemExit(1)  # rather than be killed: half-written files are removed on the way out


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Processes that are started inside never hear of Ctrl-C; ours is told when it is left.

    A worker that is still importing would answer with a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Cluster(ParallelBackendBase):  # type: ignore[misc]
    """The workers of a Dask cluster: what a worker that died was doing is done by another.

    joblib has a backend for Dask too. It never returns when Dask gives up a call that ended four
    workers, it does not heed ``n_jobs``, and it sends what scikit-learn computes inside a run back
    into the cluster. This one hands calls to Dask's executor and does nothing else.
    """

    supports_retrieve_callback = True

    def __init__(self, client: Any) -> None:
        super().__init__()
        self._pool = client.get_executor(pure=False)
        self._here = versions()

    def effective_n_jobs(self, n_jobs: int) -> int:
        """More than one, which joblib would do here: Dask knows how many workers there are."""
        return 2

    def submit(self, func: Any, callback: Callable[[Any], None] | None = None) -> Any:
        future = self._pool.submit(_on_worker, func, self._here)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Any) -> Any:
        """What came of it; that nothing will come of it is told in a sentence."""
        from distributed import KilledWorker

        try:
            return out.result()
        except KilledWorker as error:
            raise JobError(
                f"a run's worker died {error.allowed_failures + 1} times, perhaps for want of "
                "memory; finished runs are kept: go on with --resume and larger workers."
            ) from None
        except CancelledError:
            raise JobError(
                "the scheduler is gone; finished runs are kept: start it again and go on with "
                "--resume."
            ) from None
        except ModuleNotFoundError as error:
            raise JobError(
                f"a worker cannot load cida ({error}); install there what is here."
            ) from None

    def abort_everything(self, ensure_ready: bool = True) -> None:
        with suppress(Exception):  # a scheduler that is gone cannot be told
            self._pool.shutdown(wait=False)


# A process makes one run at a time: all of its threads share torch's random state.
_ALONE = threading.Lock()
_WANTED: ContextVar[Callable[[], bool] | None] = ContextVar("_WANTED", default=None)


def _on_worker(call: Callable[[], Any], here: Mapping[str, str]) -> Any:
    """Makes the call, in a worker that has the versions of whoever asks: one may have come late."""
    from distributed import get_worker

    worker = get_worker()
    if found := _difference(versions(), here):
        raise JobError(f"the worker at {worker.address} {found}")
    key = worker.get_current_task()

    def wanted() -> bool:
        known = worker.state.tasks.get(key)
        return known is not None and known.state != "cancelled"

    with _ALONE:
        token = _WANTED.set(wanted)
        try:
            leave_if_unwanted()
            return call()
        finally:
            _WANTED.reset(token)


def leave_if_unwanted(*_: object) -> None:
    """In a worker, ends a run that nobody waits for any more: its command was interrupted."""
    wanted = _WANTED.get()
    if wanted is not None and not wanted():
        from distributed import Reschedule

        raise Reschedule  # which is made again, should somebody ask for it by now


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of the cluster whose workers are ready; who does not answer is told."""
    try:
        from distributed import Client
    except ImportError:
        raise ImportError(
            "a scheduler needs distributed, which is not installed; pip install 'cida[grid]'."
        ) from None
    with _quiet():
        _check_scheduler(address)
        with Client(address, timeout=PATIENCE, set_as_default=False) as client:
            _check_workers(client, address)
            yield client


def _check_scheduler(address: str) -> None:
    """Refuses an address where no scheduler answers; a client would stay and try on."""
    from distributed import Security, rpc

    async def ask() -> str:
        keys = Security().get_connection_args("client")
        async with rpc(address, connection_args=keys) as scheduler:
            return str((await scheduler.identity())["type"])

    try:
        # In a thread of its own: a notebook has a loop that runs already.
        with ThreadPoolExecutor(1) as thread:
            found = thread.submit(asyncio.run, asyncio.wait_for(ask(), PATIENCE)).result()
    except ValueError as error:
        raise ValueError(
            f"scheduler is {address!r}, which is no address ({error}); write it as dask scheduler "
            "prints it, such as tcp://10.0.0.1:8786."
        ) from None
    except OSError:  # a timeout is one
        found = "nobody"
    if found != "Scheduler":
        raise JobError(
            f"scheduler is {address}, where no scheduler answers; start one with dask scheduler, "
            "which prints its address."
        )


def _check_workers(client: Any, address: str) -> None:
    """Refuses a cluster that has no worker, or something else installed than is here."""
    _check_versions(f"the scheduler {address}", _scheduler_versions(client))
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise JobError(
            f"the scheduler {address} has no worker; start some with dask worker {address} "
            "--nworkers 2 --nthreads 1."
        ) from None
    for worker, theirs in client.run(versions, on_error="return").items():
        _check_versions(f"the worker at {worker}", theirs)
    threads = client.nthreads()
    if sum(threads.values()) > len(threads):
        warnings.warn(
            f"the cluster has {sum(threads.values())} threads and makes {len(threads)} run(s) at "
            "a time, one in each worker process; start workers with --nthreads 1 and more "
            "--nworkers.",
            CidaWarning,
            stacklevel=2,
        )


def _scheduler_versions(client: Any) -> Any:
    try:
        return client.run_on_scheduler(versions)
    except Exception as error:  # whatever comes of loading cida there
        return error


def _check_versions(who: str, theirs: Any) -> None:
    if isinstance(theirs, BaseException):
        raise JobError(f"{who} cannot load cida ({theirs}); install there what is here.")
    if found := _difference(theirs, versions()):
        raise JobError(f"{who} {found}")


def _difference(theirs: Mapping[str, str], here: Mapping[str, str]) -> str:
    """What is another version there, on which numbers depend; or nothing."""
    for name, version in here.items():
        if theirs.get(name) != version:
            return f"has {name} {theirs.get(name)}, here is {version}; install the same there."
    return ""


@contextmanager
def _quiet() -> Iterator[None]:
    """Inside, Dask logs nothing: what matters of it is told in sentences."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
