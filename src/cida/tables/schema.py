"""What the columns of a table are, and the numbers that an encoder sees of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cida.array_types import Array
from cida.io.json_decode import from_dict
from cida.tables.cells import ColumnKind, normalize_text, to_numbers

__all__ = ["MAX_ROBUST_DEVIATIONS", "Column", "Schema"]

MAX_ROBUST_DEVIATIONS = 20.0  # beyond, one wild value would shake all weights

DropReason = Literal[
    "constant", "decimal-comma", "empty", "excluded", "identifier", "mixed-numbers", "unreadable"
]
DROP_REASONS: dict[DropReason, str] = {
    "constant": "it is the same in every row",
    "decimal-comma": "its numbers have a decimal comma, such as {!r}: write a point",
    "empty": "it is empty",
    "excluded": "drop names it",
    "identifier": "its texts differ in nearly every row, as those of an id do",
    "mixed-numbers": (
        "most of its cells are numbers and some are not, such as {!r}: correct or empty them"
    ),
    "unreadable": "{}",
}


@dataclass(frozen=True)
class Column:
    """One column: ``(x - centre) / scale`` of a number, a boolean or a date; categories of a text.

    ``has_missing``: whether cells were missing when the schema was made; categories come most
    frequent first.
    """

    name: str
    kind: ColumnKind
    center: float = 0.0
    scale: float = 1.0
    has_missing: bool = False
    categories: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.center) and 0 < self.scale < math.inf):
            raise ValueError(f"column {self.name!r} has no scale")

    @property
    def is_numeric(self) -> bool:
        return self.kind != "category"

    def scaled(self, values: Array) -> Array:
        """Numbers of this column scaled and clipped, 0 where missing."""
        with np.errstate(over="ignore"):  # beyond all numbers is beyond the clip
            scaled = (values - self.center) / self.scale
        clipped = np.clip(scaled, -MAX_ROBUST_DEVIATIONS, MAX_ROBUST_DEVIATIONS)
        return np.where(np.isnan(values), 0.0, clipped)

    def codes(self, batch: Any) -> Array:
        """The number of each cell's category, 0 where it is missing or has none."""
        cells = normalize_text(batch.column(self.name))
        categories = pa.array(self.categories, pa.string())
        positions = pc.index_in(cells, value_set=categories, skip_nulls=True)
        codes: Array = pc.add(positions.fill_null(-1), 1).to_numpy(zero_copy_only=False)
        return codes


@dataclass(frozen=True)
class DroppedColumn:
    """A column that is not read: why, and a cell or a type that shows it."""

    name: str
    reason: DropReason
    detail: str = ""

    def summary(self) -> str:
        """The reason in words."""
        return DROP_REASONS[self.reason].format(self.detail)


@dataclass(frozen=True)
class Schema:
    """The columns that a model reads, the numeric ones first, and why others are not read.

    A row is encoded as all numbers, scaled and clipped, 0 where missing; then 0 or 1 for each
    numeric column that had missing cells, 1 where one is missing; then the number of each
    category, 0 where it is missing, rare or new.
    """

    columns: tuple[Column, ...]
    dropped: tuple[DroppedColumn, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", (*self._numeric, *self._categorical))
        for name, count in Counter(self.names).items():
            if count > 1:
                raise ValueError(f"columns has {name!r} twice")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def n_numeric(self) -> int:
        """How many columns are numeric."""
        return sum(column.is_numeric for column in self.columns)

    @property
    def missing_indicators(self) -> tuple[int, ...]:
        """The positions of the numeric columns that had missing cells."""
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
        numbers = [to_numbers(c.name, c.kind, batch.column(c.name)) for c in self._numeric]
        parts = [column.scaled(v) for column, v in zip(self._numeric, numbers, strict=True)]
        parts += [np.isnan(numbers[k]) for k in self.missing_indicators]
        parts += [column.codes(batch) for column in self._categorical]
        encoded = np.zeros((len(batch), self.width), dtype=np.float32)
        for position, part in enumerate(parts):
            encoded[:, position] = part
        return encoded

    def unknown_categories(self, batch: Any) -> dict[str, int]:
        """How many cells of each category column hold a text that has no code."""
        counts = {}
        for column in self._categorical:
            n_missing = normalize_text(batch.column(column.name)).null_count
            n_known = int(np.count_nonzero(column.codes(batch)))
            counts[column.name] = len(batch) - n_missing - n_known
        return {name: count for name, count in counts.items() if count}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` reads them back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` gave; refuses what does not fit together."""
        return from_dict(cls, values)

    @property
    def _numeric(self) -> list[Column]:
        return [column for column in self.columns if column.is_numeric]

    @property
    def _categorical(self) -> list[Column]:
        return [column for column in self.columns if not column.is_numeric]
