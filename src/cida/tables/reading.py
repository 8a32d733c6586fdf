"""Tables in files, read as a stream of batches: CSV, Parquet, and the arrays of an npz file."""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from cida.tables.cells import NUMERIC, Kind, is_text, reads, texts
from cida.words import nearest, nearest_file

__all__ = ["CsvFile", "ParquetFile", "TableFile", "array_files", "check_names", "open_table"]

Array = np.ndarray[Any, Any]
Batch = Any  # a pyarrow.RecordBatch; pyarrow has no types

ROWS = 65_536  # of a batch, at most
BLOCK_BYTES = 1 << 20  # of a CSV file that are parsed at once; some thirty are read ahead


class TableFile(ABC):
    """A table that is read batch by batch, as often as needed; never whole."""

    path: Path
    names: tuple[str, ...]
    unreadable: Mapping[str, str]  # columns that no model reads, and why
    array: Array | None = None  # rows that are no vectors, beside the columns
    unlabelled: float | None = None  # a number that means no label

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """All rows of these columns in their order, a batch at a time."""

    @abstractmethod
    def kinds(self, columns: Sequence[str]) -> dict[str, Kind | None]:
        """What each column holds, judged by all of its rows; None where all are missing."""

    def place(self, row: int) -> str:
        """Where a row is, counted from 0, in words for a message."""
        return f"row {row + 1}"


def open_table(path: Path) -> TableFile:
    """The table in a file, by the file's suffix, or in a folder of npy files."""
    from cida.tables.arrays import ArraysFile  # it imports this module

    kinds: dict[str, type[CsvFile] | type[ParquetFile] | type[ArraysFile]] = {
        ".csv": CsvFile,
        ".tsv": CsvFile,
        ".parquet": ParquetFile,
        ".pq": ParquetFile,
        ".npz": ArraysFile,
    }
    if array_files(path):
        return ArraysFile(path)
    if not path.is_file():
        hint = nearest_file(path, kinds)
        raise ValueError(
            f"DATA is {path}, which is no file; {hint}give a .csv, .parquet or .npz file, or a "
            "folder with X.npy, y.npy and u.npy."
        )
    if path.suffix.lower() not in kinds:
        raise ValueError(
            f"DATA is {path}, and {path.suffix or 'a name without a suffix'} is not read; give a "
            ".csv, .parquet or .npz file."
        )
    return kinds[path.suffix.lower()](path)


def array_files(path: Path) -> dict[str, Path]:
    """The arrays X, y and u in a folder, each in an npy file of its name; none of anything else."""
    files = {name: path / f"{name}.npy" for name in ("X", "y", "u")}
    return {name: file for name, file in files.items() if path.is_dir() and file.is_file()}


