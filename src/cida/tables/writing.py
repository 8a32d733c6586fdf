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

from cida.files import replacing

__all__ = ["check_suffix", "writing"]

Columns = Mapping[str, Any]  # numpy arrays or lists, of one length
Write = Callable[[Columns], None]


def check_suffix(path: Path) -> None:
    """Refuses a name that does not say which format to write."""
    if path.suffix.lower() not in _WRITERS:
        raise ValueError(f"out is {path}; its name must end in .csv or .parquet.")


@contextmanager
def writing(path: Path) -> Iterator[Write]:
    """Gives a function that appends columns; the file appears at the end."""
    check_suffix(path)
    try:
        with replacing(path) as room, _WRITERS[path.suffix.lower()](room) as write:
            yield write
    except OSError as error:
        raise ValueError(
            f"out is {path}, where nothing can be written ({error.strerror}); choose another place."
        ) from error


@contextmanager
def _csv(path: Path) -> Iterator[Write]:
    options = pa.csv.WriteOptions(include_header=False)
    with path.open("wb") as file:

        def write(columns: Columns) -> None:
            if not file.tell():
                file.write(_header(columns))
            pa.csv.write_csv(pa.table(dict(columns)), file, options)

        yield write


@contextmanager
def _parquet(path: Path) -> Iterator[Write]:
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


def _header(columns: Columns) -> bytes:
    made = io.StringIO()
    csv.writer(made, lineterminator="\n").writerow(columns)
    return made.getvalue().encode()


_WRITERS = {".csv": _csv, ".parquet": _parquet, ".pq": _parquet}
