"""Predictions to a file, batch by batch: whole or not there at all."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from cida.io.files import atomic_replace

__all__ = ["check_output_suffix", "open_writer"]

Columns = Mapping[str, Any]  # numpy arrays or lists, of one length
WriteColumns = Callable[[Columns], None]


def check_output_suffix(path: Path) -> None:
    """Refuses a name that does not say which format to write."""
    if path.suffix.lower() not in _WRITERS:
        raise ValueError(f"out is {path}; its name must end in .csv or .parquet.")


@contextmanager
def open_writer(path: Path) -> Iterator[WriteColumns]:
    """Gives a function that appends columns; the file appears at the end."""
    check_output_suffix(path)
    try:
        with (
            atomic_replace(path) as partial_path,
            _WRITERS[path.suffix.lower()](partial_path) as write,
        ):
            yield write
    except OSError as error:
        raise ValueError(
            f"out is {path}, where nothing can be written ({error.strerror}); choose another place."
        ) from error


@contextmanager
def _csv_writer(path: Path) -> Iterator[WriteColumns]:
    options = pa.csv.WriteOptions(include_header=False)
    with path.open("wb") as file:

        def write(columns: Columns) -> None:
            if not file.tell():
                file.write(_csv_header(columns))
            pa.csv.write_csv(pa.table(dict(columns)), file, options)

        yield write


@contextmanager
def _parquet_writer(path: Path) -> Iterator[WriteColumns]:
    writers: list[Any] = []

    def write(columns: Columns) -> None:
        table = pa.table(dict(columns))
        if not writers:
            writers.append(pa.parquet.ParquetWriter(path, table.schema))
        writers[0].write_table(table)

    try:
        yield write
    finally:
        for writer in writers:
            writer.close()


def _csv_header(columns: Columns) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(columns)
    return buffer.getvalue().encode()


_WRITERS = {".csv": _csv_writer, ".parquet": _parquet_writer, ".pq": _parquet_writer}
