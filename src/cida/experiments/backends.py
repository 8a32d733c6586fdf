"""Where runs are made, for joblib: processes of this machine, or workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

from joblib import Parallel, delayed
from joblib.parallel import LokyBackend, ParallelBackendBase

from cida.errors import CommandError
from cida.estimators import CidaWarning
from cida.estimators.model_file import library_versions

__all__ = [
    "DaskBackend",
    "ProcessBackend",
    "block_sigint",
    "connect_to_cluster",
    "map_in_processes",
    "stop_if_cancelled",
]

SCHEDULER_TIMEOUT_SECONDS = (
    10  # seconds for a scheduler to answer, and for its first worker to come
)


T = TypeVar("T")
R = TypeVar("R")


class ProcessBackend(LokyBackend):  # type: ignore[misc]  # joblib has no types
    """joblib's processes, one thread each, that end with the work and clean up behind them."""

    def __init__(self) -> None:
        super().__init__(inner_max_num_threads=1, initializer=_initialize_worker)
        self._foreign_processes = set(multiprocessing.active_children())

    def terminate(self) -> None:
        """The work is done; joblib would keep its processes for the next."""
        pool = self._workers
        super().terminate()
        if pool is not None:
            pool.shutdown()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """joblib would kill them, and leave what they were writing."""
        own_processes = [
            p for p in multiprocessing.active_children() if p not in self._foreign_processes
        ]
        for process in own_processes:
            process.terminate()
        for process in own_processes:
            process.join(5)
        super().abort_everything(ensure_ready)


def _initialize_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to tell
    signal.signal(signal.SIGTERM, _exit_on_sigterm)


def _exit_on_sigterm(*_: object) -> None:
    raise SystemExit(1)  # rather than be killed: half-written files are removed on the way out


