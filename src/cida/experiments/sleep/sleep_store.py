"""The store: the segments of a whole study in files that are mapped, not loaded."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from cida.experiments.sleep.recordings import SEGMENT_RATE_HZ, SEGMENT_SECONDS
from cida.experiments.sleep.studies import INDEX_NAMES
from cida.io.arrays import map_array
from cida.io.files import write_atomically
from cida.io.json_decode import decode, from_dict, parse_json

STORE_SCHEMA_VERSION = 1
SEGMENT_SHAPE = (round(SEGMENT_SECONDS * SEGMENT_RATE_HZ),)
ARRAY_LAYOUTS = {"segments": ("<f2", SEGMENT_SHAPE), "stages": ("<i1", ()), "subject": ("<i4", ())}


@dataclass(frozen=True)
class StoreSettings:
    """What a store was made from; nights of other settings do not go into it."""

    study: str
    simulated: bool
    channel: str | None
    columns: Mapping[str, str]


@dataclass(frozen=True)
class SegmentCounts:
    """The segments of a night that are kept, and the epochs that are not.

    ``unscored`` have no stage, ``gaps`` have a stage and no signal, ``cut`` are at an end that the
    recording or the annotation does not have.
    """

    segments: int
    unscored: int
    gaps: int
    cut: int

    @classmethod
    def total(cls, night_counts: Iterable[SegmentCounts]) -> SegmentCounts:
        """Of all nights."""
        rows = [astuple(counts) for counts in night_counts]
        return cls(*map(sum, zip(*rows, strict=True)))


COUNT_FIELDS = tuple(field.name for field in fields(SegmentCounts))


@dataclass(frozen=True)
class Subjects:
    """The people of a store; ``subjects["age"]`` is an array, NaN where it is not known."""

    ids: tuple[str, ...]
    counts: tuple[SegmentCounts, ...]
    indices: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: str) -> np.ndarray:
        return self.indices[index]

    def stack(self, names: Sequence[str]) -> np.ndarray:
        """These indices of everybody, a column each."""
        return np.stack([self.indices[name] for name in names], axis=1)

    @classmethod
    def read(cls, path: Path) -> Subjects:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        counts = tuple(SegmentCounts(*(int(line[name]) for name in COUNT_FIELDS)) for line in lines)
        indices = {n: np.array([float(line[n] or "nan") for line in lines]) for n in INDEX_NAMES}
        return cls(tuple(line["subject"] for line in lines), counts, indices)


@dataclass(frozen=True)
class SleepStore:
    """Segments of 30 s at 10 Hz with their sleep stage, in order of subject and time.

    ``segments`` is float16 (rows, 300), ``stages`` the class of each row, ``subject`` the number of
    its line in ``subjects``; all three are read from disk as they are used.
    """

    folder: Path
    settings: StoreSettings
    segments: np.ndarray
    stages: np.ndarray
    subject: np.ndarray
    subjects: Subjects

    @property
    def study(self) -> str:
        """The study's name."""
        return self.settings.study

    @property
    def is_simulated(self) -> bool:
        """Whether these people exist in a computer alone."""
        return self.settings.simulated

    def __len__(self) -> int:
        return len(self.stages)

    def night_rows(self, number: int) -> tuple[int, int]:
        """The first row of a subject's night, and how many it has."""
        first, last = np.searchsorted(self.subject, [number, number + 1])
        return int(first), int(last - first)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> SleepStore:
        """Maps the files; the segments are not read yet."""
        folder = Path(folder)
        header = _read_header(folder)
        names = {field.name for field in fields(StoreSettings)}
        try:
            settings = from_dict(StoreSettings, {k: v for k, v in header.items() if k in names})
            counts = decode(dict[str, int], header.get("counts"), "counts")
            rows, people = counts["segments"], counts["subjects"]
            subjects = Subjects.read(folder / "subjects.csv")
            arrays = {name: map_array(folder / f"{name}.npy") for name in ARRAY_LAYOUTS}
        except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
            problem = f"the store {folder} is damaged ({error})"
            raise ValueError(f"{problem}; remove it and prepare it again.") from None
        layouts = ARRAY_LAYOUTS.values()
        expected_layout = [((rows, *shape), np.dtype(kind)) for kind, shape in layouts]
        actual_layout = [(array.shape, array.dtype) for array in arrays.values()]
        n_counted = sum(night.segments for night in subjects.counts)
        if actual_layout != expected_layout or n_counted != rows or len(subjects) != people:
            problem = f"the files of the store {folder} do not agree"
            raise ValueError(f"{problem}; remove it and prepare it again.")
        return cls(folder, settings, subjects=subjects, **arrays)


