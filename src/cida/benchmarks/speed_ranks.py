"""Training with two ranks against one, a thread each, on the images of Rotating MNIST."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from statistics import median

from cida import ranks
from cida.benchmarks.speed import Effort, Figure, step_ms

__all__ = ["rank_figures"]

STEPS_FOR_ONE = 15  # a step on images takes so many times as long as one on points
ROUNDS = 15
LEAST = 1.6


def rank_figures(effort: Effort) -> Iterator[Figure]:
    """One rank and two, in turns; each process has one thread.

    Two ranks share the batch of the one, which gives the same model sooner, or have as many rows
    each, which is how larger batches are trained.
    """
    rounds = _launched(effort.share(STEPS_FOR_ONE))
    alone, shared, doubled = (median(times) for times in zip(*rounds, strict=True))
    words = f"{alone:.1f} ms a step with 1 rank, {{:.1f}} ms with 2".format
    yield Figure(
        "2 ranks of one thread that share a batch",
        median(one / two for one, two, _ in rounds),
        "x 1 rank", LEAST, least=True, beside=words(shared),
    )  # fmt: skip
    yield Figure(
        "2 ranks of one thread with such a batch each, rows a second",
        median(2 * one / two for one, _, two in rounds),
        "x 1 rank", LEAST, least=True, beside=words(doubled),
    )  # fmt: skip


def _launched(steps: int) -> list[tuple[float, float, float]]:
    """Milliseconds a step in each round, as torchrun's first process prints them."""
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    told = subprocess.run(
        [sys.executable, *words, "-m", __name__, str(steps)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if told.returncode:
        raise ChildProcessError(f"two ranks ended with exit code {told.returncode}.")
    return [(alone, shared, doubled) for alone, shared, doubled in json.loads(told.stdout)]


def _measure(steps: int) -> None:
    """What each rank does: the first trains alone while the other waits, then both together."""
    from cida.benchmarks.speed_images import digits_to_time, image_game
    from cida.datasets.rotating import fresh_angles
    from cida.training import isolated

    first = os.environ["RANK"] == "0"
    with isolated(0):
        rows = fresh_angles(digits_to_time(4000), 0)
        game, training = image_game(rows, steps, None)
        sizes = {name: 2 * getattr(training, name) for name in ("batch_size", "source_batch_size")}
        larger = replace(training, **sizes)
        found = []
        for _ in range(ROUNDS):
            alone = step_ms(game, rows, training) if first else 0.0
            with ranks.together():
                shared, doubled = (step_ms(game, rows, each) for each in (training, larger))
            found.append((alone, shared, doubled))
    if first:
        sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    _measure(int(sys.argv[1]))
