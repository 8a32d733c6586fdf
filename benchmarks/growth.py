"""How time and memory grow: with rows of mapped files, numbers of u, classes and seeds."""

from __future__ import annotations

import re
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from benchmarks.measure import (
    Effort,
    Measurement,
    RoundTimings,
    measure_interleaved,
    read_clock,
    run_in_subprocess,
    step_ms,
)
from cida.array_types import Array
from cida.data import IndexedDataset
from cida.estimators import CIDAClassifier, CidaWarning
from cida.games import Game
from cida.io.arrays import advise_random_access, map_array
from cida.spaces import make_line_space
from cida.training import TrainingConfig, seeded

__all__ = [
    "GrowthMeasurement",
    "class_figures",
    "dimension_figures",
    "growth_figures",
    "mapped_rows",
    "measure_growth",
    "measure_steps",
    "memory_mb",
    "row_figures",
    "write_rows",
]

T = TypeVar("T")

GROWTH_ROW_COUNTS = (10_000, 100_000, 1_000_000, 10_000_000)
MIN_FLAT_ROWS = 100_000  # below, what is done once counts for more than what is done a row
MAX_FLAT_RATIO = 1.2
N_GROWTH_COLUMNS = 20
INDEX_DIMENSIONS = (1, 2, 4, 8, 16)
CLASS_COUNTS = (2, 10, 100, 1000)
N_GAME_ROWS = 20_000
CHUNK_ROWS = 100_000  # that are written or predicted at once
GROWTH_FIT_STEPS = 50  # of a fit whose other costs are asked for
GROWTH_BATCH_SIZE = 128
ROWS_PER_STEP = (
    GROWTH_BATCH_SIZE + GROWTH_BATCH_SIZE // 2
)  # rows of a step: everyone's and the source's


@dataclass(frozen=True)
class GrowthMeasurement:
    """What so many mapped rows took, in microseconds and megabytes.

    ``fit_us`` is of one row of the file in all that comes before and after the steps of a fit,
    ``predict_us`` of one that is predicted. ``anon_mb`` is the most memory of its own that the
    process had (RssAnon), ``more_mb`` what of that is beyond what Python, torch and a fit of 2,000
    rows had left when it began.
    """

    rows: int
    fit_us: float
    predict_us: float
    peak_anon_mb: float
    added_mb: float


def growth_figures(effort: Effort) -> Iterator[Measurement]:
    """All that grows in a training."""
    yield from row_figures(effort)
    yield from dimension_figures(effort)
    yield from class_figures(effort)


# --- rows ----------------------------------------------------------------------------------------


def row_figures(effort: Effort, counts: Sequence[int] = GROWTH_ROW_COUNTS) -> Iterator[Measurement]:
    """Time and memory with the rows of mapped files, in processes of their own."""
    threads = torch.get_num_threads()
    with tempfile.TemporaryDirectory() as name:
        folders = {rows: Path(name, str(rows)) for rows in counts}
        for rows, folder in folders.items():
            folder.mkdir()
            write_rows(folder, rows)
        measurements = [
            _require_result(run_in_subprocess(measure_growth, folder, threads))
            for folder in folders.values()
        ]
        step_timings = _require_result(
            run_in_subprocess(measure_steps, folders, effort.scaled_steps(4), threads)
        )
    for one in measurements:
        what = f"{one.rows:,} rows"
        time_us = 1000 * step_timings.median_ms(str(one.rows)) / ROWS_PER_STEP
        yield Measurement(f"{what}, training", time_us, "us a dealt row")
        yield Measurement(f"{what}, beside the steps", one.fit_us, "us a row")
        yield Measurement(f"{what}, prediction", one.predict_us, "us a row")
        beside = f"{one.added_mb:.0f} MB beyond Python, torch and a small fit"
        yield Measurement(f"{what}, memory of its own", one.peak_anon_mb, "MB", note=beside)
    flat = [one for one in measurements if one.rows >= MIN_FLAT_ROWS]
    if len(flat) > 1:
        first, last = flat[0], flat[-1]
        ratios = {
            "time of a dealt row": step_timings.median_ratio(str(last.rows), str(first.rows)),
            "time beside the steps, a row": last.fit_us / first.fit_us,
            "time of a predicted row": last.predict_us / first.predict_us,
            "memory of its own": last.peak_anon_mb / first.peak_anon_mb,
        }
        words = f"from {first.rows:,} to {last.rows:,} rows"
        for what, ratio in ratios.items():
            yield Measurement(f"{what}, {words}", ratio, "times", MAX_FLAT_RATIO)


