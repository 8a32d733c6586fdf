"""Training with two ranks against one, a thread each, on the images of Rotating MNIST."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from statistics import median

from cida import ranks
from cida.benchmarks.speed import Effort, Figure, step_ms

__all__ = ["rank_figures"]

STEPS_FOR_ONE = 5  # a step on images takes so many times as long as one on points
ROUNDS = 3
LEAST = 1.6


def rank_figures(effort: Effort) -> Iterator[Figure]:
    """The same batches by one rank and by two, in turns; each process has one thread."""
    steps = effort.share(STEPS_FOR_ONE)
    pairs = [(_launched(1, steps), _launched(2, steps)) for _ in range(ROUNDS)]
    one, two = (median(times) for times in zip(*pairs, strict=True))
    ratio = median(alone / beside for alone, beside in pairs)
    words = f"{one:.1f} ms a step with 1 rank, {two:.1f} ms with 2"
    yield Figure("2 ranks of one thread", ratio, "x 1 rank", LEAST, least=True, beside=words)


def _launched(count: int, steps: int) -> float:
    """Milliseconds a step, as torchrun's first process prints them."""
    words = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    told = subprocess.run(
        [sys.executable, *words, "-m", __name__, str(steps)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if told.returncode:
        raise ChildProcessError(f"{count} rank(s) ended with exit code {told.returncode}.")
    return float(told.stdout)


def _measure(steps: int) -> None:
    """What each rank does."""
    from cida.benchmarks.speed_images import digits_to_time, image_game
    from cida.datasets.rotating import fresh_angles
    from cida.training import isolated

    with ranks.together(), isolated(0):
        rows = fresh_angles(digits_to_time(4000), 0)
        game, training = image_game(rows, steps, None)
        found = step_ms(game, rows, training)
        if ranks.leads():
            sys.stdout.write(f"{found}\n")


if __name__ == "__main__":
    _measure(int(sys.argv[1]))
