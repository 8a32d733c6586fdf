"""Columns to numbers: a table in a file, read as a stream, and the schema that encodes it.

Needs pyarrow, which the extra ``tables`` brings.
"""

from importlib.util import find_spec

if find_spec("pyarrow") is None:
    raise ImportError('tables need pyarrow, which is not installed; pip install "cida[tables]".')

from cida.tables.columns import encode_columns
from cida.tables.frame import Question, TableData, read_table
from cida.tables.reading import TableFile, open_table
from cida.tables.schema import Column, Schema
from cida.tables.store import StoredRows, store_rows
from cida.tables.writing import writing

__all__ = [
    "Column",
    "Question",
    "Schema",
    "StoredRows",
    "TableData",
    "TableFile",
    "encode_columns",
    "open_table",
    "read_table",
    "store_rows",
    "writing",
]
