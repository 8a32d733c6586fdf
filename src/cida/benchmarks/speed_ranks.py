"""Training with two ranks against one, a thread each, on the images of Rotating MNIST."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from statistics import median

from cida import ranks
from cida.benchmarks.speed import Effort, Figure, step_ms

__all__ = ["rank_figures"]

STEPS_FOR_ONE = 5  # a step on images takes so many times as long as one on points
ROUNDS = 5
LEAST = 1.6


def rank_figures(effort: Effort) -> Iterator[Figure]:
    """One rank and two, in turns; each process has one thread.

    Two ranks share the batch of the one, which gives the same model sooner, or have as many rows
    each, which is how larger batches are trained.
    """
    steps = effort.share(STEPS_FOR_ONE)
    rounds = [
        (_launched(1, steps, 1), _launched(2, steps, 1), _launched(2, steps, 2))
        for _ in range(ROUNDS)
    ]
    alone, shared, doubled = (median(times) for times in zip(*rounds, strict=True))
    ratios = [(one / two, 2 * one / both) for one, two, both in rounds]
    same_batch, same_share = (median(each) for each in zip(*ratios, strict=True))
    words = f"{alone:.1f} ms a step with 1 rank, {{:.1f}} ms with 2".format
    yield Figure(
        "2 ranks of one thread that share a batch",
        same_batch, "x 1 rank", LEAST, least=True, beside=words(shared),
    )  # fmt: skip
    yield Figure(
        "2 ranks of one thread with such a batch each, rows a second",
        same_share, "x 1 rank", LEAST, least=True, beside=words(doubled),
    )  # fmt: skip


def _launched(count: int, steps: int, times: int) -> float:
    """Milliseconds a step, as torchrun's first process prints them."""
    words = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    told = subprocess.run(
        [sys.executable, *words, "-m", __name__, str(steps), str(times)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if told.returncode:
        raise ChildProcessError(f"{count} rank(s) ended with exit code {told.returncode}.")
    return float(told.stdout)


def _measure(steps: int, times: int) -> None:
    """What each rank does, on a batch so many times that of the recipe."""
    from cida.benchmarks.speed_images import digits_to_time, image_game
    from cida.datasets.rotating import fresh_angles
    from cida.training import isolated

    with ranks.together(), isolated(0):
        rows = fresh_angles(digits_to_time(4000), 0)
        game, training = image_game(rows, steps, None)
        sizes = {n: times * getattr(training, n) for n in ("batch_size", "source_batch_size")}
        found = step_ms(game, rows, replace(training, **sizes))
        if ranks.leads():
            sys.stdout.write(f"{found}\n")


if __name__ == "__main__":
    _measure(int(sys.argv[1]), int(sys.argv[2]))
