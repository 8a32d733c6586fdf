"""What the columns of a table are, and the numbers that an encoder sees of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cida.plain import from_words
from cida.tables.cells import Kind, texts, to_numbers

__all__ = ["CLIP", "Column", "Schema"]

Array = np.ndarray[Any, Any]
CLIP = 20.0  # robust standard deviations: one wild value must not shake all weights


@dataclass(frozen=True)
class Column:
    """One column: ``(x - centre) / scale`` of a number, a boolean or a date; categories of a text.

    ``holes``: whether cells were missing when the schema was made; categories come most frequent
    first.
    """

    name: str
    kind: Kind
    centre: float = 0.0
    scale: float = 1.0
    holes: bool = False
    categories: tuple[str, ...] = ()

    @property
    def numeric(self) -> bool:
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
        ordered = sorted(self.columns, key=lambda column: not column.numeric)
        object.__setattr__(self, "columns", tuple(ordered))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def numbers(self) -> int:
        """How many columns are numeric."""
        return sum(column.numeric for column in self.columns)

    @property
    def indicators(self) -> tuple[int, ...]:
        """The positions of the numeric columns that had holes."""
        return tuple(k for k, column in enumerate(self._numeric) if column.holes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many codes each category column has, with the 0 of what is not known."""
        return tuple(len(column.categories) + 1 for column in self._categorical)

    @property
    def width(self) -> int:
        """How many numbers a row is encoded as."""
        return self.numbers + len(self.indicators) + len(self.sizes)

    def encode(self, batch: Any) -> Array:
        """A pyarrow batch with these columns as float32, shape ``(rows, width)``."""
        encoded = np.zeros((len(batch), self.width), dtype=np.float32)
        place = self.numbers
        for number, column in enumerate(self._numeric):
            values = to_numbers(column.name, column.kind, batch.column(column.name))
            missing = np.isnan(values)
            with np.errstate(over="ignore"):  # beyond all numbers is beyond the clip
                scaled = np.clip((values - column.centre) / column.scale, -CLIP, CLIP)
            encoded[:, number] = np.where(missing, 0.0, scaled)
            if column.holes:
                encoded[:, place] = missing
                place += 1
        for column in self._categorical:
            encoded[:, place] = _codes(column, texts(batch.column(column.name)))
            place += 1
        return encoded

    def strangers(self, batch: Any) -> dict[str, int]:
        """How many cells of each category column hold a text that has no code."""
        counts = {}
        for column in self._categorical:
            cells = texts(batch.column(column.name))
            known = int(np.count_nonzero(_codes(column, cells)))
            counts[column.name] = len(cells) - cells.null_count - known
        return {name: count for name, count in counts.items() if count}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` reads them back."""
        return {
            "columns": [asdict(column) for column in self.columns],
            "dropped": [list(pair) for pair in self.dropped],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        found = from_words(cls, values)
        names = found.names
        for column in found.columns:
            if names.count(column.name) > 1:
                raise ValueError(f"columns has {column.name!r} twice")
            if not (math.isfinite(column.centre) and 0 < column.scale < math.inf):
                raise ValueError(f"column {column.name!r} has no scale")
        return found

    @property
    def _numeric(self) -> list[Column]:
        return [column for column in self.columns if column.numeric]

    @property
    def _categorical(self) -> list[Column]:
        return [column for column in self.columns if not column.numeric]


def _codes(column: Column, cells: Any) -> Array:
    known = pa.array(column.categories, pa.string())
    found = pc.index_in(cells, value_set=known, skip_nulls=True)
    codes: Array = pc.add(found.fill_null(-1), 1).to_numpy(zero_copy_only=False)
    return codes
