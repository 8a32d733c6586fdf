"""Seeds: side by side against one by one, and how time and memory grow with them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.measure import Effort, Measurement
from benchmarks.processes import measure_command

__all__ = ["seed_figures"]

SEED_COUNTS = (1, 2, 4)
STEPS_PER_EFFORT_STEP = 5  # of the effort: long enough that starting Python is not what is measured
N_SEED_ROUNDS = 3


def seed_figures(effort: Effort) -> Iterator[Measurement]:
    """``cida reproduce circle`` with one method: two seeds with two jobs, one to four in turn."""
    steps = STEPS_PER_EFFORT_STEP * effort.steps
    pairs = [(_run(2, 1, steps), _run(2, 2, steps)) for _ in range(N_SEED_ROUNDS)]
    in_turn, beside = (median(run[0] for run in runs) for runs in zip(*pairs, strict=True))
    ratio = median(one[0] / two[0] for one, two in pairs)
    words = f"{in_turn:.1f} s one by one, {beside:.1f} s side by side, start and report included"
    yield Measurement("2 seeds side by side", ratio, "x one by one", note=words)
    for seeds in SEED_COUNTS:
        seconds, peak_gb = _run(seeds, 1, steps)
        words = f"{seconds:.1f} s, {peak_gb:.2f} GB at most"
        yield Measurement(f"{seeds} seeds in turn", seconds / seeds, "s a seed", note=words)


def _run(seeds: int, jobs: int, steps: int) -> tuple[float, float]:
    """Seconds and most memory in GB of the whole command."""
    with tempfile.TemporaryDirectory() as folder:
        arguments: Sequence[str | Path] = [
            *("reproduce", "circle", "--methods", "histogram"),
            *("--seeds", str(seeds), "--jobs", str(jobs), "--steps", str(steps)),
            *("--out", Path(folder, "runs")),
        ]
        return measure_command(arguments)
