"""A schema from the rows of a table, seen once, batch by batch; no label is looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cida.array_types import Array
from cida.tables.cells import ColumnKind, normalize_text, to_numbers
from cida.tables.schema import Column, DroppedColumn, Schema

__all__ = ["SchemaBuilder", "SystematicSample", "encode_columns"]


MAX_SAMPLE_ROWS = 200_000  # enough for quartiles
MAX_CATEGORIES = 200
MAX_COUNTED_TEXTS = 50_000  # different texts of a column that are counted at a time
MIN_ID_DISTINCT_SHARE = 0.9  # of rows with a text of their own: it names rows, not kinds of them
MIN_ID_CHECK_ROWS = 20  # below, texts may all differ by chance
MAX_FLOAT64 = float(np.finfo(np.float64).max)
NORMAL_IQR = 1.349  # the distance between a standard normal's quartiles


class SystematicSample:
    """Every so manieth row of a stream of unknown length, at most ``most`` rows in all."""

    def __init__(self, max_rows: int = MAX_SAMPLE_ROWS) -> None:
        self.max_rows, self.stride, self.n_seen = max_rows, 1, 0
        self.parts: list[Array] = []

    def add(self, rows: Array) -> None:
        self.parts.append(rows[-self.n_seen % self.stride :: self.stride].copy())
        self.n_seen += len(rows)
        if sum(map(len, self.parts)) > self.max_rows:
            self.parts = [self.to_array()[::2]]
            self.stride *= 2
            self.add(rows[:0])  # a batch may be larger than twice the most

    def to_array(self) -> Array:
        """The rows that were kept, in their order."""
        return np.concatenate(self.parts)


class SchemaBuilder:
    """Sees every batch once, then tells the `Schema`."""

    def __init__(
        self, kinds: Mapping[str, ColumnKind | None], dropped: Sequence[DroppedColumn]
    ) -> None:
        self.kinds = {name: kind for name, kind in kinds.items() if kind is not None}
        empty = [DroppedColumn(name, "empty") for name, kind in kinds.items() if kind is None]
        self.dropped = [*dropped, *empty]
        self.numeric = [name for name, kind in self.kinds.items() if kind != "category"]
        self.n_rows = 0
        self.sample = SystematicSample()
        self.missing_counts = np.zeros(len(self.numeric), dtype=np.int64)
        self.minimum = np.full(len(self.numeric), np.inf)
        self.maximum = np.full(len(self.numeric), -np.inf)
        self.category_counters = {
            name: _CategoryCounter() for name, kind in self.kinds.items() if kind == "category"
        }

    def add(self, batch: Any) -> None:
        self.n_rows += len(batch)
        values = np.empty((len(batch), len(self.numeric)))
        for number, name in enumerate(self.numeric):
            values[:, number] = to_numbers(name, self.kinds[name], batch.column(name))
        self.sample.add(values)
        self.missing_counts += np.isnan(values).sum(0)
        finite = np.isfinite(values)
        self.minimum = np.minimum(self.minimum, values.min(0, initial=np.inf, where=finite))
        self.maximum = np.maximum(self.maximum, values.max(0, initial=-np.inf, where=finite))
        for name, counter in self.category_counters.items():
            counter.add(batch.column(name))

    def build(self) -> Schema:
        columns = [self._build_numeric(k) for k in range(len(self.numeric))]
        columns += [self._build_categorical(name) for name in self.category_counters]
        kept = tuple(column for column in columns if column is not None)
        return Schema(kept, tuple(self.dropped))

    def _build_numeric(self, position: int) -> Column | None:
        name, has_missing = self.numeric[position], bool(self.missing_counts[position])
        low, high = self.minimum[position], self.maximum[position]
        if low > high or (low == high and not has_missing):
            self.dropped.append(DroppedColumn(name, "empty" if low > high else "constant"))
            return None
        values = self.sample.to_array()[:, position]
        values = values[np.isfinite(values)]
        with np.errstate(over="ignore", invalid="ignore"):
            if not len(values):  # the few that there are fell between those looked at
                center, scale = low, float(high - low) or 1.0
            else:
                first, center, last = np.quantile(values, [0.25, 0.5, 0.75])
                scale = (last - first) / NORMAL_IQR or float(values.std())
                scale = scale or float(high - low) or 1.0
        # Of numbers whose differences are beyond all numbers.
        center, scale = (float(v) if np.isfinite(v) else MAX_FLOAT64 for v in (center, scale))
        return Column(name, self.kinds[name], center, scale, has_missing)

    def _build_categorical(self, name: str) -> Column | None:
        counter = self.category_counters[name]
        has_missing = counter.n_present < self.n_rows
        if not counter.n_present:
            self.dropped.append(DroppedColumn(name, "empty"))
        elif len(counter.counts) == 1 and not has_missing:
            self.dropped.append(DroppedColumn(name, "constant"))
        elif counter.is_id():
            self.dropped.append(counter.drop(name))
        else:
            categories = counter.most_frequent()
            return Column(name, "category", has_missing=has_missing, categories=categories)
        return None


class _CategoryCounter:
    """How often each text of a column occurs; of very many texts, those that occur often."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.n_present = 0
        self.n_distinct = 0

    def add(self, column: Any) -> None:
        for pair in pc.value_counts(normalize_text(column).drop_null()).to_pylist():
            text, count = pair["values"], pair["counts"]
            self.n_present += count
            self.n_distinct += text not in self.counts
            self.counts[text] += count
        if len(self.counts) > MAX_COUNTED_TEXTS:
            self.counts = Counter(dict(self.counts.most_common(MAX_COUNTED_TEXTS // 2)))

    def is_id(self) -> bool:
        """Whether nearly every row has a text of its own."""
        is_distinct = self.n_distinct > MIN_ID_DISTINCT_SHARE * self.n_present
        return is_distinct and self.n_present >= MIN_ID_CHECK_ROWS

    def drop(self, name: str) -> DroppedColumn:
        """Why texts that differ in nearly every row are left out."""
        non_numeric = [text for text in self.counts if not _is_number(text)]
        if non_numeric and len(non_numeric) < len(self.counts) / 2:
            return DroppedColumn(name, "mixed-numbers", non_numeric[0])
        if non_numeric and all(_is_number(text.replace(",", ".")) for text in non_numeric):
            return DroppedColumn(name, "decimal-comma", non_numeric[0])
        return DroppedColumn(name, "identifier")

    def most_frequent(self) -> tuple[str, ...]:
        """The categories to keep; equally frequent ones in the order of their texts."""
        ranked = sorted(self.counts.items(), key=lambda pair: (-pair[1], pair[0]))
        return tuple(text for text, _ in ranked[:MAX_CATEGORIES])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def encode_columns(columns: Mapping[str, Array]) -> tuple[Array, Schema]:
    """Columns of arrays encoded, and their schema: floats are numbers, all others texts."""
    batch = pa.record_batch({n: pa.array(v, from_pandas=True) for n, v in columns.items()})
    kinds: dict[str, ColumnKind | None] = {
        name: "number" if values.dtype.kind == "f" else "category"
        for name, values in columns.items()
    }
    builder = SchemaBuilder(kinds, ())
    builder.add(batch)
    schema = builder.build()
    return schema.encode(batch), schema
