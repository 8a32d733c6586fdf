"""Tables in files or in memory, read as a stream of batches: CSV, Parquet, frames."""

from __future__ import annotations

import csv
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from cida.array_types import Array
from cida.errors import closest_match, did_you_mean_file, error_summary
from cida.tables.cells import NUMERIC_KINDS, ColumnKind, can_parse, is_text, normalize_text

__all__ = ["MAX_BATCH_ROWS", "TableSource", "check_column_names", "find_array_files", "open_table"]

Batch = Any  # a pyarrow.RecordBatch; pyarrow has no types

MAX_BATCH_ROWS = 65_536  # of a batch, at most
CSV_BLOCK_BYTES = 1 << 20  # of a CSV file that are parsed at once; some thirty are read ahead


class TableSource(ABC):
    """A table that is read batch by batch, as often as needed; never whole."""

    path: Path
    column_names: tuple[str, ...]
    types: Mapping[str, Any]  # arrow types of columns that are no texts in a file
    unreadable: Mapping[str, str]  # columns that no model reads, and why
    input_array: Array | None = None  # rows that are no vectors, beside the columns
    missing_label: float | None = None  # a number that means no label
    default_label: str = ""  # of a source that names its label and index itself
    default_index: tuple[str, ...] = ()

    @abstractmethod
    def iter_batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """All rows of these columns in their order, a batch at a time."""

    def infer_kinds(self, columns: Sequence[str]) -> dict[str, ColumnKind | None]:
        """What each column holds, judged by all of its rows; None where all are missing."""
        return {name: _kind_of_type(self.types[name]) for name in columns}

    def describe_row(self, row: int) -> str:
        """Where a row is, counted from 0, in words for a message."""
        return f"row {row + 1}"


def open_table(table: Any) -> TableSource:
    """The table in a file, by the file's suffix, in a folder of npy files, or in memory."""
    from cida.tables.array_source import ArraySource  # it imports this module

    if isinstance(table, TableSource):
        return table
    if not isinstance(table, str | os.PathLike):
        return FrameSource(table)
    path = Path(table)
    source_by_suffix: dict[str, Callable[[Path], TableSource]] = {
        **dict.fromkeys((".csv", ".tsv"), CsvSource),
        **dict.fromkeys((".parquet", ".pq"), ParquetSource),
        ".npz": ArraySource,
    }
    if find_array_files(path):
        return ArraySource(path)
    if not path.is_file():
        hint = did_you_mean_file(path, source_by_suffix)
        raise ValueError(
            f"DATA is {path}, which is no file; {hint}give a .csv, .parquet or .npz file, or a "
            "folder with X.npy, y.npy and u.npy."
        )
    if path.suffix.lower() not in source_by_suffix:
        raise ValueError(
            f"DATA is {path}, and {path.suffix or 'a name without a suffix'} is not read; give a "
            ".csv, .parquet or .npz file."
        )
    return source_by_suffix[path.suffix.lower()](path)


def find_array_files(path: Path) -> dict[str, Path]:
    """The arrays X, y and u in a folder, each in an npy file of its name; none of anything else."""
    files = {name: path / f"{name}.npy" for name in ("X", "y", "u")}
    return {name: file for name, file in files.items() if path.is_dir() and file.is_file()}


