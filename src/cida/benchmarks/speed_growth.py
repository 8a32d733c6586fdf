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

from cida.arrays import map_array
from cida.batch import Rows
from cida.benchmarks.speed import (
    Effort,
    Figure,
    Times,
    clock,
    in_a_child,
    in_turns,
    step_ms,
)
from cida.estimators import CIDAClassifier, CidaWarning
from cida.games import Game
from cida.scratch import parts, to_be_dealt
from cida.space import line_space
from cida.training import Training, isolated

__all__ = [
    "Grown",
    "class_figures",
    "dealt_times",
    "dimension_figures",
    "grown",
    "growth_figures",
    "mapped_rows",
    "memory_mb",
    "row_figures",
    "write_rows",
]

Array = np.ndarray[Any, Any]
T = TypeVar("T")

ROWS = (10_000, 100_000, 1_000_000, 10_000_000)
FLAT_FROM = 100_000  # below, what is done once counts for more than what is done a row
FLAT = 1.2
COLUMNS = 20
DIMENSIONS = (1, 2, 4, 8, 16)
CLASSES = (2, 10, 100, 1000)
FEW_ROWS = 20_000
PREDICTED = 100_000  # rows at a time
STEPS = 50  # of a fit whose other costs are asked for
BATCH = 128
DEALT = BATCH + BATCH // 2  # rows of a step: everyone's and the source's


@dataclass(frozen=True)
class Grown:
    """What so many mapped rows took, in microseconds and megabytes.

    ``fit_us`` is of one row of the file in all that comes before and after the steps of a fit,
    ``predict_us`` of one that is predicted. ``anon_mb`` is the most memory of its own that the
    process had (RssAnon), ``more_mb`` what of that is beyond what Python, torch and a fit of 2,000
    rows had left when it began.
    """

    rows: int
    fit_us: float
    predict_us: float
    anon_mb: float
    more_mb: float


def growth_figures(effort: Effort) -> Iterator[Figure]:
    """All that grows in a training."""
    yield from row_figures(effort)
    yield from dimension_figures(effort)
    yield from class_figures(effort)


# --- rows ----------------------------------------------------------------------------------------


def row_figures(effort: Effort, counts: Sequence[int] = ROWS) -> Iterator[Figure]:
    """Time and memory with the rows of mapped files, in processes of their own."""
    threads = torch.get_num_threads()
    with tempfile.TemporaryDirectory() as name:
        folders = {rows: Path(name, str(rows)) for rows in counts}
        for rows, folder in folders.items():
            folder.mkdir()
            write_rows(folder, rows)
        found = [_whole(in_a_child(grown, folder, threads)) for folder in folders.values()]
        dealt = _whole(in_a_child(dealt_times, folders, effort.share(4), threads))
    for one in found:
        what = f"{one.rows:,} rows"
        time_us = 1000 * dealt.ms(str(one.rows)) / DEALT
        yield Figure(f"{what}, training", time_us, "us a dealt row")
        yield Figure(f"{what}, beside the steps", one.fit_us, "us a row")
        yield Figure(f"{what}, prediction", one.predict_us, "us a row")
        beside = f"{one.more_mb:.0f} MB beyond Python, torch and a small fit"
        yield Figure(f"{what}, memory of its own", one.anon_mb, "MB", beside=beside)
    flat = [one for one in found if one.rows >= FLAT_FROM]
    if len(flat) > 1:
        first, last = flat[0], flat[-1]
        ratios = {
            "time of a dealt row": dealt.ratio(str(last.rows), str(first.rows)),
            "time beside the steps, a row": last.fit_us / first.fit_us,
            "time of a predicted row": last.predict_us / first.predict_us,
            "memory of its own": last.anon_mb / first.anon_mb,
        }
        words = f"from {first.rows:,} to {last.rows:,} rows"
        for what, ratio in ratios.items():
            yield Figure(f"{what}, {words}", ratio, "times", FLAT)


def _whole(found: T | None) -> T:
    if found is None:
        raise ChildProcessError("a training on mapped rows was killed; is there memory enough?")
    return found


