"""What a user asks of a table, and the table read for it: schema, label and index."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cida.space import Line, Periodic, Product, Space
from cida.tables.cells import CellError, Kind, texts, to_numbers
from cida.tables.labels import ClassReader, NumberReader
from cida.tables.learning import SchemaLearner
from cida.tables.reading import TableFile, array_files, check_names
from cida.tables.schema import Schema
from cida.tables.store import Gathered
from cida.words import did_you_mean

__all__ = [
    "Question",
    "TableData",
    "check_index",
    "fingerprint",
    "index_values",
    "naming_cells",
    "numbered",
    "read_table",
]

Array = np.ndarray[Any, Any]
LARGEST = 1e150  # of an index: squares of distances must not overflow


@dataclass(frozen=True)
class Question:
    """Which column is the label, which are the index, which wrap round, which are left out."""

    label: str
    index: tuple[str, ...]
    periods: Mapping[str, float] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    regression: bool = False

    def check(self, names: Sequence[str]) -> None:
        """Refuses columns that are not there or have two parts to play."""
        check_names("label", [self.label], names)
        check_names("index", self.index, names)
        check_names("drop", self.drop, names)
        if not self.index:
            raise ValueError("index has no column; name the one along which labels end.")
        played = [self.label, *self.index, *self.drop]
        twice = next((name for name in played if played.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{twice} is named twice among label, index and drop; leave one.")
        for name, period in self.periods.items():
            if name not in self.index:
                hint = did_you_mean(name, self.index)
                raise ValueError(
                    f"periodic has {name}, which is no index column ({', '.join(self.index)})"
                    f"{f'; {hint.strip()}' if hint else '.'}"
                )
            if not (math.isfinite(period) and period > 0):
                raise ValueError(f"periodic has the period {period:g} for {name}; it must be > 0.")

    def space(self) -> Space:
        """What u is: a `Line` or a `Periodic` for each index column."""
        parts = [
            Periodic(self.periods[name]) if name in self.periods else Line() for name in self.index
        ]
        return parts[0] if len(parts) == 1 else Product(parts)


@dataclass(frozen=True)
class TableData:
    """A table as it was understood; the inputs themselves stay in the file.

    ``y`` holds the number of the class, or the label itself in a regression; it is only meaningful
    where ``labelled`` is true. ``classes`` is None in a regression.
    """

    file: TableFile
    question: Question
    schema: Schema
    y: Array
    labelled: Array
    classes: tuple[str, ...] | None
    u: Array
    index_kinds: tuple[Kind, ...]

    def __len__(self) -> int:
        return len(self.u)

    def encoded(self) -> Iterator[Array]:
        """The inputs, a batch at a time."""
        names = self.schema.names or self.question.index  # the latter for the number of rows
        for batch in self.file.batches(names):
            yield self.schema.encode(batch)


def read_table(file: TableFile, question: Question) -> TableData:
    """Reads the whole table once (a CSV file twice: first for the kinds of its columns)."""
    question.check(file.names)
    wanted = [n for n in file.names if n not in (*question.drop, *file.unreadable)]
    for name in (question.label, *question.index):
        if name in file.unreadable:
            raise ValueError(f"{name} cannot be read: {file.unreadable[name]}.")
    if next(file.batches(question.index), None) is None:
        raise ValueError(f"{file.path} has no rows below the names of its columns.")
    kinds = file.kinds(wanted)
    index_kinds = tuple(_index_kind(file, name, kinds[name]) for name in question.index)
    inputs = {n: kinds[n] for n in wanted if n != question.label and n not in question.index}
    dropped = {**file.unreadable, **dict.fromkeys(question.drop, "drop names it")}
    learner = SchemaLearner(inputs, dropped)
    reader = NumberReader if question.regression else ClassReader
    labels = reader(file, question.label, kinds[question.label])
    gathered = Gathered()
    for start, batch in numbered(file.batches(wanted)):
        with naming_cells(file, start, question):
            u = index_values(batch, question.index, index_kinds)
            learner.add(batch)
            labels.add(batch.column(question.label))
        check_index(file, question.index, u, start)
        gathered.add(u)
    if not gathered.rows:
        raise ValueError(f"{file.path} is damaged: its columns differ in their rows.")
    u = gathered.whole()
    _check_spread(question.index, u)
    y, labelled, classes = labels.finish()
    schema = learner.schema()
    if not schema.columns and file.array is None:
        raise ValueError(
            f"{file.path} has no column to learn from beside label and index"
            f"{''.join(f'; {name}: {why}' for name, why in schema.dropped)}."
        )
    return TableData(file, question, schema, y, labelled, classes, u, index_kinds)


def index_values(batch: Any, names: Sequence[str], kinds: Sequence[Kind]) -> Array:
    """The index columns as float64, shape ``(rows, width)``; dates are days."""
    pairs = zip(names, kinds, strict=True)
    return np.stack([to_numbers(name, kind, batch.column(name)) for name, kind in pairs], axis=1)


@contextmanager
def naming_cells(file: TableFile, start: int, question: Question | None = None) -> Iterator[None]:
    """A cell that is not of its column's kind, in a sentence with its line."""
    try:
        yield
    except CellError as error:
        where = f"{error.text!r} in {file.place(start + error.row)}"
        if question is not None and error.column in question.index:
            raise ValueError(
                f"index {error.column} has {where}; an index must be numbers or dates."
            ) from None
        if question is not None and error.column == question.label:
            raise ValueError(
                f"label {error.column} has {where}; a regression needs numbers: leave out "
                "--regression for classes."
            ) from None
        raise ValueError(
            f"column {error.column} has {where}, and in training it held {error.kind}s; correct "
            "the cell or empty it."
        ) from None


