"""Commands that are cut off and go on: the same files in the end, and nothing trained twice."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from safetensors.torch import load_file

from cida.cli import main
from cida.io.files import exclusive_lock

STEPS = 400


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(100)
    age, x = rng.uniform(20, 80, 300), rng.normal(size=(300, 2))
    ill = np.where(age < 50, (x[:, 0] + 0.02 * age > 1).astype(int).astype(object), None)
    path = tmp_path_factory.mktemp("table") / "table.csv"
    frame = pd.DataFrame({"age": age.round(1), "a": x[:, 0].round(3), "b": x[:, 1].round(3)})
    frame.assign(ill=ill).to_csv(path, index=False)
    return path


def fit_words(table, out, *more):
    words = ["fit", str(table), "--label", "ill", "--index", "age", "--out", str(out)]
    return [*words, "--steps", str(STEPS), "--no-expected", *more]


def start(words):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "cida", *words]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)


def killed_when(process, there, seconds=60):
    """Kills the process as soon as something is there."""
    end = time.monotonic() + seconds
    while not there():
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < end, "it never came so far"
        time.sleep(0.01)
    process.kill()
    process.wait()


def same_models(one, other):
    for path in sorted(one.glob("*.safetensors")):
        first, second = load_file(path), load_file(other / path.name)
        assert first.keys() == second.keys()
        for name, tensor in first.items():  # bit for bit, also where a truth is not known
            assert tensor.numpy().tobytes() == second[name].numpy().tobytes(), (path.name, name)


def test_a_fit_that_is_killed_goes_on(table, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert main(fit_words(table, whole)) == 0
    words = fit_words(table, cut, "--checkpoint-seconds", "0")
    room = tmp_path / ".cut.unfinished"
    killed_when(start(words), lambda: list(room.glob("checkpoint/training-0/step-*")))
    assert not cut.exists()
    assert main([*words, "--resume"]) == 0
    same_models(whole, cut)
    assert sorted(p.name for p in cut.iterdir()) == sorted(p.name for p in whole.iterdir())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cut", "whole"]


def test_a_finished_fit_is_not_made_again_by_resume(table, tmp_path, capsys):
    out = tmp_path / "run"
    assert main(fit_words(table, out)) == 0
    before = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    assert main(fit_words(table, out, "--resume")) == 0
    assert f"{out} is finished." in capsys.readouterr().out
    assert {path.name: path.stat().st_mtime_ns for path in out.iterdir()} == before
    other = fit_words(table, out, "--resume", "--seed", "1")
    assert main(other) == 2
    assert "which is no empty folder" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["fit", "reproduce", "demo"])
def test_of_two_commands_on_one_folder_the_second_is_refused(table, tmp_path, verb, capsys):
    out = tmp_path / "run"
    words = {
        "fit": fit_words(table, out),
        "reproduce": ["reproduce", "circle", "--out", str(out), "--steps", "2", "--no-figures"],
        "demo": ["demo", "--out", str(out), "--steps", "2"],
    }[verb]
    lock = tmp_path / ".run.lock" if verb == "fit" else out / ".lock"
    with exclusive_lock(out, lock):
        assert main(words) == 2
    said = capsys.readouterr().err
    assert said == (
        f"cida: {out} is in use by another cida command; wait until it has ended, or name another "
        "folder.\n"
    )


def test_a_run_of_an_experiment_that_is_killed_goes_on(tmp_path):
    words = ["reproduce", "sine", "--methods", "histogram", "--seeds", "1", "--first-seed", "100",
             "--steps", "300", "--no-figures"]  # fmt: skip
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert main([*words, "--out", str(whole)]) == 0
    process = start([*words, "--out", str(cut), "--checkpoint-seconds", "0"])
    run = cut / "histogram-seed100"
    killed_when(process, lambda: list(run.glob("checkpoint/training-0/step-*")))
    assert not (run / "result.json").exists()
    assert main([*words, "--out", str(cut), "--resume"]) == 0
    same_models(whole / "histogram-seed100", run)
    assert not (run / "checkpoint").exists()
    rows = [json.loads((folder / "results.json").read_text())["rows"] for folder in (whole, cut)]
    for row in (*rows[0], *rows[1]):
        del row["seconds"]
    assert rows[0] == rows[1]


def test_sigterm_keeps_the_training_as_ctrl_c_does(table, tmp_path):
    words = fit_words(table, tmp_path / "run", "--checkpoint-seconds", "0", "--steps", "100000")
    process = start(words)
    room = tmp_path / ".run.unfinished"
    end = time.monotonic() + 60
    while not list(room.glob("checkpoint/training-0/step-*")):
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 1
    assert list(room.glob("checkpoint/training-0/step-*"))
    assert not (tmp_path / ".run.lock").exists()