def write_rows(folder: Path, rows: int, seed: int = 0) -> None:
    """X, y and u of a drifting table as npy files, written part by part."""
    generator = np.random.default_rng(seed)
    shapes = {"X": ("<f4", (rows, COLUMNS)), "y": ("<i8", (rows,)), "u": ("<f8", (rows,))}
    files = {name: (folder / f"{name}.npy").open("wb") for name in shapes}
    for name, (kind, shape) in shapes.items():
        header = {"descr": kind, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(files[name], header)
    for part in parts(rows):
        for name, values in _part(part.stop - part.start, generator).items():
            files[name].write(values.astype(shapes[name][0]).tobytes())
    for file in files.values():
        file.close()


def _part(rows: int, generator: np.random.Generator) -> dict[str, Array]:
    u = generator.uniform(0, 1, rows)
    x = generator.standard_normal((rows, COLUMNS), dtype=np.float32)
    y = np.where(u > 0.5, -1, x[:, 0] + x[:, 1] > 0)
    x += (3 * u[:, None] * (np.arange(COLUMNS) % 3)).astype(np.float32)
    return {"X": x, "y": y, "u": u}


def mapped_rows(folder: Path) -> Rows:
    """The rows of `write_rows`; nothing but what a batch asks for is in memory."""
    x, y, u = (
        torch.from_numpy(to_be_dealt(map_array(folder / f"{name}.npy", "c")))
        for name in ("X", "y", "u")
    )
    labelled = torch.from_numpy(np.memmap(folder / "labelled", bool, "w+", shape=(len(y),)))
    for part in parts(len(y)):
        labelled[part] = y[part] >= 0
    return Rows(x, y, u, labelled)


def grown(folder: Path, threads: int) -> Grown:
    """A fit of few steps and a prediction of these rows, in this process."""
    torch.set_num_threads(threads)
    _warm_up()
    before = memory_mb()
    with warnings.catch_warnings(), watching_memory() as most:
        warnings.simplefilter("ignore", CidaWarning)
        started = clock()
        rows = mapped_rows(folder)
        times: list[float] = []
        model = _model(steps=STEPS, callbacks=[lambda event: times.append(clock())]).fit_rows(rows)
        steps = (times[-1] - times[0]) * STEPS / (STEPS - 1)  # an event a step
        beside = clock() - started - steps
        few = min(len(rows), 10 * PREDICTED)
        started = clock()
        for start in range(0, few, PREDICTED):
            place = slice(start, start + PREDICTED)
            model.predict(rows.x[place].numpy(), domain_index=rows.u[place].numpy())
        predicted = clock() - started
    return Grown(
        rows=len(rows),
        fit_us=1e6 * beside / len(rows),
        predict_us=1e6 * predicted / few,
        anon_mb=most[0],
        more_mb=most[0] - before,
    )


def dealt_times(folders: Mapping[int, Path], steps: int, threads: int) -> Times:
    """Milliseconds of a step on the rows of each folder, by how many they are, in turns."""
    torch.set_num_threads(threads)
    training = Training(steps=2 * steps, batch_size=BATCH, source_batch_size=BATCH // 2, events=2)
    measures = {}
    with isolated(0), warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        for count, folder in folders.items():
            rows = mapped_rows(folder)
            game = _model(steps=1).fit_rows(rows).game_
            measures[str(count)] = partial(step_ms, game, rows, training, clock)
        return in_turns(measures)


def _model(steps: int, **more: Any) -> CIDAClassifier:
    return CIDAClassifier(
        "histogram", index_in_encoder=False, steps=steps, random_state=0, batch_size=BATCH, **more
    )


def _warm_up() -> None:
    """What torch makes once is not the rows': a small fit and a prediction before them."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        write_rows(Path(folder), 2000)
        rows = mapped_rows(Path(folder))
        model = _model(steps=20).fit_rows(rows)
        model.predict(rows.x.numpy(), domain_index=rows.u.numpy())


@contextmanager
def watching_memory() -> Iterator[list[float]]:
    """Inside, a thread looks how much memory of its own the process has, and keeps the most.

    What is mapped from files is not counted: the system takes it back when it needs it.
    """
    most, done = [memory_mb()], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            most[0] = max(most[0], memory_mb())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield most
    finally:
        done.set()
        thread.join()
        most[0] = max(most[0], memory_mb())


def memory_mb() -> float:
    """RssAnon of this process, as Linux counts it."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 0.0 if found is None else int(found[1]) / 1000


# --- numbers of u, classes -----------------------------------------------------------------------


def dimension_figures(effort: Effort) -> Iterator[Figure]:
    """A step with u of several numbers, and how many times that with one."""
    yield from _against_first("u of {} numbers", DIMENSIONS, _indexed, effort)


def class_figures(effort: Effort) -> Iterator[Figure]:
    """A step with many classes, and how many times that with two."""
    yield from _against_first("{} classes", CLASSES, _classed, effort)


def _against_first(
    words: str, counts: Sequence[int], made: Callable[[int], tuple[Game, Rows]], effort: Effort
) -> Iterator[Figure]:
    steps = effort.share(4)
    training = Training(steps=2 * steps, events=2)
    with isolated(0):
        games = {str(count): made(count) for count in counts}
        measures = {
            name: partial(step_ms, game, rows, training, clock)
            for name, (game, rows) in games.items()
        }
        found = in_turns(measures)
    for count in counts:
        ratio = found.ratio(str(count), str(counts[0]))
        beside = f"{found.ms(str(count)):.2f} ms a step"
        yield Figure(words.format(count), ratio, f"x that of {counts[0]}", beside=beside)


def _indexed(numbers: int) -> tuple[Game, Rows]:
    return _played(numbers, 2)


def _classed(classes: int) -> tuple[Game, Rows]:
    return _played(1, classes)


def _played(numbers: int, classes: int) -> tuple[Game, Rows]:
    generator = np.random.default_rng(0)
    u = torch.from_numpy(generator.uniform(0, 1, (FEW_ROWS, numbers)))
    x = torch.from_numpy(generator.standard_normal((FEW_ROWS, COLUMNS), dtype=np.float32))
    y = torch.from_numpy(generator.integers(0, classes, FEW_ROWS))
    y[:classes] = torch.arange(classes)
    labelled = (u[:, 0] < 0.5) | (torch.arange(FEW_ROWS) < classes)
    rows = Rows(x, y, u, labelled)
    model = _model(steps=1).set_params(space=line_space(numbers))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        return model.fit_rows(rows).game_, rows
