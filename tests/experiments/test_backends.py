"""Runs on a real Dask cluster: a scheduler here, workers in processes of their own."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from distributed import LocalCluster

from cida import CidaWarning
from cida.cli import main
from cida.errors import CommandError
from cida.experiments.backends import iterate_results
from cida.experiments.jobs import Job, run_jobs

pytestmark = pytest.mark.filterwarnings("ignore:the cluster has 2 threads")


class Workers:
    """A scheduler, and workers that can be started and killed."""

    def __init__(self, folder):
        self.cluster = LocalCluster(n_workers=0, dashboard_address=None, host="127.0.0.1")
        self.address, self.scheduler = self.cluster.scheduler_address, self.cluster.scheduler
        self.folder, self.processes = folder, {}

    def start(self, threads=1, **more):
        words = ["--no-nanny", "--no-dashboard", "--nthreads", str(threads)]
        name = f"worker-{time.monotonic_ns()}"
        self.processes[name] = subprocess.Popen(
            [sys.executable, "-m", "dask", "worker", self.address, "--name", name, *words],
            cwd=self.folder,
            env={**os.environ, "OMP_NUM_THREADS": "2", **more},
            stderr=subprocess.DEVNULL,
        )
        return name

    def ready(self):
        self.wait(lambda: set(self.busy()) == set(self.processes))

    def busy(self):
        """How many runs each has in hand."""
        return {ws.name: len(ws.processing) for ws in list(self.scheduler.workers.values())}

    def kill(self, *names):
        for name in names:
            self.processes[name].kill()
            self.processes.pop(name).wait()
        self.ready()

    @staticmethod
    def wait(until, seconds=60):
        end = time.monotonic() + seconds
        while not until():
            assert time.monotonic() < end
            time.sleep(0.02)

    def close(self):
        self.kill(*self.processes)
        self.cluster.close()


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    cluster = Workers(tmp_path_factory.mktemp("workers"))
    yield cluster
    cluster.close()


@pytest.fixture
def worker(workers):
    """One of them at least, with two threads."""
    if not workers.processes:
        workers.start(threads=2)
        workers.ready()
    return workers


def abort(_):
    os.abort()


def tasks_in(folder, steps=15, seeds=2):
    return [
        Job("sine", "best", "points", "histogram", seed, folder / f"histogram-seed{seed}", steps)
        for seed in range(seeds)
    ]


def test_a_worker_that_is_killed_half_way_changes_nothing(workers, tmp_path, monkeypatch):
    single, _ = workers.start(threads=1), workers.start(threads=2)
    workers.ready()
    monkeypatch.chdir(tmp_path)
    in_hand = []

    def kill_half_way():
        workers.wait(lambda: list(tmp_path.glob("there/*/result.json")) and workers.busy()[single])
        in_hand.append(workers.busy()[single])
        workers.kill(single)

    command = ["reproduce", "sine", "--seeds", "4", "--steps", "60", "--no-figures"]
    command += ["--methods", "histogram"]
    run_jobs(tasks_in(tmp_path / "here", steps=60, seeds=4), 1, lambda _: None)
    killing = threading.Thread(target=kill_half_way)
    killing.start()
    with pytest.warns(CidaWarning, match=r"3 threads and makes 2 run\(s\) at a time"):
        assert main([*command, "--out", "there", "--scheduler", workers.address]) == 0
    killing.join()
    assert in_hand[0] >= 1
    found = json.loads((tmp_path / "there" / "results.json").read_text())["rows"]
    assert [row["seed"] for row in found] == [0, 1, 2, 3]
    for row in found:
        folder = tmp_path / "here" / f"histogram-seed{row['seed']}"
        here = json.loads((folder / "result.json").read_text())
        assert {**here, **row, "seconds": 0} == {**here, "seconds": 0}
    for model in tmp_path.glob("here/*/model.safetensors"):
        there = tmp_path / "there" / model.parent.name / model.name
        assert there.read_bytes() == model.read_bytes()
    run = json.loads((tmp_path / "there" / "histogram-seed0" / "run.json").read_text())
    assert run["threads"] == 1


def test_an_interrupted_command_ends_and_its_workers_are_free_again(worker, tmp_path):
    words = ["reproduce", "circle", "--methods", "histogram", "--seeds", "2", "--steps", "20000"]
    command = subprocess.Popen(
        [sys.executable, "-m", "cida", *words, "--out", "run", "--scheduler", worker.address],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that starts tests in the background has Ctrl-C ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    worker.wait(lambda: any(worker.busy().values()))
    time.sleep(1)
    command.send_signal(signal.SIGINT)
    told = command.communicate(timeout=30)[1]
    *_, last = told.splitlines()
    assert last == "cida: interrupted; finished runs are kept in run, --resume goes on."
    assert "Traceback" not in told
    assert command.returncode == 1
    started = time.monotonic()
    in_hand = []
    watch = lambda _: in_hand.append(sum(worker.busy().values()))  # noqa: E731
    run_jobs(tasks_in(tmp_path, steps=2), 1, watch, worker.address)
    assert max(in_hand) <= 1
    assert time.monotonic() - started < 15
    assert list(tmp_path.glob("run/*/result.json")) == []


def test_a_folder_that_workers_do_not_share_is_told(worker, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cida.experiments.jobs.SHARED_FOLDER_TIMEOUT_SECONDS", 0.2)
    elsewhere = Path("/proc/self/cwd/run")  # which is another folder for everyone
    with pytest.raises(
        CommandError, match="seed 0 ended on the cluster, but is not in /proc/self/cwd"
    ):
        run_jobs(tasks_in(elsewhere)[:1], None, lambda _: None, worker.address)
    assert list(worker.folder.glob("run/histogram-seed0/result.json")) != []


def test_a_worker_with_another_version_is_told_before_the_first_run(worker, tmp_path, monkeypatch):
    monkeypatch.setattr("cida.estimators.model_file.__version__", "99.0")
    tasks = tasks_in(tmp_path)
    with pytest.raises(
        CommandError, match=r"worker at tcp://.* has cida .*, here is 99.0; install"
    ):
        run_jobs(tasks, None, lambda _: None, worker.address)
    monkeypatch.setattr(
        "cida.experiments.backends._check_workers", lambda *_: None
    )  # one came later
    with pytest.raises(
        CommandError, match=r"worker at tcp://.* has cida .*, here is 99.0; install"
    ):
        run_jobs(tasks, None, lambda _: None, worker.address)
    assert list(tmp_path.iterdir()) == []


def test_a_call_that_ends_its_workers_is_given_up(worker, monkeypatch):
    monkeypatch.setattr(worker.scheduler, "allowed_failures", 0)
    with pytest.raises(CommandError, match="worker died 1 times, perhaps because memory ran out"):
        list(iterate_results(abort, [None], scheduler=worker.address))
    worker.processes.popitem()[1].wait()


@pytest.fixture
def without_cida(tmp_path):
    """What makes a process of the cluster one in which cida is not installed."""
    package = tmp_path / "cida" / "__init__.py"
    package.parent.mkdir()
    package.write_text("raise ModuleNotFoundError('there is none', name='cida')")
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


def test_a_worker_without_cida_is_told(workers, tmp_path, without_cida):
    workers.kill(*workers.processes)
    workers.start(**without_cida)
    workers.ready()
    told = r"the worker at tcp://.* cannot load cida \(.*none.*\); install there"
    with pytest.raises(CommandError, match=told):
        run_jobs(tasks_in(tmp_path), None, lambda _: None, workers.address)
    workers.kill(*workers.processes)


def test_a_scheduler_without_cida_is_told(tmp_path, without_cida):
    words = ["--port", "0", "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", "where"]
    command = [sys.executable, "-m", "dask", "scheduler", *words]
    with subprocess.Popen(
        command, cwd=tmp_path, env=without_cida, stderr=subprocess.DEVNULL
    ) as scheduler:
        Workers.wait(lambda: (tmp_path / "where").exists())
        address = json.loads((tmp_path / "where").read_text())["address"]
        told = r"the scheduler tcp://.* cannot load cida \(.*none.*\); install there"
        try:
            with pytest.raises(CommandError, match=told):
                run_jobs(tasks_in(tmp_path), None, lambda _: None, address)
        finally:
            scheduler.kill()


def test_a_cluster_without_workers_is_told(workers, tmp_path, monkeypatch):
    workers.kill(*workers.processes)
    monkeypatch.setattr("cida.experiments.backends.SCHEDULER_TIMEOUT_SECONDS", 0.5)
    with pytest.raises(CommandError, match="has no worker; start some with dask worker tcp://"):
        run_jobs(tasks_in(tmp_path), None, lambda _: None, workers.address)


@pytest.mark.parametrize(
    ("address", "code", "words"),
    [
        ("tcp://127.0.0.1:1", 1, "scheduler is tcp://127.0.0.1:1, where no scheduler answers; "),
        ("nonsense", 2, "scheduler is 'nonsense', which is no address (missing port number"),
    ],
)
def test_a_wrong_address_is_one_sentence(tmp_path, monkeypatch, capsys, address, code, words):
    monkeypatch.setattr("cida.experiments.backends.SCHEDULER_TIMEOUT_SECONDS", 0.5)
    command = ["reproduce", "sine", "--no-figures", "--out", str(tmp_path / "run")]
    assert main([*command, "--scheduler", address]) == code
    assert capsys.readouterr().err.startswith(f"cida: {words}")


def test_what_to_install_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'cida\[grid\]'"):
        run_jobs(tasks_in(tmp_path), None, lambda _: None, "tcp://127.0.0.1:8786")
