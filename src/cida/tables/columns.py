"""Columns that are arrays already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from cida.tables.cells import ColumnKind
from cida.tables.schema import Schema
from cida.tables.schema_builder import SchemaBuilder

__all__ = ["encode_columns"]

Array = np.ndarray[Any, Any]


def encode_columns(columns: Mapping[str, Array]) -> tuple[Array, Schema]:
    """The columns encoded, and their schema: floats are numbers, all others texts."""
    cells = {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
    batch = pa.record_batch(cells)
    kinds: dict[str, ColumnKind | None] = {
        name: "number" if values.dtype.kind == "f" else "category"
        for name, values in columns.items()
    }
    builder = SchemaBuilder(kinds, {})
    builder.add(batch)
    schema = builder.build()
    return schema.encode(batch), schema
