"""How much memory does training take, of cohorts that are larger and larger?

    python examples/sleep_memory.py --times 1 4 10 --limit 1.5

The simulated SOF cohort (`cida reproduce sleep-intra` makes it), its segments written so many times
over, is trained on in a process of its own that may not have more than so many GB for itself: a
cohort of 2.4 GB that were loaded would not fit. Pages of the mapped file are the system's to take
back and do not count. What grows is what is known of each segment, not the segments. Linux alone.
"""

import argparse
import resource
import tempfile
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch

from cida.experiments.registry import TASK_SPECS
from cida.experiments.sleep.sleep_data import NightDataset, open_cohort
from cida.experiments.spec import build_recipes

TASK = "sleep-intra/sof-extrapolation"
OLDEST_SOURCE = 82
GB = 1e9


def own_memory() -> float:
    """What this process has for itself now, in GB."""
    words = Path("/proc/self/status").read_text().split()
    return 1024 * int(words[words.index("RssAnon:") + 1]) / GB


class Peak(threading.Thread):
    """The most that was seen, looking a hundred times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self.over = 0.0, threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.01):
            self.most = max(self.most, own_memory())


def repeated(times: int, path: Path) -> NightDataset:
    """The cohort's rows so many times over, from one file."""
    store = open_cohort("sof", None)
    rows = len(store)
    many = np.lib.format.open_memmap(path, "w+", "<f2", (times * rows, store.segments.shape[1]))
    for start in range(0, times * rows, rows):
        many[start : start + rows] = store.segments
    many.flush()
    age = torch.from_numpy(store.subjects["age"][store.subject]).repeat(times)
    return NightDataset(
        [np.load(path, mmap_mode="r")],
        torch.zeros(times * rows, dtype=torch.int8),
        torch.arange(times * rows),
        torch.from_numpy(np.array(store.stages)).repeat(times),
        age[:, None],
        age <= OLDEST_SOURCE,
    )


def trained(times: int, steps: int, limit: float) -> tuple[float, int, float]:
    """GB on disk, segments, and the most memory in GB."""
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_DATA, (int(limit * GB), int(limit * GB)))
    with tempfile.TemporaryDirectory(dir=".") as folder:
        rows = repeated(times, Path(folder) / "segments.npy")
        peak = Peak()
        peak.start()
        build_recipes(TASK_SPECS[TASK], "best")["pcida"].with_settings(steps=steps).build_model(
            0
        ).fit_dataset(rows)
        peak.over.set()
        return rows.segments[0].nbytes / GB, len(rows), peak.most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, nargs="+", default=[1, 4, 10])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--limit", type=float, default=1.5)
    given = parser.parse_args()
    print("| segments | on disk, GB | most memory, GB |\n|---|---|---|")
    for times in given.times:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            disk, rows, most = pool.submit(trained, times, given.steps, given.limit).result()
        print(f"| {rows:,} | {disk:.1f} | {most:.2f} |", flush=True)


if __name__ == "__main__":
    main()
