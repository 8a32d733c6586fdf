"""Columns that are arrays already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from cida.tables.cells import Kind
from cida.tables.learning import SchemaLearner
from cida.tables.schema import Schema

__all__ = ["encode_columns"]

Array = np.ndarray[Any, Any]


def encode_columns(columns: Mapping[str, Array]) -> tuple[Array, Schema]:
    """The columns encoded, and their schema: floats are numbers, all others texts."""
    cells = {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
    batch = pa.record_batch(cells)
    kinds: dict[str, Kind | None] = {
        name: "number" if values.dtype.kind == "f" else "category"
        for name, values in columns.items()
    }
    learner = SchemaLearner(kinds, {})
    learner.add(batch)
    schema = learner.schema()
    return schema.encode(batch), schema