def fingerprint(path: Path) -> str:
    """A short hash of the file's bytes, or of those of a folder's arrays: equal for equal files."""
    if path.is_dir():
        each = [fingerprint(one) for one in array_files(path).values()]
        return hashlib.sha256(" ".join(each).encode()).hexdigest()[:16]
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def numbered(batches: Iterator[Any]) -> Iterator[tuple[int, Any]]:
    """Each batch with the number of its first row."""
    start = 0
    for batch in batches:
        yield start, batch
        start += len(batch)


def _index_kind(file: TableFile, name: str, kind: Kind | None) -> Kind:
    if kind == "boolean":
        raise ValueError(f"index {name} holds true and false; an index must be numbers or dates.")
    if kind is None:
        raise ValueError(f"index {name} is empty in every row; every row needs its index.")
    if kind != "category":
        return kind
    # Text somewhere: read it as what it begins with, so that the message names the odd cell.
    first = texts(next(file.batches([name])).column(0)).drop_null()[:1]
    try:
        to_numbers(name, "date", first)
    except CellError:
        return "number"
    return "date"


def check_index(file: TableFile, names: Sequence[str], u: Array, start: int) -> None:
    """Refuses holes in the index, by column and line."""
    for name, values in zip(names, u.T, strict=True):
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            what = "is empty" if np.isnan(values[wrong[0]]) else "is infinite"
            raise ValueError(
                f"index {name} {what} in {file.place(start + int(wrong[0]))}; every row needs its "
                "index: fill it in or leave the row out."
            )


def _check_spread(names: Sequence[str], u: Array) -> None:
    for name, values in zip(names, u.T, strict=True):
        if (values == values[0]).all():
            raise ValueError(
                f"index {name} is {values[0]:g} in every row; without different values there is "
                "nothing to adapt along."
            )
        if (most := float(max(-values.min(), values.max()))) > LARGEST:
            raise ValueError(
                f"index {name} reaches {most:g}, which is beyond what can be computed with; give "
                "it in other units."
            )