def _read_header(folder: Path) -> dict[str, Any]:
    try:
        header = parse_json((folder / "store.json").read_bytes())
    except FileNotFoundError:
        raise ValueError(
            f"{folder} is not a store of sleep segments: it has no store.json; "
            f"make one with cida data prepare-nsrr."
        ) from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder / 'store.json'} cannot be read ({error}).") from None
    schema = header.get("schema") if isinstance(header, dict) else None
    if schema != STORE_SCHEMA_VERSION:
        readable = f"this version of cida reads {STORE_SCHEMA_VERSION}"
        raise ValueError(f"{folder / 'store.json'} has schema {schema}; {readable}.")
    return dict(header)


@dataclass(frozen=True)
class StoreEntry:
    """A night that goes into a store; ``load`` gets its segments and stages when they are due."""

    subject: str
    indices: Mapping[str, float]
    counts: SegmentCounts
    load: Callable[[], tuple[np.ndarray, np.ndarray]]


def write_store(folder: Path, settings: StoreSettings, entries: Sequence[StoreEntry]) -> None:
    """All nights in this order; no more than one of them is in memory.

    The files are written beside the old ones, which stay until all are whole.
    """
    counts = SegmentCounts.total(entry.counts for entry in entries)
    header = {
        "schema": STORE_SCHEMA_VERSION,
        **asdict(settings),
        "rate_hz": SEGMENT_RATE_HZ,
        "segment_seconds": SEGMENT_SECONDS,
        "counts": {"subjects": len(entries), **asdict(counts)},
    }
    with tempfile.TemporaryDirectory(dir=folder, prefix=".store-") as temporary_folder:
        new = Path(temporary_folder)
        _write_arrays(new, entries, counts.segments)
        write_atomically(new / "subjects.csv", _subjects_table(entries))
        write_atomically(new / "store.json", json.dumps(header, indent=2).encode() + b"\n")
        for name in (*(f"{name}.npy" for name in ARRAY_LAYOUTS), "subjects.csv", "store.json"):
            os.replace(new / name, folder / name)


def _write_arrays(folder: Path, entries: Sequence[StoreEntry], rows: int) -> None:
    """As npy files, a header whose rows then follow: a full disk is an error, not a crash."""
    with ExitStack() as stack:
        files = {}
        for name, (kind, shape) in ARRAY_LAYOUTS.items():
            files[name] = stack.enter_context((folder / f"{name}.npy").open("wb"))
            header = {"descr": kind, "fortran_order": False, "shape": (rows, *shape)}
            np.lib.format.write_array_header_1_0(files[name], header)
        for number, entry in enumerate(entries):
            segments, stages = entry.load()
            arrays = (segments, stages, np.full(len(stages), number))
            for (name, (kind, _)), values in zip(ARRAY_LAYOUTS.items(), arrays, strict=True):
                files[name].write(values.astype(kind).tobytes())
        for file in files.values():
            file.flush()
            os.fsync(file.fileno())


def _subjects_table(entries: Sequence[StoreEntry]) -> bytes:
    lines: list[list[Any]] = [["subject", *COUNT_FIELDS, *INDEX_NAMES]]
    for entry in entries:
        indices = [entry.indices[name] for name in INDEX_NAMES]
        cells = ["" if np.isnan(value) else repr(float(value)) for value in indices]
        lines.append([entry.subject, *astuple(entry.counts), *cells])
    return format_csv(lines)


def format_csv(lines: Iterable[Iterable[Any]]) -> bytes:
    """These lines as a file of comma-separated values."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(lines)
    return buffer.getvalue().encode()
