"""The store: the segments of a whole study in files that are mapped, not loaded."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from cida.arrays import map_array
from cida.datasets.sleep.signals import RATE_HZ, SEGMENT_SECONDS
from cida.datasets.sleep.studies import INDICES
from cida.files import write_atomically
from cida.plain import checked, from_words, parse_json

__all__ = ["Counts", "Entry", "Settings", "SleepStore", "Subjects", "write_store"]

Array = np.ndarray[Any, Any]

SCHEMA = 1
WIDTH = round(SEGMENT_SECONDS * RATE_HZ)
ARRAYS = {"segments": ("<f2", (WIDTH,)), "stages": ("<i1", ()), "subject": ("<i4", ())}


@dataclass(frozen=True)
class Settings:
    """What a store was made from; nights of other settings do not go into it."""

    study: str
    simulated: bool
    channel: str | None
    columns: Mapping[str, str]


@dataclass(frozen=True)
class Counts:
    """The segments of a night that are kept, and the epochs that are not.

    ``unscored`` have no stage, ``gaps`` have a stage and no signal, ``cut`` are at an end that the
    recording or the annotation does not have.
    """

    segments: int
    unscored: int
    gaps: int
    cut: int

    @classmethod
    def total(cls, many: Iterable[Counts]) -> Counts:
        """Of all nights."""
        rows = [(one.segments, one.unscored, one.gaps, one.cut) for one in many]
        return cls(*(sum(column) for column in zip(*rows, strict=True)))


COUNTS = tuple(field.name for field in fields(Counts))


@dataclass(frozen=True)
class Subjects:
    """The people of a store; ``subjects["age"]`` is an array, NaN where it is not known."""

    ids: tuple[str, ...]
    counts: tuple[Counts, ...]
    indices: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: str) -> Array:
        return self.indices[index]

    @classmethod
    def read(cls, path: Path) -> Subjects:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        counts = tuple(Counts(*(int(line[name]) for name in COUNTS)) for line in lines)
        indices = {name: np.array([float(line[name] or "nan") for line in lines])
                   for name in INDICES}  # fmt: skip
        return cls(tuple(line["subject"] for line in lines), counts, indices)


@dataclass(frozen=True)
class SleepStore:
    """Segments of 30 s at 10 Hz with their sleep stage, in order of subject and time.

    ``segments`` is float16 (rows, 300), ``stages`` the class of each row, ``subject`` the number of
    its line in ``subjects``; all three are read from disk as they are used.
    """

    folder: Path
    settings: Settings
    segments: Array
    stages: Array
    subject: Array
    subjects: Subjects

    @property
    def study(self) -> str:
        """The study's name."""
        return self.settings.study

    @property
    def simulated(self) -> bool:
        """Whether these people exist in a computer alone."""
        return self.settings.simulated

    def __len__(self) -> int:
        return len(self.stages)

    def night(self, number: int) -> tuple[int, int]:
        """The first row of a subject's night, and how many it has."""
        first, last = np.searchsorted(self.subject, [number, number + 1])
        return int(first), int(last - first)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> SleepStore:
        """Maps the files; the segments are not read yet."""
        folder = Path(folder)
        header = _read_header(folder)
        try:
            names = {field.name for field in fields(Settings)}
            settings = from_words(Settings, {k: v for k, v in header.items() if k in names})
            counts = checked(dict[str, int], header.get("counts"), "counts")
            rows, people = counts["segments"], counts["subjects"]
            subjects = Subjects.read(folder / "subjects.csv")
            arrays = {name: map_array(folder / f"{name}.npy") for name in ARRAYS}
        except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
            raise ValueError(
                f"the store {folder} is damaged ({error}); remove it and prepare it again."
            ) from None
        right = {name: ((rows, *shape), np.dtype(kind)) for name, (kind, shape) in ARRAYS.items()}
        found = {name: (array.shape, array.dtype) for name, array in arrays.items()}
        counted = sum(night.segments for night in subjects.counts)
        if found != right or counted != rows or len(subjects) != people:
            raise ValueError(
                f"the files of the store {folder} do not agree; remove it and prepare it again."
            )
        return cls(folder, settings, subjects=subjects, **arrays)


def _read_header(folder: Path) -> dict[str, Any]:
    try:
        header = parse_json((folder / "store.json").read_bytes())
    except FileNotFoundError:
        raise ValueError(
            f"{folder} is no store of sleep segments: it has no store.json; "
            f"make one with cida data prepare-nsrr."
        ) from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder / 'store.json'} cannot be read ({error}).") from None
    schema = header.get("schema") if isinstance(header, dict) else None
    if schema != SCHEMA:
        raise ValueError(
            f"{folder / 'store.json'} has schema {schema}; this version of cida reads {SCHEMA}."
        )
    return dict(header)


@dataclass(frozen=True)
class Entry:
    """A night that goes into a store; ``load`` gets its segments and stages when they are due."""

    subject: str
    indices: Mapping[str, float]
    counts: Counts
    load: Callable[[], tuple[Array, Array]]


def write_store(folder: Path, settings: Settings, entries: Sequence[Entry]) -> None:
    """All nights in this order; no more than one of them is in memory.

    The files are written beside the old ones, which stay until all are whole.
    """
    counts = Counts.total(entry.counts for entry in entries)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".store-") as room:
        _write_arrays(Path(room), entries, counts.segments)
        write_atomically(Path(room, "subjects.csv"), _table(entries))
        header = {"schema": SCHEMA, **asdict(settings), "rate_hz": RATE_HZ,
                  "segment_seconds": SEGMENT_SECONDS,
                  "counts": {"subjects": len(entries), **asdict(counts)}}  # fmt: skip
        write_atomically(Path(room, "store.json"), json.dumps(header, indent=2).encode() + b"\n")
        for name in (*(f"{name}.npy" for name in ARRAYS), "subjects.csv", "store.json"):
            os.replace(Path(room, name), folder / name)


def _write_arrays(room: Path, entries: Sequence[Entry], rows: int) -> None:
    with ExitStack() as stack:
        files = {name: stack.enter_context((room / f"{name}.npy").open("wb")) for name in ARRAYS}
        for name, file in files.items():
            _start_array(file, name, rows)
        for number, entry in enumerate(entries):
            segments, stages = entry.load()
            subject = np.full(len(stages), number)
            for name, rows_of in (("segments", segments), ("stages", stages), ("subject", subject)):
                files[name].write(rows_of.astype(ARRAYS[name][0]).tobytes())
        for file in files.values():
            file.flush()
            os.fsync(file.fileno())


def _start_array(file: BinaryIO, name: str, rows: int) -> None:
    """The header of an npy file, whose rows then follow: a full disk is an error, not a crash."""
    kind, shape = ARRAYS[name]
    header = {"descr": kind, "fortran_order": False, "shape": (rows, *shape)}
    np.lib.format.write_array_header_1_0(file, header)


def _table(entries: Sequence[Entry]) -> bytes:
    made = io.StringIO()
    lines = csv.writer(made, lineterminator="\n")
    lines.writerow(["subject", *COUNTS, *INDICES])
    for entry in entries:
        indices = [entry.indices[name] for name in INDICES]
        cells = ["" if np.isnan(value) else repr(float(value)) for value in indices]
        lines.writerow([entry.subject, *asdict(entry.counts).values(), *cells])
    return made.getvalue().encode()