class CsvSource(TableSource):
    """A CSV file in UTF-8. Cells are texts until all rows have told what kind they are.

    Commas separate the cells; semicolons or tabs if the first line has no comma.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.unreadable, self.delimiter = path, {}, ","
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                first = file.readline()
        except UnicodeDecodeError as error:
            raise self._make_error(error) from None
        if path.suffix.lower() == ".tsv":
            self.delimiter = "\t"
        elif "," not in first:
            self.delimiter = ";" if ";" in first else "\t" if "\t" in first else ","
        header = next(self._iter_records(), None)
        if header is None:
            raise ValueError(f"{path} is empty; its first line must name the columns.")
        self.column_names = _check_distinct(path, header[1])

    def iter_batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        last = self.column_names[-1]
        options = {
            "read_options": pa.csv.ReadOptions(block_size=CSV_BLOCK_BYTES, use_threads=False),
            "parse_options": pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            "convert_options": pa.csv.ConvertOptions(
                column_types=dict.fromkeys(self.column_names, pa.string()),
                strings_can_be_null=False,
                include_columns=[*columns, *([] if last in columns else [last])],
            ),
        }
        if next(islice(self._iter_records(), 1, 2), None) is None:
            return  # no row, of which pyarrow would make an error
        try:
            last_cell = ""
            with pa.csv.open_csv(self.path, **options) as reader:
                for batch in reader:
                    if len(batch):
                        last_cell = batch.column(last)[-1].as_py()
                        yield batch.select(list(columns))
            self._check_quotes_closed(last_cell)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise self._make_error(error) from None

    def infer_kinds(self, columns: Sequence[str]) -> dict[str, ColumnKind | None]:
        return _infer_text_kinds(self, columns)

    def describe_row(self, row: int) -> str:
        try:
            line, _ = next(islice(self._iter_records(), row + 1, None))
        except (csv.Error, StopIteration):  # a cell too long for the csv module
            return super().describe_row(row)
        return f"line {line}"

    def _iter_records(self) -> Iterator[tuple[int, list[str]]]:
        """Each record with the line it begins in; empty lines are skipped. Slow: for messages."""
        with self.path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            records, first_line = csv.reader(file, delimiter=self.delimiter), 1
            for cells in records:
                if cells:
                    yield first_line, cells
                first_line = records.line_num + 1

    def _check_quotes_closed(self, last_cell: str) -> None:
        """Refuses a quote that is open at the end: in the last column it swallows all that follows.

        A cell with a line end in it is quoted, so that in a whole file a quote is the last sign.
        """
        if "\n" not in last_cell:
            return
        with self.path.open("rb") as file:
            file.seek(max(0, self.path.stat().st_size - 100))
            if file.read().rstrip(b"\r\n").endswith(b'"'):
                return
        line = max(begin for begin, _ in self._iter_records())
        raise ValueError(f"{self.path} has a quote in line {line} that is not closed; close it.")

    def _make_error(self, error: Exception) -> ValueError:
        """What is wrong and in which line: pyarrow tells neither for all faults."""
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    line.decode()
                except UnicodeDecodeError as decode_error:
                    return ValueError(
                        f"{self.path} has bytes in line {number} that are not UTF-8 "
                        f"({line[decode_error.start : decode_error.start + 1]!r}); save the "
                        "whole file as UTF-8."
                    )
        try:
            for begin, cells in self._iter_records():
                if len(cells) != len(self.column_names):
                    hint = ", perhaps for a quote that is not closed"
                    return ValueError(
                        f"{self.path} has {_pluralize(len(cells), 'cell')} in line {begin} and "
                        f"{_pluralize(len(self.column_names), 'column')} in its first line"
                        f"{hint if any(chr(10) in cell for cell in cells) else ''}; correct the "
                        "line."
                    )
        except csv.Error:
            pass
        return ValueError(f"{self.path} cannot be read as CSV ({' '.join(str(error).split())}).")


class ParquetSource(TableSource):
    """A Parquet file; its columns keep their own types."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._translate_errors():
            schema = pa.parquet.read_schema(path)
        self.column_names = _check_distinct(path, schema.names)
        self.types = dict(zip(schema.names, schema.types, strict=True))
        self.unreadable = _find_unreadable(self.types)

    def iter_batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        names = list(columns)
        with self._translate_errors(), pa.parquet.ParquetFile(self.path, pre_buffer=False) as file:
            for batch in file.iter_batches(MAX_BATCH_ROWS, columns=names, use_threads=False):
                if len(batch):
                    batch.validate(full=True)  # texts that are no UTF-8 would fail further on
                    yield batch.select(names)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, UnicodeError) as error:
            cause = " ".join(str(error).split())
            raise ValueError(f"{self.path} is no Parquet file, or is damaged ({cause}).") from None