@contextmanager
def block_sigint() -> Iterator[None]:
    """Processes that are started inside never hear of Ctrl-C; ours is told when it is left.

    A worker that is still importing would answer with a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)


def map_in_processes(function: Callable[[T], R], items: Iterable[T], n_jobs: int) -> Iterator[R]:
    """The function's value of every item, in any order; here where one at a time is enough.

    Items are drawn as processes become free. Whoever stops early stops the processes too.
    """
    if n_jobs == 1:
        yield from map(function, items)
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="joblib")  # that work is cancelled
        parallel = Parallel(
            n_jobs, backend=ProcessBackend(), return_as="generator_unordered", batch_size=1
        )
        with block_sigint():
            values = parallel(delayed(function)(item) for item in items)
        yield from values


class DaskBackend(ParallelBackendBase):  # type: ignore[misc]
    """The workers of a Dask cluster: what a worker that died was doing is done by another.

    joblib has a backend for Dask too. It never returns when Dask gives up a call that ended four
    workers, it does not heed ``n_jobs``, and it sends what scikit-learn computes inside a run back
    into the cluster. This one hands calls to Dask's executor and does nothing else.
    """

    supports_retrieve_callback = True

    def __init__(self, client: Any) -> None:
        super().__init__()
        self._pool = client.get_executor(pure=False)
        self._local_versions = library_versions()

    def effective_n_jobs(self, n_jobs: int) -> int:
        """More than one, which joblib would do here: Dask knows how many workers there are."""
        return 2

    def submit(self, func: Any, callback: Callable[[Any], None] | None = None) -> Any:
        future = self._pool.submit(_run_on_worker, func, self._local_versions)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Any) -> Any:
        """What came of it; that nothing will come of it is told in a sentence."""
        from distributed import KilledWorker

        try:
            return out.result()
        except KilledWorker as error:
            raise CommandError(
                f"a run's worker died {error.allowed_failures + 1} times, perhaps for want of "
                "memory; finished runs are kept: go on with --resume and larger workers."
            ) from None
        except CancelledError:
            raise CommandError(
                "the scheduler is gone; finished runs are kept: start it again and go on with "
                "--resume."
            ) from None
        except ModuleNotFoundError as error:
            raise CommandError(
                f"a worker cannot load cida ({error}); install there what is here."
            ) from None

    def abort_everything(self, ensure_ready: bool = True) -> None:
        with suppress(Exception):  # a scheduler that is gone cannot be told
            self._pool.shutdown(wait=False)


# A process makes one run at a time: all of its threads share torch's random state.
_RUN_LOCK = threading.Lock()
_IS_WANTED: ContextVar[Callable[[], bool] | None] = ContextVar("_WANTED", default=None)


def _run_on_worker(call: Callable[[], Any], local_versions: Mapping[str, str]) -> Any:
    """Makes the call, in a worker that has the versions of whoever asks: one may have come late."""
    from distributed import get_worker

    worker = get_worker()
    if mismatch := _version_mismatch(library_versions(), local_versions):
        raise CommandError(f"the worker at {worker.address} {mismatch}")
    key = worker.get_current_task()

    def is_wanted() -> bool:
        task_state = worker.state.tasks.get(key)
        return task_state is not None and task_state.state != "cancelled"

    with _RUN_LOCK:
        token = _IS_WANTED.set(is_wanted)
        try:
            stop_if_cancelled()
            return call()
        finally:
            _IS_WANTED.reset(token)


def stop_if_cancelled(*_: object) -> None:
    """In a worker, ends a run that nobody waits for any more: its command was interrupted."""
    is_wanted = _IS_WANTED.get()
    if is_wanted is not None and not is_wanted():
        from distributed import Reschedule

        raise Reschedule  # which is made again, should somebody ask for it by now


@contextmanager
def connect_to_cluster(address: str) -> Iterator[Any]:
    """A client of the cluster whose workers are ready; who does not answer is told."""
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
            yield client


def _check_scheduler(address: str) -> None:
    """Refuses an address where no scheduler answers; a client would stay and try on."""
    from distributed import Security, rpc

    async def query_type() -> str:
        connection_args = Security().get_connection_args("client")
        async with rpc(address, connection_args=connection_args) as scheduler:
            return str((await scheduler.identity())["type"])

    try:
        # In a thread of its own: a notebook has a loop that runs already.
        with ThreadPoolExecutor(1) as thread:
            server_type = thread.submit(
                asyncio.run, asyncio.wait_for(query_type(), SCHEDULER_TIMEOUT_SECONDS)
            ).result()
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
    _check_versions(f"the scheduler {address}", _scheduler_versions(client))
    try:
        client.wait_for_workers(1, timeout=SCHEDULER_TIMEOUT_SECONDS)
    except TimeoutError:
        raise CommandError(
            f"the scheduler {address} has no worker; start some with dask worker {address} "
            "--nworkers 2 --nthreads 1."
        ) from None
    for worker, worker_versions in client.run(library_versions, on_error="return").items():
        _check_versions(f"the worker at {worker}", worker_versions)
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
        return client.run_on_scheduler(library_versions)
    except Exception as error:  # whatever comes of loading cida there
        return error


def _check_versions(where: str, remote_versions: Any) -> None:
    if isinstance(remote_versions, BaseException):
        raise CommandError(
            f"{where} cannot load cida ({remote_versions}); install there what is here."
        )
    if mismatch := _version_mismatch(remote_versions, library_versions()):
        raise CommandError(f"{where} {mismatch}")


def _version_mismatch(remote_versions: Mapping[str, str], local_versions: Mapping[str, str]) -> str:
    """What is another version there, on which numbers depend; or nothing."""
    for name, version in local_versions.items():
        if remote_versions.get(name) != version:
            return (
                f"has {name} {remote_versions.get(name)}, here is {version}; install the same "
                "there."
            )
    return ""


@contextmanager
def _silence_dask_logs() -> Iterator[None]:
    """Inside, Dask logs nothing: what matters of it is told in sentences."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    previous_levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, previous_levels, strict=True):
            logger.setLevel(level)
