"""A schema from the rows of a table, seen once, batch by batch; no label is looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow.compute as pc

from cida.tables.cells import Kind, texts, to_numbers
from cida.tables.schema import Column, Schema

__all__ = ["MOST_CATEGORIES", "SchemaLearner", "Thinned"]

Array = np.ndarray[Any, Any]

SAMPLE_ROWS = 200_000  # enough for quartiles
MOST_CATEGORIES = 200
MOST_COUNTED = 50_000  # different texts of a column that are counted at a time
ID_SHARE = 0.9  # of the rows with a text of their own: then it names rows, not kinds of them
FEWEST_ROWS = 20  # below, texts may all differ by chance
LARGEST = float(np.finfo(np.float64).max)
NORMAL_IQR = 1.349  # the distance between a standard normal's quartiles


class Thinned:
    """Every so manieth row of a stream of unknown length, at most ``most`` rows in all."""

    def __init__(self, most: int = SAMPLE_ROWS) -> None:
        self.most, self.step, self.seen = most, 1, 0
        self.parts: list[Array] = []

    def add(self, rows: Array) -> None:
        self.parts.append(rows[-self.seen % self.step :: self.step].copy())
        self.seen += len(rows)
        if sum(map(len, self.parts)) > self.most:
            self.parts = [self.rows()[::2]]
            self.step *= 2
            self.add(rows[:0])  # a batch may be larger than twice the most

    def rows(self) -> Array:
        """The rows that were kept, in their order."""
        return np.concatenate(self.parts)


class SchemaLearner:
    """Sees every batch once, then tells the `Schema`."""

    def __init__(self, kinds: Mapping[str, Kind | None], dropped: Mapping[str, str]) -> None:
        self.kinds = {name: kind for name, kind in kinds.items() if kind is not None}
        self.dropped = dict(dropped)
        self.dropped |= {name: "it is empty" for name, kind in kinds.items() if kind is None}
        self.numeric = [name for name, kind in self.kinds.items() if kind != "category"]
        self.rows = 0
        self.sample = Thinned()
        self.holes = np.zeros(len(self.numeric), dtype=np.int64)
        self.low = np.full(len(self.numeric), np.inf)
        self.high = np.full(len(self.numeric), -np.inf)
        self.texts = {name: _Texts() for name, kind in self.kinds.items() if kind == "category"}

    def add(self, batch: Any) -> None:
        self.rows += len(batch)
        values = np.empty((len(batch), len(self.numeric)))
        for number, name in enumerate(self.numeric):
            values[:, number] = to_numbers(name, self.kinds[name], batch.column(name))
        self.sample.add(values)
        self.holes += np.isnan(values).sum(0)
        finite = np.isfinite(values)
        self.low = np.minimum(self.low, np.where(finite, values, np.inf).min(0, initial=np.inf))
        self.high = np.maximum(self.high, np.where(finite, values, -np.inf).max(0, initial=-np.inf))
        for name, seen in self.texts.items():
            seen.add(batch.column(name))

    def schema(self) -> Schema:
        columns = [self._number(k) for k in range(len(self.numeric))]
        columns += [self._category(name) for name in self.texts]
        return Schema(
            tuple(column for column in columns if column is not None), tuple(self.dropped.items())
        )

    def _number(self, number: int) -> Column | None:
        name = self.numeric[number]
        low, high, holes = self.low[number], self.high[number], bool(self.holes[number])
        if not low <= high:
            self.dropped[name] = "it is empty"
            return None
        if low == high and not holes:
            self.dropped[name] = "it is the same in every row"
            return None
        values = self.sample.rows()[:, number]
        values = values[np.isfinite(values)]
        with np.errstate(over="ignore", invalid="ignore"):
            if not len(values):  # the few that there are fell between those looked at
                centre, scale = low, float(high - low) or 1.0
            else:
                first, centre, last = np.quantile(values, [0.25, 0.5, 0.75])
                scale = (last - first) / NORMAL_IQR or float(values.std())
                scale = scale or float(high - low) or 1.0
        # Of numbers whose differences are beyond all numbers.
        centre, scale = (float(v) if np.isfinite(v) else LARGEST for v in (centre, scale))
        return Column(name, self.kinds[name], centre, scale, holes)

    def _category(self, name: str) -> Column | None:
        seen = self.texts[name]
        holes = seen.present < self.rows
        if not seen.present:
            self.dropped[name] = "it is empty"
        elif len(seen.counts) == 1 and not holes:
            self.dropped[name] = "it is the same in every row"
        elif seen.present >= FEWEST_ROWS and seen.different > ID_SHARE * seen.present:
            self.dropped[name] = seen.why_not()
        else:
            return Column(name, "category", holes=holes, categories=seen.most_frequent())
        return None


class _Texts:
    """How often each text of a column occurs; of very many texts, those that occur often."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.present = 0
        self.different = 0

    def add(self, column: Any) -> None:
        found = pc.value_counts(texts(column).drop_null())
        pairs = zip(found.field(0).to_pylist(), found.field(1).to_pylist(), strict=True)
        for text, count in pairs:
            self.present += count
            self.different += text not in self.counts
            self.counts[text] += count
        if len(self.counts) > MOST_COUNTED:
            self.counts = Counter(dict(self.counts.most_common(MOST_COUNTED // 2)))

    def why_not(self) -> str:
        """Why texts that differ in nearly every row are left out."""
        odd = [text for text in self.counts if not _is_number(text)]
        if odd and len(odd) < len(self.counts) / 2:
            return (
                f"most of its cells are numbers and some are not, such as {odd[0]!r}: correct or "
                "empty them"
            )
        if odd and all(_is_number(text.replace(",", ".")) for text in odd):
            return f"its numbers have a decimal comma, such as {odd[0]!r}: write a point"
        return "its texts differ in nearly every row, as those of an id do"

    def most_frequent(self) -> tuple[str, ...]:
        """The categories to keep; equally frequent ones in the order of their texts."""
        ranked = sorted(self.counts.items(), key=lambda pair: (-pair[1], pair[0]))
        return tuple(text for text, _ in ranked[:MOST_CATEGORIES])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