class FrameSource(TableSource):
    """A table in memory; text columns may hold numbers or dates, as those of a CSV file do."""

    def __init__(self, table: Any) -> None:
        self.path, self.table = Path("table"), table
        names = list(table) if isinstance(table, Mapping) else getattr(table, "columns", None)
        names = getattr(table, "column_names", names)  # pyarrow's columns are no names
        if names is None:
            raise TypeError(
                f"X is a {type(table).__name__}; give a pandas, polars or pyarrow table, a dict "
                "of columns, or the path of a file."
            )
        self.column_names = _check_distinct(self.path, [str(name) for name in names])
        self.types, failures = {}, {}
        for name in self.column_names:
            try:
                self.types[name] = self._select([name]).schema.types[0]
            except (pa.ArrowException, TypeError, ValueError) as error:
                failures[name] = f"it cannot be read ({error_summary(error)})"
        self.unreadable = failures | _find_unreadable(self.types)

    def iter_batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        try:
            selected = self._select(list(columns))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise ValueError(
                f"table cannot be read ({error_summary(error)}); give columns of one type each."
            ) from None
        yield from selected.select(list(columns)).to_batches(MAX_BATCH_ROWS)

    def infer_kinds(self, columns: Sequence[str]) -> dict[str, ColumnKind | None]:
        kinds = super().infer_kinds(columns)
        texts = [name for name, kind in kinds.items() if kind == "category"]
        return kinds | _infer_text_kinds(self, texts)

    def _select(self, columns: list[str]) -> Any:
        """These columns as a pyarrow table."""
        table = self.table
        if isinstance(table, Mapping):
            return pa.table({name: pa.array(table[name], from_pandas=True) for name in columns})
        if hasattr(table, "iloc"):
            return pa.Table.from_pandas(table[columns], preserve_index=False)
        selected = table.select(columns)
        return selected.to_arrow() if hasattr(selected, "to_arrow") else pa.table(selected)


def _infer_text_kinds(table: TableSource, columns: Sequence[str]) -> dict[str, ColumnKind | None]:
    """What columns of texts hold, judged by all of their rows; None where all are missing."""
    if not columns:
        return {}
    candidate_kinds = {name: list(NUMERIC_KINDS) for name in columns}
    has_values = dict.fromkeys(columns, False)
    for batch in table.iter_batches(columns):
        for name, candidates in candidate_kinds.items():
            if not candidates and has_values[name]:
                continue  # text for certain
            cells = normalize_text(batch.column(name))
            has_values[name] = has_values[name] or cells.null_count < len(cells)
            candidates[:] = [kind for kind in candidates if can_parse(kind, cells)]
    return {
        name: (left[0] if left else "category") if has_values[name] else None
        for name, left in candidate_kinds.items()
    }


def check_column_names(role: str, columns: Collection[str], available: Sequence[str]) -> None:
    """Refuses columns that are not there, and names the nearest that is."""
    for name in columns:
        if name not in available:
            listing = ", ".join(" ".join(each.split()) for each in available[:12])
            listing += ", ..." if len(available) > 12 else ""
            hint = closest_match(name, available)
            advice = f"did you mean {hint}?" if hint else f"its columns are {listing}."
            raise ValueError(f"{role} is {name}, which is no column of DATA; {advice}")


def _check_distinct(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Refuses two columns of one name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise ValueError(f"{path} has two columns named {name!r}; rename one.")
    return tuple(names)


def _pluralize(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _find_unreadable(types: Mapping[str, Any]) -> dict[str, str]:
    """The columns of types that no model reads."""
    readable = {n for n, t in types.items() if pa.types.is_null(t) or _kind_of_type(t) is not None}
    return {name: f"its type is {kind}" for name, kind in types.items() if name not in readable}


def _kind_of_type(kind: Any) -> ColumnKind | None:
    """What a column of this arrow type holds; None for no value and for what no model reads."""
    t = pa.types
    if t.is_boolean(kind):
        return "boolean"
    numbers = (t.is_integer, t.is_floating, t.is_decimal, t.is_time, t.is_duration)
    if any(is_number(kind) for is_number in numbers):
        return "number"
    if t.is_date(kind) or t.is_timestamp(kind):
        return "date"
    return "category" if is_text(pa.nulls(0, kind)) else None
