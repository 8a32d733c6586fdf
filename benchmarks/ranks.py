"""Training with two ranks against one, a thread each, on the images of Rotating MNIST."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from statistics import median

from benchmarks.measure import Effort, Measurement, step_ms
from cida import distributed

__all__ = ["rank_figures"]

IMAGE_STEP_DIVISOR = 15  # a step on images takes so many times as long as one on points
N_RANK_ROUNDS = 15
MIN_SPEEDUP = 1.6


def rank_figures(effort: Effort) -> Iterator[Measurement]:
    """One rank and two, in turns; each process has one thread.

    Two ranks share the batch of the one, which gives the same model sooner, or have as many rows
    each, which is how larger batches are trained.
    """
    rounds = _run_torchrun(effort.scaled_steps(IMAGE_STEP_DIVISOR))
    alone, shared, doubled = (median(times) for times in zip(*rounds, strict=True))
    words = f"{alone:.1f} ms a step with 1 rank, {{:.1f}} ms with 2".format
    yield Measurement(
        "2 ranks of one thread that share a batch",
        median(one / two for one, two, _ in rounds),
        "x 1 rank",
        MIN_SPEEDUP,
        is_minimum=True,
        note=words(shared),
    )
    yield Measurement(
        "2 ranks of one thread with such a batch each, rows a second",
        median(2 * one / two for one, _, two in rounds),
        "x 1 rank",
        MIN_SPEEDUP,
        is_minimum=True,
        note=words(doubled),
    )


def _run_torchrun(steps: int) -> list[tuple[float, float, float]]:
    """Milliseconds a step in each round, as torchrun's first process prints them."""
    launcher_arguments = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    process = subprocess.run(
        [sys.executable, *launcher_arguments, "-m", __name__, str(steps)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if process.returncode:
        raise ChildProcessError(f"two ranks ended with exit code {process.returncode}.")
    return [(alone, shared, doubled) for alone, shared, doubled in json.loads(process.stdout)]


def _measure(steps: int) -> None:
    """What each rank does: the first trains alone while the other waits, then both together."""
    from benchmarks.images import image_game, make_timing_digits
    from cida.experiments.rotating_mnist.rotating_dataset import make_fresh_angle_dataset
    from cida.training import seeded

    first = os.environ["RANK"] == "0"
    with seeded(0):
        rows = make_fresh_angle_dataset(make_timing_digits(4000), 0)
        game, training = image_game(rows, steps, None)
        sizes = {name: 2 * getattr(training, name) for name in ("batch_size", "source_batch_size")}
        larger = replace(training, **sizes)
        timings = []
        for _ in range(N_RANK_ROUNDS):
            alone = step_ms(game, rows, training) if first else 0.0
            with distributed.process_group():
                shared, doubled = (step_ms(game, rows, each) for each in (training, larger))
            timings.append((alone, shared, doubled))
    if first:
        sys.stdout.write(json.dumps(timings))


if __name__ == "__main__":
    _measure(int(sys.argv[1]))