class CsvFile(TableFile):
    """A CSV file in UTF-8. Cells are texts until all rows have told what kind they are.

    Commas separate the cells; semicolons or tabs if the first line has no comma.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.unreadable, self.delimiter = path, {}, ","
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                first = file.readline()
        except UnicodeDecodeError as error:
            raise self._fault(error) from None
        if path.suffix.lower() == ".tsv":
            self.delimiter = "\t"
        elif "," not in first:
            self.delimiter = ";" if ";" in first else "\t" if "\t" in first else ","
        header = next(self._records(), None)
        if header is None:
            raise ValueError(f"{path} is empty; its first line must name the columns.")
        self.names = _distinct(path, header[1])

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        last = self.names[-1]
        options = {
            "read_options": pa.csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False),
            "parse_options": pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            "convert_options": pa.csv.ConvertOptions(
                column_types=dict.fromkeys(self.names, pa.string()),
                strings_can_be_null=False,
                include_columns=[*columns, *([] if last in columns else [last])],
            ),
        }
        if next(islice(self._records(), 1, 2), None) is None:
            return  # no row, of which pyarrow would make an error
        try:
            end = ""
            with pa.csv.open_csv(self.path, **options) as reader:
                for batch in reader:
                    if len(batch):
                        end = batch.column(last)[-1].as_py()
                        yield batch.select(list(columns))
            self._check_closed(end)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise self._fault(error) from None

    def kinds(self, columns: Sequence[str]) -> dict[str, Kind | None]:
        possible = {name: list(NUMERIC) for name in columns}
        filled = dict.fromkeys(columns, False)
        for batch in self.batches(columns):
            for name, left in possible.items():
                if not left and filled[name]:
                    continue  # text for certain
                cells = texts(batch.column(name))
                filled[name] = filled[name] or cells.null_count < len(cells)
                left[:] = [kind for kind in left if reads(kind, cells)]
        return {
            name: (left[0] if left else "category") if filled[name] else None
            for name, left in possible.items()
        }

    def place(self, row: int) -> str:
        try:
            line, _ = next(islice(self._records(), row + 1, None))
        except (csv.Error, StopIteration):  # a cell too long for the csv module
            return super().place(row)
        return f"line {line}"

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Each record with the line it begins in; empty lines are skipped. Slow: for messages."""
        with self.path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            records, begin = csv.reader(file, delimiter=self.delimiter), 1
            for cells in records:
                if cells:
                    yield begin, cells
                begin = records.line_num + 1

    def _check_closed(self, end: str) -> None:
        """Refuses a quote that is open at the end: in the last column it swallows all that follows.

        A cell with a line end in it is quoted, so that in a whole file a quote is the last sign.
        """
        if "\n" not in end:
            return
        with self.path.open("rb") as file:
            file.seek(max(0, self.path.stat().st_size - 100))
            if file.read().rstrip(b"\r\n").endswith(b'"'):
                return
        line = max(begin for begin, _ in self._records())
        raise ValueError(f"{self.path} has a quote in line {line} that is not closed; close it.")

    def _fault(self, error: Exception) -> ValueError:
        """What is wrong and in which line: pyarrow tells neither for all faults."""
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    line.decode()
                except UnicodeDecodeError as broken:
                    return ValueError(
                        f"{self.path} has bytes in line {number} that are not UTF-8 "
                        f"({line[broken.start : broken.start + 1]!r}); save the whole file as "
                        "UTF-8."
                    )
        try:
            for begin, cells in self._records():
                if len(cells) != len(self.names):
                    hint = ", perhaps for a quote that is not closed"
                    return ValueError(
                        f"{self.path} has {_count(len(cells), 'cell')} in line {begin} and "
                        f"{_count(len(self.names), 'column')} in its first line"
                        f"{hint if any(chr(10) in cell for cell in cells) else ''}; correct the "
                        "line."
                    )
        except csv.Error:
            pass
        return ValueError(f"{self.path} cannot be read as CSV ({' '.join(str(error).split())}).")


class ParquetFile(TableFile):
    """A Parquet file; its columns keep their own types."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._naming_faults():
            found = pa.parquet.read_schema(path)
        self.names = _distinct(path, found.names)
        self.types = dict(zip(found.names, found.types, strict=True))
        self.unreadable = {
            name: f"its type is {kind}" for name, kind in self.types.items() if not _readable(kind)
        }

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        with self._naming_faults(), pa.parquet.ParquetFile(self.path, pre_buffer=False) as file:
            for batch in file.iter_batches(ROWS, columns=list(columns), use_threads=False):
                if len(batch):
                    batch.validate(full=True)  # texts that are no UTF-8 would fail further on
                    yield batch.select(list(columns))

    def kinds(self, columns: Sequence[str]) -> dict[str, Kind | None]:
        return {name: _kind(self.types[name]) for name in columns}

    @contextmanager
    def _naming_faults(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, UnicodeError) as error:
            why = " ".join(str(error).split())
            raise ValueError(f"{self.path} is no Parquet file, or is damaged ({why}).") from None


def check_names(role: str, asked: Collection[str], names: Sequence[str]) -> None:
    """Refuses columns that are not there, and names the nearest that is."""
    for name in asked:
        if name not in names:
            shown = ", ".join(" ".join(each.split()) for each in names[:12])
            shown += ", ..." if len(names) > 12 else ""
            hint = nearest(name, names)
            told = f"did you mean {hint}?" if hint else f"its columns are {shown}."
            raise ValueError(f"{role} is {name}, which is no column of DATA; {told}")


def _distinct(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise ValueError(f"{path} has two columns named {twice!r}; rename one.")
    return tuple(names)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _readable(kind: Any) -> bool:
    return pa.types.is_null(kind) or _kind(kind) is not None


def _kind(kind: Any) -> Kind | None:
    """What a column of this arrow type holds; None for no value and for what no model reads."""
    t = pa.types
    if t.is_boolean(kind):
        return "boolean"
    if t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind):
        return "number"
    if t.is_time(kind) or t.is_duration(kind):
        return "number"
    if t.is_date(kind) or t.is_timestamp(kind):
        return "date"
    return "category" if is_text(pa.nulls(0, kind)) else None
