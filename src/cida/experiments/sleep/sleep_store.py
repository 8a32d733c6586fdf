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

from cida.experiments.sleep.signals import SEGMENT_RATE_HZ, SEGMENT_SECONDS
from cida.experiments.sleep.studies import INDEX_NAMES
from cida.io.arrays import map_array
from cida.io.files import write_atomically
from cida.io.json_decode import decode, from_dict, parse_json

__all__ = ["SegmentCounts", "SleepStore", "StoreEntry", "StoreSettings", "Subjects", "write_store"]

Array = np.ndarray[Any, Any]

STORE_SCHEMA_VERSION = 1
SAMPLES_PER_SEGMENT = round(SEGMENT_SECONDS * SEGMENT_RATE_HZ)
ARRAY_LAYOUTS = {
    "segments": ("<f2", (SAMPLES_PER_SEGMENT,)),
    "stages": ("<i1", ()),
    "subject": ("<i4", ()),
}


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
        rows = [(one.segments, one.unscored, one.gaps, one.cut) for one in night_counts]
        return cls(*(sum(column) for column in zip(*rows, strict=True)))


COUNT_FIELDS = tuple(field.name for field in fields(SegmentCounts))


@dataclass(frozen=True)
class Subjects:
    """The people of a store; ``subjects["age"]`` is an array, NaN where it is not known."""

    ids: tuple[str, ...]
    counts: tuple[SegmentCounts, ...]
    indices: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: str) -> Array:
        return self.indices[index]

    @classmethod
    def read(cls, path: Path) -> Subjects:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        counts = tuple(SegmentCounts(*(int(line[name]) for name in COUNT_FIELDS)) for line in lines)
        indices = {
            name: np.array([float(line[name] or "nan") for line in lines]) for name in INDEX_NAMES
        }
        return cls(tuple(line["subject"] for line in lines), counts, indices)


@dataclass(frozen=True)
class SleepStore:
    """Segments of 30 s at 10 Hz with their sleep stage, in order of subject and time.

    ``segments`` is float16 (rows, 300), ``stages`` the class of each row, ``subject`` the number of
    its line in ``subjects``; all three are read from disk as they are used.
    """

    folder: Path
    settings: StoreSettings
    segments: Array
    stages: Array
    subject: Array
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
        try:
            names = {field.name for field in fields(StoreSettings)}
            settings = from_dict(StoreSettings, {k: v for k, v in header.items() if k in names})
            counts = decode(dict[str, int], header.get("counts"), "counts")
            rows, people = counts["segments"], counts["subjects"]
            subjects = Subjects.read(folder / "subjects.csv")
            arrays = {name: map_array(folder / f"{name}.npy") for name in ARRAY_LAYOUTS}
        except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
            raise ValueError(
                f"the store {folder} is damaged ({error}); remove it and prepare it again."
            ) from None
        expected_layout = {
            name: ((rows, *shape), np.dtype(kind)) for name, (kind, shape) in ARRAY_LAYOUTS.items()
        }
        actual_layout = {name: (array.shape, array.dtype) for name, array in arrays.items()}
        n_counted = sum(night.segments for night in subjects.counts)
        if actual_layout != expected_layout or n_counted != rows or len(subjects) != people:
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
    if schema != STORE_SCHEMA_VERSION:
        raise ValueError(
            f"{folder / 'store.json'} has schema {schema}; this version of cida reads "
            f"{STORE_SCHEMA_VERSION}."
        )
    return dict(header)


@dataclass(frozen=True)
class StoreEntry:
    """A night that goes into a store; ``load`` gets its segments and stages when they are due."""

    subject: str
    indices: Mapping[str, float]
    counts: SegmentCounts
    load: Callable[[], tuple[Array, Array]]


def write_store(folder: Path, settings: StoreSettings, entries: Sequence[StoreEntry]) -> None:
    """All nights in this order; no more than one of them is in memory.

    The files are written beside the old ones, which stay until all are whole.
    """
    counts = SegmentCounts.total(entry.counts for entry in entries)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".store-") as temporary_folder:
        _write_arrays(Path(temporary_folder), entries, counts.segments)
        write_atomically(Path(temporary_folder, "subjects.csv"), _subjects_table(entries))
        header = {
            "schema": STORE_SCHEMA_VERSION,
            **asdict(settings),
            "rate_hz": SEGMENT_RATE_HZ,
            "segment_seconds": SEGMENT_SECONDS,
            "counts": {"subjects": len(entries), **asdict(counts)},
        }
        write_atomically(
            Path(temporary_folder, "store.json"), json.dumps(header, indent=2).encode() + b"\n"
        )
        for name in (*(f"{name}.npy" for name in ARRAY_LAYOUTS), "subjects.csv", "store.json"):
            os.replace(Path(temporary_folder, name), folder / name)


def _write_arrays(folder: Path, entries: Sequence[StoreEntry], rows: int) -> None:
    with ExitStack() as stack:
        files = {
            name: stack.enter_context((folder / f"{name}.npy").open("wb")) for name in ARRAY_LAYOUTS
        }
        for name, file in files.items():
            _write_array_header(file, name, rows)
        for number, entry in enumerate(entries):
            segments, stages = entry.load()
            subject = np.full(len(stages), number)
            for name, values in (("segments", segments), ("stages", stages), ("subject", subject)):
                files[name].write(values.astype(ARRAY_LAYOUTS[name][0]).tobytes())
        for file in files.values():
            file.flush()
            os.fsync(file.fileno())


def _write_array_header(file: BinaryIO, name: str, rows: int) -> None:
    """The header of an npy file, whose rows then follow: a full disk is an error, not a crash."""
    kind, shape = ARRAY_LAYOUTS[name]
    header = {"descr": kind, "fortran_order": False, "shape": (rows, *shape)}
    np.lib.format.write_array_header_1_0(file, header)


def _subjects_table(entries: Sequence[StoreEntry]) -> bytes:
    buffer = io.StringIO()
    lines = csv.writer(buffer, lineterminator="\n")
    lines.writerow(["subject", *COUNT_FIELDS, *INDEX_NAMES])
    for entry in entries:
        indices = [entry.indices[name] for name in INDEX_NAMES]
        cells = ["" if np.isnan(value) else repr(float(value)) for value in indices]
        lines.writerow([entry.subject, *asdict(entry.counts).values(), *cells])
    return buffer.getvalue().encode()
