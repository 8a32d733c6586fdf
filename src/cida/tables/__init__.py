"""Columns to numbers: a table in a file, read as a stream, and the schema that encodes it.

Needs pyarrow, which the extra ``tables`` brings.
"""

from importlib.util import find_spec

if find_spec("pyarrow") is None:
    raise ImportError('tables need pyarrow, which is not installed; pip install "cida[tables]".')

from cida.tables.encoded_table import ColumnRoles, EncodedTable, TableFormat, map_rows, read_table
from cida.tables.schema import Column, Schema
from cida.tables.schema_builder import encode_columns
from cida.tables.sources import TableSource, open_table
from cida.tables.writer import open_writer

__all__ = [
    "Column",
    "ColumnRoles",
    "EncodedTable",
    "Schema",
    "TableFormat",
    "TableSource",
    "encode_columns",
    "map_rows",
    "open_table",
    "open_writer",
    "read_table",
]