def _require_result(result: T | None) -> T:
    if result is None:
        raise ChildProcessError("a training on mapped rows was killed; is there memory enough?")
    return result


def write_rows(folder: Path, rows: int, seed: int = 0) -> None:
    """X, y and u of a drifting table as npy files, written part by part."""
    generator = np.random.default_rng(seed)
    shapes = {"X": ("<f4", (rows, N_GROWTH_COLUMNS)), "y": ("<i8", (rows,)), "u": ("<f8", (rows,))}
    arrays = {
        name: np.lib.format.open_memmap(folder / f"{name}.npy", "w+", np.dtype(kind), shape)
        for name, (kind, shape) in shapes.items()
    }
    for start in range(0, rows, CHUNK_ROWS):
        count = min(CHUNK_ROWS, rows - start)
        for name, values in _draw_rows(count, generator).items():
            arrays[name][start : start + count] = values


def _draw_rows(rows: int, generator: np.random.Generator) -> dict[str, Array]:
    u = generator.uniform(0, 1, rows)
    x = generator.standard_normal((rows, N_GROWTH_COLUMNS), dtype=np.float32)
    y = np.where(u > 0.5, -1, x[:, 0] + x[:, 1] > 0)
    x += (3 * u[:, None] * (np.arange(N_GROWTH_COLUMNS) % 3)).astype(np.float32)
    return {"X": x, "y": y, "u": u}


def mapped_rows(folder: Path) -> IndexedDataset:
    """The rows of `write_rows`; nothing but what a batch asks for is in memory."""
    x, y, u = (
        torch.from_numpy(advise_random_access(map_array(folder / f"{name}.npy", "c")))
        for name in ("X", "y", "u")
    )
    labelled = torch.from_numpy(np.memmap(folder / "labelled", bool, "w+", shape=(len(y),)))
    for start in range(0, len(y), CHUNK_ROWS):
        labelled[start : start + CHUNK_ROWS] = y[start : start + CHUNK_ROWS] >= 0
    return IndexedDataset(x, y, u, labelled)


def measure_growth(folder: Path, threads: int) -> GrowthMeasurement:
    """A fit of few steps and a prediction of these rows, in this process."""
    torch.set_num_threads(threads)
    _warm_up()
    before = memory_mb()
    with warnings.catch_warnings(), track_peak_memory() as most:
        warnings.simplefilter("ignore", CidaWarning)
        started = read_clock()
        rows = mapped_rows(folder)
        times: list[float] = []
        model = _model(
            steps=GROWTH_FIT_STEPS, callbacks=[lambda event: times.append(read_clock())]
        ).fit_dataset(rows)
        steps = (
            (times[-1] - times[0]) * GROWTH_FIT_STEPS / (GROWTH_FIT_STEPS - 1)
        )  # an event a step
        beside = read_clock() - started - steps
        few = min(len(rows), 10 * CHUNK_ROWS)
        started = read_clock()
        for start in range(0, few, CHUNK_ROWS):
            place = slice(start, start + CHUNK_ROWS)
            model.predict(rows.x[place].numpy(), domain_index=rows.u[place].numpy())
        predicted = read_clock() - started
    return GrowthMeasurement(
        rows=len(rows),
        fit_us=1e6 * beside / len(rows),
        predict_us=1e6 * predicted / few,
        peak_anon_mb=most[0],
        added_mb=most[0] - before,
    )


