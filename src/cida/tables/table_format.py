"""How the columns of a table become inputs, index and labels: fixed by a fit, used to predict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from cida.errors import closest_match
from cida.io.json_decode import from_dict
from cida.tables.cells import ColumnKind
from cida.tables.encoded_table import (
    check_index_cells,
    enumerate_batches,
    name_cells_in_errors,
    read_index,
)
from cida.tables.schema import Schema
from cida.tables.sources import TableSource

__all__ = ["TableFormat"]

Array = np.ndarray[Any, Any]


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
