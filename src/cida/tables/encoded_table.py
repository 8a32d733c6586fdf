"""A table read for what a user asks of it, and how it is read again to predict."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from cida.array_types import Array
from cida.errors import closest_match
from cida.io.json_decode import from_dict
from cida.tables.cells import CellError, ColumnKind, normalize_text, to_numbers
from cida.tables.label_column import LabelReader
from cida.tables.schema import DroppedColumn, Schema
from cida.tables.schema_builder import SchemaBuilder
from cida.tables.sources import TableSource, check_column_names, find_array_files

__all__ = ["ColumnRoles", "EncodedTable", "TableFormat", "map_rows", "read_schema", "read_table"]

MAX_ABS_INDEX_CELL = 1e150  # of an index: squares of distances must not overflow


@dataclass(frozen=True)
class ColumnRoles:
    """Which column is the label, which are the index, and which are left out."""

    label: str
    index: tuple[str, ...]
    drop: tuple[str, ...] = ()
    regression: bool = False

    def check_columns(self, names: Sequence[str]) -> None:
        """Refuses columns that are not there or have two parts to play."""
        for role, columns in (("label", (self.label,)), ("index", self.index), ("drop", self.drop)):
            check_column_names(role, columns, names)
        if not self.index:
            raise ValueError("index has no column; name the one along which labels end.")
        role_columns = [self.label, *self.index, *self.drop]
        duplicate = next((name for name in role_columns if role_columns.count(name) > 1), None)
        if duplicate is not None:
            raise ValueError(f"{duplicate} is named twice among label, index and drop; leave one.")


@dataclass(frozen=True)
class EncodedTable:
    """A table as it was understood; the inputs themselves stay in the file.

    ``y`` holds the number of the class, or the label itself in a regression; it is only meaningful
    where ``labelled`` is true. ``classes`` is None in a regression.
    """

    table: TableSource
    roles: ColumnRoles
    schema: Schema
    y: Array
    labelled: Array
    classes: Array | None
    u: Array
    index_kinds: tuple[ColumnKind, ...]

    def __len__(self) -> int:
        return len(self.u)

    def iter_encoded(self) -> Iterator[Array]:
        """The inputs, a batch at a time."""
        names = self.schema.names or self.roles.index  # the latter for the number of rows
        return (self.schema.encode(batch) for batch in self.table.iter_batches(names))


def read_table(table: TableSource, roles: ColumnRoles) -> EncodedTable:
    """Reads the whole table once (a CSV file twice: first for the kinds of its columns)."""
    roles.check_columns(table.column_names)
    for name in (roles.label, *roles.index):
        if name in table.unreadable:
            raise ValueError(f"{name} cannot be read: {table.unreadable[name]}.")
    if next(table.iter_batches(roles.index), None) is None:
        raise ValueError(f"{table.path} has no rows below the names of its columns.")
    kinds, dropped = _infer_kinds(table, roles.drop)
    columns, label_kind = list(kinds), kinds.pop(roles.label)
    index_kinds = tuple(_resolve_index_kind(table, n, kinds.pop(n)) for n in roles.index)
    builder = SchemaBuilder(kinds, dropped)
    labels = LabelReader(table, roles.label, label_kind, roles.regression)
    index_chunks: list[Array] = []
    for start, batch in enumerate_batches(table.iter_batches(columns)):
        with name_cells_in_errors(table, start, roles):
            index_chunks.append(read_index(batch, roles.index, index_kinds))
            builder.add(batch)
            labels.add(batch.column(roles.label))
        check_index_cells(table, roles.index, index_chunks[-1], start)
    if not sum(map(len, index_chunks)):
        raise ValueError(f"{table.path} is damaged: its columns differ in their rows.")
    u = np.concatenate(index_chunks)
    _check_index_varies(roles.index, u)
    y, labelled, classes = labels.finish()
    schema = _build_schema(table, builder, " beside label and index")
    return EncodedTable(table, roles, schema, y, labelled, classes, u, index_kinds)


def read_schema(table: TableSource, drop: Sequence[str] = ()) -> Schema:
    """The schema of a table whose labels and index are given apart from it."""
    check_column_names("drop", drop, table.column_names)
    kinds, dropped = _infer_kinds(table, drop)
    builder = SchemaBuilder(kinds, dropped)
    for start, batch in enumerate_batches(table.iter_batches(list(kinds))):
        with name_cells_in_errors(table, start):
            builder.add(batch)
    return _build_schema(table, builder)


def _infer_kinds(
    table: TableSource, drop: Sequence[str]
) -> tuple[dict[str, ColumnKind | None], list[DroppedColumn]]:
    """What the columns to read hold, and why the others are not read."""
    unreadable = {n: why for n, why in table.unreadable.items() if n not in drop}
    dropped = [DroppedColumn(name, "unreadable", why) for name, why in unreadable.items()]
    dropped += [DroppedColumn(name, "excluded") for name in drop]
    names = {column.name for column in dropped}
    return table.infer_kinds([n for n in table.column_names if n not in names]), dropped


def _build_schema(table: TableSource, builder: SchemaBuilder, beside: str = "") -> Schema:
    schema = builder.build()
    if not schema.columns and table.input_array is None:
        reasons = "".join(f"; {column.name}: {column.summary()}" for column in schema.dropped)
        raise ValueError(f"{table.path} has no column to learn from{beside}{reasons}.")
    return schema


def map_rows(parts: Iterable[Array], width: int) -> Array:
    """Write float32 rows one after another to a file without a name, and map it.

    The rows are written, not mapped, so that a full disk is an error; the file goes with the array.
    """
    n_rows = 0
    with tempfile.TemporaryFile() as file:
        for part in parts:
            file.write(np.ascontiguousarray(part, dtype=np.float32).tobytes())
            n_rows += len(part)
        file.flush()
        if not width or not n_rows:
            return np.zeros((n_rows, width), dtype=np.float32)
        return np.memmap(file, dtype=np.float32, mode="r", shape=(n_rows, width))


def read_index(batch: Any, names: Sequence[str], kinds: Sequence[ColumnKind]) -> Array:
    """The index columns as float64, shape ``(rows, width)``; dates are days."""
    pairs = zip(names, kinds, strict=True)
    return np.stack([to_numbers(name, kind, batch.column(name)) for name, kind in pairs], axis=1)


@contextmanager
def name_cells_in_errors(
    table: TableSource, start: int, roles: ColumnRoles | None = None
) -> Iterator[None]:
    """A cell that is not of its column's kind, in a sentence with its line."""
    try:
        yield
    except CellError as error:
        role = "column"
        advice = f", and in training it held {error.kind}s; correct the cell or empty it"
        if roles is not None and error.column in roles.index:
            role, advice = "index", "; an index must be numbers or dates"
        elif roles is not None and error.column == roles.label:
            role = "label"
            advice = "; a regression needs numbers: leave out --regression for classes"
        where = table.describe_row(start + error.row)
        raise ValueError(f"{role} {error.column} has {error.text!r} in {where}{advice}.") from None


