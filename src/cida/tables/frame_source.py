"""Tables in memory: pandas, polars, pyarrow, or a mapping of columns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from cida.errors import error_summary
from cida.tables.cells import ColumnKind
from cida.tables.sources import (
    MAX_BATCH_ROWS,
    TableSource,
    check_distinct_names,
    infer_text_kinds,
    is_readable,
    kind_of_type,
    open_table,
)

__all__ = ["FrameSource", "open_any_table"]


def open_any_table(table: Any) -> TableSource:
    """The table at a path, or one in memory."""
    if isinstance(table, TableSource):
        return table
    if isinstance(table, str | os.PathLike):
        return open_table(Path(table))
    return FrameSource(table)


class FrameSource(TableSource):
    """A table in memory; text columns may hold numbers or dates, as those of a CSV file do."""

    def __init__(self, table: Any) -> None:
        self.path, self.table = Path("table"), table
        names: Any = list(table) if isinstance(table, Mapping) else None
        if names is None:
            names = getattr(table, "column_names", getattr(table, "columns", None))
        if names is None:
            raise TypeError(
                f"X is a {type(table).__name__}; give a pandas, polars or pyarrow table, a dict "
                "of columns, or the path of a file."
            )
        self.column_names = check_distinct_names(self.path, [str(name) for name in names])
        self.unreadable = {}
        self.types: dict[str, Any] = {}
        for name in self.column_names:
            try:
                self.types[name] = _to_arrow(self.table, [name]).schema.types[0]
            except (pa.ArrowException, TypeError, ValueError) as error:
                self.unreadable[name] = f"it cannot be read ({error_summary(error)})"
                continue
            if not is_readable(self.types[name]):
                self.unreadable[name] = f"its type is {self.types[name]}"

    def iter_batches(self, columns: Sequence[str]) -> Iterator[Any]:
        try:
            selected = _to_arrow(self.table, list(columns))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise ValueError(
                f"table cannot be read ({error_summary(error)}); give columns of one type each."
            ) from None
        yield from selected.select(list(columns)).to_batches(MAX_BATCH_ROWS)

    def infer_kinds(self, columns: Sequence[str]) -> dict[str, ColumnKind | None]:
        kinds = {name: kind_of_type(self.types[name]) for name in columns}
        texts = [name for name, kind in kinds.items() if kind == "category"]
        return kinds | infer_text_kinds(self, texts)


def _to_arrow(table: Any, columns: list[str]) -> Any:
    """These columns as a pyarrow table."""
    if isinstance(table, Mapping):
        return pa.table({name: pa.array(table[name], from_pandas=True) for name in columns})
    if hasattr(table, "iloc"):
        return pa.Table.from_pandas(table[columns], preserve_index=False)
    selected = table.select(columns)
    return selected.to_arrow() if hasattr(selected, "to_arrow") else pa.table(selected)
