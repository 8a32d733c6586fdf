"""Kills commands at random moments, goes on with ``--resume`` and compares with an undisturbed run.

``python tests/faults/kills.py --kills 40`` (or ``make kills``) prints a line a scenario.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import safe_open

EASED = {"seconds", "out", "command", "folder"}  # of JSON files: what may differ between the two


@dataclass(frozen=True)
class Scenario:
    """A command that writes to a folder ``out``; ``resume`` is added when it goes on."""

    name: str
    words: Callable[[Path], list[str]]
    resume: tuple[str, ...] = ("--resume",)


def table_words(folder: Path, seconds: str) -> Callable[[Path], list[str]]:
    def words(out: Path) -> list[str]:
        asked = ["fit", str(folder / "table.csv"), "--label", "ill", "--index", "age"]
        more = ["--steps", "1500", "--checkpoint-seconds", seconds, "--seeds", "2"]
        return [*asked, *more, "--no-expected", "--out", str(out)]

    return words


def scenarios(folder: Path) -> list[Scenario]:
    few = ["--methods", "source-only", "cua", "histogram", "--seeds", "1", "--first-seed", "100"]
    return [
        Scenario("training", table_words(folder, "0.3")),
        Scenario("checkpointing", table_words(folder, "0")),
        Scenario(
            "preparing",
            lambda out: ["data", "prepare-nsrr", "--study", "sof", "--root",
                         str(folder / "people/sof"), "--out", str(out)],
        ),
        Scenario(
            "reproducing",
            lambda out: ["reproduce", "sine", *few, "--steps", "500", "--no-figures",
                         "--checkpoint-seconds", "0.3", "--out", str(out)],
        ),
    ]  # fmt: skip


def write_table(path: Path) -> None:
    rng = np.random.default_rng(100)
    lines = ["age,a,b,ill"]
    for age, a, b in zip(rng.uniform(20, 80, 600), *rng.normal(size=(2, 600)), strict=True):
        ill = int(a + 0.02 * age > 1) if age < 50 else ""
        lines.append(f"{age:.1f},{a:.3f},{b:.3f},{ill}")
    path.write_text("\n".join(lines) + "\n")


def start(words: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "cida", *words],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def finish(words: list[str]) -> None:
    process = start(words)
    _, error = process.communicate()
    assert process.returncode == 0, error.decode()


def killed(words: list[str], moment: float) -> bool:
    """Whether the command was still at work when it was killed, with all that it had started."""
    process = start(words)
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return True
    assert process.returncode == 0, process.communicate()[1].decode()
    return False


def left(folder: Path) -> dict[str, str]:
    """What a command left: a hash of each file, without what time and place write into it."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    skipped = {"report.html", "table.md", "manifest.json"}  # they hold seconds and names of folders
    return {str(f.relative_to(folder)): _hash(f) for f in files if f.name not in skipped}


def _hash(path: Path) -> str:
    content = path.read_bytes()
    if path.suffix in (".json", ".jsonl"):
        lines = content.decode().splitlines() if path.suffix == ".jsonl" else [content.decode()]
        content = json.dumps([_eased(json.loads(line)) for line in lines]).encode()
    elif path.suffix == ".safetensors":
        with safe_open(path, framework="np") as file:
            parts = [name.encode() + file.get_tensor(name).tobytes() for name in file.keys()]  # noqa: SIM118
        content = b"".join(parts)
    return hashlib.sha256(content).hexdigest()


def _eased(value: object) -> object:
    if isinstance(value, dict):
        return {k: _eased(v) for k, v in value.items() if k not in EASED}
    return [_eased(v) for v in value] if isinstance(value, list) else value


def play(scenario: Scenario, kills: int, folder: Path, draw: random.Random) -> tuple[int, int]:
    """So many kills, four to a run; how many there were, and how many of them did no harm."""
    whole = folder / f"{scenario.name}-whole"
    started = time.monotonic()
    finish(scenario.words(whole))
    seconds = time.monotonic() - started
    wanted, done, fine = left(whole), 0, 0
    while done < kills:
        out = folder / f"{scenario.name}-cut"
        words = scenario.words(out)
        mine = 0
        while mine < min(4, kills - done) and killed(words, draw.uniform(0, seconds)):
            mine += 1
            words = [*scenario.words(out), *scenario.resume]
        finish(words if mine else [*words, *scenario.resume])
        done += mine
        fine += mine if left(out) == wanted and not list(folder.glob(f".{out.name}*")) else 0
        shutil.rmtree(out)
    return done, fine


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--kills", type=int, default=40)
    asked.add_argument("--seed", type=int, default=100)
    asked.add_argument("--only", nargs="*")
    words = asked.parse_args()
    draw = random.Random(words.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder / "table.csv")
        finish(["data", "simulate-sleep", "--out", str(folder / "people"), "--subjects", "12",
                "--seed", "168"])  # fmt: skip
        chosen = [one for one in scenarios(folder) if not words.only or one.name in words.only]
        bad = 0
        for scenario in chosen:
            done, fine = play(scenario, -(-words.kills // len(chosen)), folder, draw)
            bad += done - fine
            sys.stdout.write(f"{scenario.name}: {fine} of {done} kills did no harm\n")
            sys.stdout.flush()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
