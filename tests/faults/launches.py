"""Starts two ranks again and again: none may hang, and none may abort at its exit.

``python tests/faults/launches.py --launches 30`` prints how many ended well.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from kills import write_table


def ended_well(words: list[str], folder: Path, number: int) -> bool:
    out = folder / f"run{number}"
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    try:
        ended = subprocess.run(
            [sys.executable, *torchrun, "-m", "cida", *words, "--out", str(out)],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=180,
        )
    except subprocess.TimeoutExpired:
        return False
    if ended.returncode:
        sys.stdout.write(ended.stderr[-2000:])
    left = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    return ended.returncode == 0 and (out / "run.json").exists() and not left


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--launches", type=int, default=30)
    count = asked.parse_args().launches
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder / "table.csv")
        words = ["fit", str(folder / "table.csv"), "--label", "ill", "--index", "age"]
        words += ["--steps", "20", "--no-expected"]
        well = sum(ended_well(words, folder, number) for number in range(count))
    sys.stdout.write(f"{well} of {count} launches ended well\n")
    return 0 if well == count else 1


if __name__ == "__main__":
    sys.exit(main())
