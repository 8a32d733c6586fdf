"""The model of a user's own table, to predict from frames and files by the names of columns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cida.errors import closest_match, error_summary
from cida.estimators.table import TableModel
from cida.estimators.table_networks import encoder_input_shape
from cida.tables import TableSource, open_table
from cida.tables.cells import ColumnKind
from cida.tables.encoded_table import check_index_cells, enumerate_batches, name_cells_in_errors
from cida.tables.sources import MAX_BATCH_ROWS

__all__ = ["FrameSource", "TablePredictor", "check_columns", "iter_encoded_batches"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class TablePredictor:
    """Predicts from a pandas, polars or pyarrow table, a dict of columns, or a file's path.

    Columns are found by name, index columns too; others are ignored. Categories that the model does
    not know count as missing. Several estimators predict their mean.
    """

    model: TableModel

    @property
    def required_columns(self) -> tuple[str, ...]:
        """The columns that a table must have."""
        return self.model.required_columns

    @property
    def classes_(self) -> Array | None:
        """The classes, in the order of `predict_proba`'s columns; None for a regression."""
        classes = self.model.classes
        return None if classes is None else np.array(classes, dtype=object)

    def predict(self, table: Any) -> Array:
        """The most probable class of each row, or the predicted number."""
        predicted = self._predict_outputs(table)
        if self.classes_ is None:
            return predicted[:, 0]
        labels: Array = self.classes_[predicted.argmax(1)]
        return labels

    def predict_proba(self, table: Any) -> Array:
        """The probability of each class in ``classes_``."""
        if self.model.classes is None:
            raise ValueError(
                f"label {self.model.label} is a number, which has no probabilities; use predict."
            )
        return self._predict_outputs(table)

    def is_extrapolated(self, table: Any) -> Array:
        """Which rows have an index far beyond those seen in training: do not trust those."""
        return np.concatenate([self.model.is_extrapolated(u) for _, u in self._iter_batches(table)])

    def _predict_outputs(self, table: Any) -> Array:
        return np.concatenate([self.model.predict(x, u) for x, u in self._iter_batches(table)])

    def _iter_batches(self, table: Any) -> Iterator[tuple[Array, Array]]:
        table_source = to_table_source(table)
        check_columns(self.model, table_source)
        n_rows = 0
        for x, u, _ in iter_encoded_batches(self.model, table_source):
            n_rows += len(u)
            yield x, u
        if not n_rows:
            raise ValueError(f"{table_source.path} has no rows; give at least one.")


def iter_encoded_batches(
    model: TableModel, table: TableSource
) -> Iterator[tuple[Array, Array, Any]]:
    """Inputs and index of all rows, a batch at a time, and the batch itself."""
    for start, batch in enumerate_batches(table.iter_batches(model.required_columns)):
        with name_cells_in_errors(table, start):
            x, u = model.read_batch(batch)
        check_index_cells(table, model.index, u, start)
        if table.input_array is not None:
            x = model.scale_rows(table.input_array[start : start + len(batch)])
        yield x, u, batch


def check_columns(model: TableModel, table: TableSource) -> None:
    """Refuses a table without the columns, or with rows of another shape, than it was fitted on."""
    missing_columns = [
        name
        for name in model.required_columns
        if name not in table.column_names or name in table.unreadable
    ]
    if missing_columns:
        hints = {
            name: closest_match(
                name, [n for n in table.column_names if n not in model.required_columns]
            )
            for name in missing_columns
        }
        suggestions = ", ".join(f"{hint} for {name}" for name, hint in hints.items() if hint)
        raise ValueError(
            f"{table.path} lacks {', '.join(missing_columns)}, which the model was fitted on"
            f"{f' (is it {suggestions}?)' if suggestions else ''}; add or rename."
        )
    row_shape = () if table.input_array is None else table.input_array.shape[1:]
    if (table.input_array is None) != (len(model.shape) == 1) or (
        row_shape and encoder_input_shape(row_shape) != model.shape
    ):
        raise ValueError(
            f"{table.path} has rows of shape {row_shape or '(columns)'} and the model was "
            "fitted with "
            f"{model.shape}; give rows of the same shape."
        )


def to_table_source(table: Any) -> TableSource:
    """The file at a path, or a frame that is in memory, to be read batch by batch."""
    if isinstance(table, str | os.PathLike):
        return open_table(Path(table))
    return FrameSource(table)


class FrameSource(TableSource):
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
        self.column_names = tuple(str(name) for name in names)

    def iter_batches(self, columns: Sequence[str]) -> Iterator[Any]:
        try:
            arrow_table = _to_arrow(self.table, list(columns))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise ValueError(
                f"table cannot be read ({error_summary(error)}); give columns of one type each."
            ) from None
        yield from arrow_table.select(list(columns)).to_batches(MAX_BATCH_ROWS)

    def infer_kinds(self, columns: Sequence[str]) -> dict[str, ColumnKind | None]:
        raise NotImplementedError("a frame is read with the kinds of the model's own schema")


def _to_arrow(table: Any, columns: list[str]) -> Any:
    """These columns as a pyarrow table."""
    if isinstance(table, Mapping):
        return pa.table({name: pa.array(table[name], from_pandas=True) for name in columns})
    if hasattr(table, "iloc"):
        return pa.Table.from_pandas(table[columns], preserve_index=False)
    subset = table.select(columns)
    return subset.to_arrow() if hasattr(subset, "to_arrow") else pa.table(subset)