def hash_table_file(path: Path) -> str:
    """A short hash of the file's bytes, or of those of a folder's arrays: equal for equal files."""
    if path.is_dir():
        hashes = [hash_table_file(one) for one in find_array_files(path).values()]
        return hashlib.sha256(" ".join(hashes).encode()).hexdigest()[:16]
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def enumerate_batches(batches: Iterator[Any]) -> Iterator[tuple[int, Any]]:
    """Each batch with the number of its first row."""
    start = 0
    for batch in batches:
        yield start, batch
        start += len(batch)


def _resolve_index_kind(table: TableSource, name: str, kind: ColumnKind | None) -> ColumnKind:
    if kind == "boolean":
        raise ValueError(f"index {name} holds true and false; an index must be numbers or dates.")
    if kind is None:
        raise ValueError(f"index {name} is empty in every row; every row needs its index.")
    if kind != "category":
        return kind
    # Text somewhere: read it as what it begins with, so that the message names the odd cell.
    first = normalize_text(next(table.iter_batches([name])).column(0)).drop_null()[:1]
    try:
        to_numbers(name, "date", first)
    except CellError:
        return "number"
    return "date"


def check_index_cells(table: TableSource, names: Sequence[str], u: Array, start: int) -> None:
    """Refuses missing cells in the index, by column and line."""
    for name, values in zip(names, u.T, strict=True):
        bad_rows = np.flatnonzero(~np.isfinite(values))
        if len(bad_rows):
            problem = "is empty" if np.isnan(values[bad_rows[0]]) else "is infinite"
            raise ValueError(
                f"index {name} {problem} in {table.describe_row(start + int(bad_rows[0]))}; "
                "every row needs its index: fill it in or leave the row out."
            )


