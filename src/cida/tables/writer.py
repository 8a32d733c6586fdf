"""Predictions to a file, batch by batch: whole or not there at all."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
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
    writers: list[Any] = []  # one, from the first columns on
    try:
        with atomic_replace(path) as partial_path, ExitStack() as stack:

            def write(columns: Columns) -> None:
                table = pa.table(dict(columns))
                if not writers:
                    open_file = _WRITERS[path.suffix.lower()]
                    writers.append(stack.enter_context(open_file(partial_path, table.schema)))
                writers[0].write_table(table)

            yield write
    except OSError as error:
        raise ValueError(
            f"out is {path}, where nothing can be written ({error.strerror}); choose another place."
        ) from error


@contextmanager
def _csv_writer(path: Path, schema: Any) -> Iterator[Any]:
    header = io.StringIO()  # pyarrow would quote all names
    csv.writer(header, lineterminator="\n").writerow(schema.names)
    options = pa.csv.WriteOptions(include_header=False)
    with path.open("wb") as file:
        file.write(header.getvalue().encode())
        with pa.csv.CSVWriter(file, schema, write_options=options) as writer:
            yield writer


_WRITERS = {
    ".csv": _csv_writer,
    ".parquet": pa.parquet.ParquetWriter,
    ".pq": pa.parquet.ParquetWriter,
}
