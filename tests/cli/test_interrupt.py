"""Ctrl-C in a real terminal: one sentence, nothing half-written, nobody left behind."""

import csv
import fcntl
import os
import pty
import random
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from cida.cli import main

SHOWN, HIDDEN = "\x1b[?25h", "\x1b[?25l"  # the cursor


def _take_the_terminal():
    """Ctrl-C reaches all of it, also where a shell started these tests in the background."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Terminal:
    """A command that believes that somebody looks at it."""

    def __init__(self, words, folder, columns=80):
        self.master, slave = pty.openpty()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cida", *words],
            cwd=folder,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_take_the_terminal,
            env={**os.environ, "TERM": "xterm", "OMP_NUM_THREADS": "1"},
        )
        os.close(slave)
        self.screen = ""

    def read_until(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not re.search(pattern, self.screen):
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.screen += os.read(self.master, 65536).decode(errors="replace")
                except OSError:  # the other end is closed
                    return
        assert re.search(pattern, self.screen), self.screen

    def interrupt(self):
        os.write(self.master, b"\x03")
        self.read_until("interrupted; .*\n", 30)
        code = self.process.wait(30)
        os.close(self.master)
        return code

    def left_behind(self):
        """Processes of its session that are still there."""
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                state, _, _, session, *_ = path.read_text().rpartition(")")[2].split()
            except OSError:  # it ended while we looked
                continue
            if int(session) == self.process.pid and state != "Z":
                found.append(path.parent.name)
        return found


def check_end(terminal, code, sentence):
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.screen)
    assert code == 1
    assert plain.rstrip().splitlines()[-1] == f"cida: interrupted; {sentence}"
    assert "Traceback" not in plain
    assert terminal.screen.rfind(SHOWN) > terminal.screen.rfind(HIDDEN) >= 0
    assert terminal.left_behind() == []


def half_written(folder):
    return [path.name for path in folder.rglob(".*")]


def test_a_demo_keeps_its_finished_runs(tmp_path):
    terminal = Terminal(["demo", "--methods", "histogram"], tmp_path)
    terminal.read_until(r"\d+/\d+")
    code = terminal.interrupt()
    check_end(terminal, code, "what is done is kept: the same command with --resume goes on.")
    assert half_written(tmp_path) == []
    assert list(tmp_path.glob("runs/demo/histogram-seed0/checkpoint/training-0/step-*"))


def test_a_fit_keeps_its_training(tmp_path, capsys, monkeypatch):
    draw = random.Random(100)
    with (tmp_path / "table.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["x", "age", "ill"])
        for _ in range(400):
            x, age = draw.random(), draw.randrange(20, 80)
            lines.writerow([x, age, int(x > 0.5) if age < 50 else ""])
    words = ["fit", "table.csv", "--label", "ill", "--index", "age", "--out", "run"]
    terminal = Terminal([*words, "--steps", "100000"], tmp_path, columns=40)
    terminal.read_until(r"\d+/\d+")
    code = terminal.interrupt()
    check_end(
        terminal, code, "the training so far is kept: the same command with --resume goes on."
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == [".run.unfinished", "table.csv"]
    monkeypatch.chdir(tmp_path)
    assert main([*words, "--steps", "100000"]) == 2
    assert "an unfinished run is kept; go on with --resume, or remove" in capsys.readouterr().err


@pytest.mark.parametrize("moment", ["while the workers start", "while they train"])
def test_runs_side_by_side_end_with_their_parent(tmp_path, moment):
    few = ["--methods", "histogram", "--seeds", "2", "--first-seed", "100", "--no-figures"]
    terminal = Terminal(["reproduce", "circle", *few, "--jobs", "2"], tmp_path)
    terminal.read_until("0/2")
    if moment == "while they train":
        time.sleep(5)
    code = terminal.interrupt()
    kept = "finished runs are kept in runs/circle-best, --resume goes on."
    check_end(terminal, code, kept)
    assert half_written(tmp_path) == []


def test_a_prediction_that_is_interrupted_writes_nothing(tmp_path, monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("cida.experiments.sleep.predict_recording.predict_recording", stop)
    assert main(["predict", str(tmp_path), "night.edf", "--out", str(tmp_path / "out.csv")]) == 1
    assert capsys.readouterr().err == "cida: interrupted; nothing was written.\n"


def test_a_download_that_is_interrupted_goes_on_later(monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("cida.experiments.data_command.fetch_dataset", stop)
    assert main(["data", "fetch", "mnist"]) == 1
    assert "what was fetched is kept: the same command goes on" in capsys.readouterr().err