def measure_steps(folders: Mapping[int, Path], steps: int, threads: int) -> RoundTimings:
    """Milliseconds of a step on the rows of each folder, by how many they are, in turns."""
    torch.set_num_threads(threads)
    training = TrainingConfig(
        steps=2 * steps,
        batch_size=GROWTH_BATCH_SIZE,
        source_batch_size=GROWTH_BATCH_SIZE // 2,
        events=2,
    )
    measures = {}
    with seeded(0), warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        for count, folder in folders.items():
            rows = mapped_rows(folder)
            game = _model(steps=1).fit_dataset(rows).game_
            measures[str(count)] = partial(step_ms, game, rows, training, read_clock)
        return measure_interleaved(measures)


def _model(steps: int, **more: Any) -> CIDAClassifier:
    return CIDAClassifier(
        "histogram",
        coordinates="raw",
        steps=steps,
        random_state=0,
        batch_size=GROWTH_BATCH_SIZE,
        **more,
    )


def _warm_up() -> None:
    """What torch makes once is not the rows': a small fit and a prediction before them."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        write_rows(Path(folder), 2000)
        rows = mapped_rows(Path(folder))
        model = _model(steps=20).fit_dataset(rows)
        model.predict(rows.x.numpy(), domain_index=rows.u.numpy())


@contextmanager
def track_peak_memory() -> Iterator[list[float]]:
    """Inside, a thread looks how much memory of its own the process has, and keeps the most.

    What is mapped from files is not counted: the system takes it back when it needs it.
    """
    peak, done = [memory_mb()], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            peak[0] = max(peak[0], memory_mb())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()
        peak[0] = max(peak[0], memory_mb())


def memory_mb() -> float:
    """RssAnon of this process, as Linux counts it."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 0.0 if found is None else int(found[1]) / 1000


# --- numbers of u, classes -----------------------------------------------------------------------


def dimension_figures(effort: Effort) -> Iterator[Measurement]:
    """A step with u of several numbers, and how many times that with one."""
    yield from _compare_with_first(
        "u of {} numbers", INDEX_DIMENSIONS, _game_by_index_width, effort
    )


def class_figures(effort: Effort) -> Iterator[Measurement]:
    """A step with many classes, and how many times that with two."""
    yield from _compare_with_first("{} classes", CLASS_COUNTS, _game_by_classes, effort)


def _compare_with_first(
    words: str,
    counts: Sequence[int],
    make_game: Callable[[int], tuple[Game, IndexedDataset]],
    effort: Effort,
) -> Iterator[Measurement]:
    steps = effort.scaled_steps(4)
    training = TrainingConfig(steps=2 * steps, events=2)
    with seeded(0):
        games = {str(count): make_game(count) for count in counts}
        measures = {
            name: partial(step_ms, game, rows, training, read_clock)
            for name, (game, rows) in games.items()
        }
        timings = measure_interleaved(measures)
    for count in counts:
        ratio = timings.median_ratio(str(count), str(counts[0]))
        beside = f"{timings.median_ms(str(count)):.2f} ms a step"
        yield Measurement(words.format(count), ratio, f"x that of {counts[0]}", note=beside)


def _game_by_index_width(numbers: int) -> tuple[Game, IndexedDataset]:
    return _make_game(numbers, 2)


def _game_by_classes(classes: int) -> tuple[Game, IndexedDataset]:
    return _make_game(1, classes)


def _make_game(numbers: int, classes: int) -> tuple[Game, IndexedDataset]:
    generator = np.random.default_rng(0)
    u = torch.from_numpy(generator.uniform(0, 1, (N_GAME_ROWS, numbers)))
    x = torch.from_numpy(
        generator.standard_normal((N_GAME_ROWS, N_GROWTH_COLUMNS), dtype=np.float32)
    )
    y = torch.from_numpy(generator.integers(0, classes, N_GAME_ROWS))
    y[:classes] = torch.arange(classes)
    labelled = (u[:, 0] < 0.5) | (torch.arange(N_GAME_ROWS) < classes)
    rows = IndexedDataset(x, y, u, labelled)
    model = _model(steps=1).set_params(space=make_line_space(numbers))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        return model.fit_dataset(rows).game_, rows
