"""What the columns of a table are, and the numbers that an encoder sees of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cida.io.json_decode import from_dict
from cida.tables.cells import ColumnKind, normalize_text, to_numbers

__all__ = ["MAX_ROBUST_DEVIATIONS", "Column", "Schema"]

Array = np.ndarray[Any, Any]
MAX_ROBUST_DEVIATIONS = (
    20.0  # robust standard deviations: one wild value must not shake all weights
)


@dataclass(frozen=True)
class Column:
    """One column: ``(x - centre) / scale`` of a number, a boolean or a date; categories of a text.

    ``holes``: whether cells were missing when the schema was made; categories come most frequent
    first.
    """

    name: str
    kind: ColumnKind
    center: float = 0.0
    scale: float = 1.0
    has_missing: bool = False
    categories: tuple[str, ...] = ()

    @property
    def is_numeric(self) -> bool:
        return self.kind != "category"


@dataclass(frozen=True)
class Schema:
    """The columns that a model reads, the numeric ones first, and why others are not read.

    A row is encoded as all numbers, scaled and clipped, 0 where missing; then 0 or 1 for each
    numeric column that had holes, 1 where it has one; then the number of each category, 0 where it
    is missing, rare or new.
    """

    columns: tuple[Column, ...]
    dropped: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        ordered = sorted(self.columns, key=lambda column: not column.is_numeric)
        object.__setattr__(self, "columns", tuple(ordered))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def n_numeric(self) -> int:
        """How many columns are numeric."""
        return sum(column.is_numeric for column in self.columns)

    @property
    def missing_indicators(self) -> tuple[int, ...]:
        """The positions of the numeric columns that had holes."""
        return tuple(k for k, column in enumerate(self._numeric) if column.has_missing)

    @property
    def category_sizes(self) -> tuple[int, ...]:
        """How many codes each category column has, with the 0 of what is not known."""
        return tuple(len(column.categories) + 1 for column in self._categorical)

    @property
    def width(self) -> int:
        """How many numbers a row is encoded as."""
        return self.n_numeric + len(self.missing_indicators) + len(self.category_sizes)

    def encode(self, batch: Any) -> Array:
        """A pyarrow batch with these columns as float32, shape ``(rows, width)``."""
        encoded = np.zeros((len(batch), self.width), dtype=np.float32)
        position = self.n_numeric
        for number, column in enumerate(self._numeric):
            values = to_numbers(column.name, column.kind, batch.column(column.name))
            missing = np.isnan(values)
            with np.errstate(over="ignore"):  # beyond all numbers is beyond the clip
                scaled = np.clip(
                    (values - column.center) / column.scale,
                    -MAX_ROBUST_DEVIATIONS,
                    MAX_ROBUST_DEVIATIONS,
                )
            encoded[:, number] = np.where(missing, 0.0, scaled)
            if column.has_missing:
                encoded[:, position] = missing
                position += 1
        for column in self._categorical:
            encoded[:, position] = _encode_categories(
                column, normalize_text(batch.column(column.name))
            )
            position += 1
        return encoded

    def unknown_categories(self, batch: Any) -> dict[str, int]:
        """How many cells of each category column hold a text that has no code."""
        counts = {}
        for column in self._categorical:
            cells = normalize_text(batch.column(column.name))
            n_known = int(np.count_nonzero(_encode_categories(column, cells)))
            counts[column.name] = len(cells) - cells.null_count - n_known
        return {name: count for name, count in counts.items() if count}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` reads them back."""
        return {
            "columns": [asdict(column) for column in self.columns],
            "dropped": [list(pair) for pair in self.dropped],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        schema = from_dict(cls, values)
        names = schema.names
        for column in schema.columns:
            if names.count(column.name) > 1:
                raise ValueError(f"columns has {column.name!r} twice")
            if not (math.isfinite(column.center) and 0 < column.scale < math.inf):
                raise ValueError(f"column {column.name!r} has no scale")
        return schema

    @property
    def _numeric(self) -> list[Column]:
        return [column for column in self.columns if column.is_numeric]

    @property
    def _categorical(self) -> list[Column]:
        return [column for column in self.columns if not column.is_numeric]


def _encode_categories(column: Column, cells: Any) -> Array:
    categories = pa.array(column.categories, pa.string())
    positions = pc.index_in(cells, value_set=categories, skip_nulls=True)
    codes: Array = pc.add(positions.fill_null(-1), 1).to_numpy(zero_copy_only=False)
    return codes
