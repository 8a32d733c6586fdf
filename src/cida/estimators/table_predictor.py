"""The model of a user's own table, to predict from frames and files by the names of columns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cida.estimators.table import TableModel
from cida.estimators.table_networks import network_shape
from cida.tables import TableFile, open_table
from cida.tables.cells import Kind
from cida.tables.frame import check_index, naming_cells, numbered
from cida.tables.reading import ROWS
from cida.words import nearest, one_line

__all__ = ["FrameTable", "TablePredictor", "check_columns", "encoded_batches"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class TablePredictor:
    """Predicts from a pandas, polars or pyarrow table, a dict of columns, or a file's path.

    Columns are found by name, index columns too; others are ignored. Categories that the model does
    not know count as missing. Several estimators predict their mean.
    """

    model: TableModel

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that a table must have."""
        return self.model.needed

    @property
    def classes_(self) -> Array | None:
        """The classes, in the order of `predict_proba`'s columns; None for a regression."""
        classes = self.model.classes
        return None if classes is None else np.array(classes, dtype=object)

    def predict(self, table: Any) -> Array:
        """The most probable class of each row, or the predicted number."""
        predicted = self._predicted(table)
        if self.classes_ is None:
            return predicted[:, 0]
        found: Array = self.classes_[predicted.argmax(1)]
        return found

    def predict_proba(self, table: Any) -> Array:
        """The probability of each class in ``classes_``."""
        if self.model.classes is None:
            raise ValueError(
                f"label {self.model.label} is a number, which has no probabilities; use predict."
            )
        return self._predicted(table)

    def beyond(self, table: Any) -> Array:
        """Which rows have an index far beyond those seen in training: do not trust those."""
        return np.concatenate([self.model.beyond(u) for _, u in self._batches(table)])

    def _predicted(self, table: Any) -> Array:
        return np.concatenate([self.model.predict(x, u) for x, u in self._batches(table)])

    def _batches(self, table: Any) -> Iterator[tuple[Array, Array]]:
        file = as_table(table)
        check_columns(self.model, file)
        rows = 0
        for x, u, _ in encoded_batches(self.model, file):
            rows += len(u)
            yield x, u
        if not rows:
            raise ValueError(f"{file.path} has no rows; give at least one.")


def encoded_batches(model: TableModel, file: TableFile) -> Iterator[tuple[Array, Array, Any]]:
    """Inputs and index of all rows, a batch at a time, and the batch itself."""
    for start, batch in numbered(file.batches(model.needed)):
        with naming_cells(file, start):
            x, u = model.read(batch)
        check_index(file, model.index, u, start)
        if file.array is not None:
            x = model.scaled(file.array[start : start + len(batch)])
        yield x, u, batch


def check_columns(model: TableModel, file: TableFile) -> None:
    """Refuses a table without the columns, or with rows of another shape, than it was fitted on."""
    lost = [name for name in model.needed if name not in file.names or name in file.unreadable]
    if lost:
        hints = {name: nearest(name, [n for n in file.names if n not in model.needed])
                 for name in lost}  # fmt: skip
        near = ", ".join(f"{hint} for {name}" for name, hint in hints.items() if hint)
        raise ValueError(
            f"{file.path} lacks {', '.join(lost)}, which the model was fitted on"
            f"{f' (is it {near}?)' if near else ''}; add or rename."
        )
    found = () if file.array is None else file.array.shape[1:]
    if (file.array is None) != (len(model.shape) == 1) or (
        found and network_shape(found) != model.shape
    ):
        raise ValueError(
            f"{file.path} has rows of shape {found or '(columns)'} and the model was fitted with "
            f"{model.shape}; give rows of the same shape."
        )


def as_table(table: Any) -> TableFile:
    """The file at a path, or a frame that is in memory, to be read batch by batch."""
    if isinstance(table, str | os.PathLike):
        return open_table(Path(table))
    return FrameTable(table)


class FrameTable(TableFile):
    """A table in memory: pandas, polars, pyarrow, or a dict of columns."""

    def __init__(self, table: Any) -> None:
        self.path, self.unreadable, self.table = Path("table"), {}, table
        names: Any = list(table) if isinstance(table, Mapping) else None
        if names is None:
            names = getattr(table, "column_names", getattr(table, "columns", None))
        if names is None:
            raise TypeError(
                f"table is a {type(table).__name__}; give a pandas, polars or pyarrow table, a "
                "dict of columns, or the path of a file."
            )
        self.names = tuple(str(name) for name in names)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        try:
            found = _arrow(self.table, list(columns))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise ValueError(
                f"table cannot be read ({one_line(error)}); give columns of one type each."
            ) from None
        yield from found.select(list(columns)).to_batches(ROWS)

    def kinds(self, columns: Sequence[str]) -> dict[str, Kind | None]:
        raise NotImplementedError("a frame is read with the kinds of the model's own schema")


def _arrow(table: Any, columns: list[str]) -> Any:
    """These columns as a pyarrow table."""
    if isinstance(table, Mapping):
        return pa.table({name: pa.array(table[name], from_pandas=True) for name in columns})
    if hasattr(table, "iloc"):
        return pa.Table.from_pandas(table[columns], preserve_index=False)
    chosen = table.select(columns)
    return chosen.to_arrow() if hasattr(chosen, "to_arrow") else pa.table(chosen)