def _check_index_varies(names: Sequence[str], u: Array) -> None:
    for name, values in zip(names, u.T, strict=True):
        if (values == values[0]).all():
            raise ValueError(
                f"index {name} is {values[0]:g} in every row; without different values there is "
                "nothing to adapt along."
            )
        if (largest := float(max(-values.min(), values.max()))) > MAX_ABS_INDEX_CELL:
            raise ValueError(
                f"index {name} reaches {largest:g}, which is beyond what can be computed with; "
                "give it in other units."
            )


@dataclass(frozen=True)
class TableFormat:
    """The columns that a model reads.

    ``index`` is empty where the index was given apart from the table, ``label`` where labels were;
    ``schema`` has no columns where the rows are images or signals.
    """

    schema: Schema
    label: str = ""
    index: tuple[str, ...] = ()
    index_kinds: tuple[ColumnKind, ...] = ()

    def __post_init__(self) -> None:
        if len(self.index) != len(self.index_kinds):
            raise ValueError(f"index has {len(self.index)} columns of {self.index_kinds}")

    @property
    def required_columns(self) -> tuple[str, ...]:
        """The columns that a table must have to be predicted."""
        return (*self.schema.names, *self.index)

    def iter_rows(self, table: TableSource) -> Iterator[tuple[Array, Array | None, Any]]:
        """Inputs, index and the batch itself, a batch at a time; refuses other columns."""
        self._check_columns(table)
        columns = self.required_columns or table.column_names[:1]
        n_rows = 0
        for start, batch in enumerate_batches(table.iter_batches(columns)):
            with name_cells_in_errors(table, start):
                x = self.schema.encode(batch)
                u = read_index(batch, self.index, self.index_kinds) if self.index else None
            if u is not None:
                check_index_cells(table, self.index, u, start)
            if table.input_array is not None:
                x = np.asarray(table.input_array[start : start + len(batch)])
            n_rows += len(batch)
            yield x, u, batch
        if not n_rows:
            raise ValueError(f"{table.path} has no rows; give at least one.")

    def _check_columns(self, table: TableSource) -> None:
        required = self.required_columns
        for name in required:
            if name in table.unreadable:
                raise ValueError(
                    f"{table.path} cannot be read in column {name}: {table.unreadable[name]}; give "
                    "it as in the fit."
                )
        lost = [name for name in required if name not in table.column_names]
        if not lost:
            return
        others = [name for name in table.column_names if name not in required]
        hints = {name: closest_match(name, others) for name in lost}
        near = ", ".join(f"{hint} for {name}" for name, hint in hints.items() if hint)
        raise ValueError(
            f"{table.path} lacks {', '.join(lost)}, which the model was fitted on"
            f"{f' (is it {near}?)' if near else ''}; add or rename."
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON values; `from_dict` reads them back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` gave; refuses what does not fit together."""
        return from_dict(cls, dict(values))
