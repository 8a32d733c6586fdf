"""Tables of text: named columns of numbers and categories, read from a file of the cache."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["IndexedTable", "TextTable", "read_text_table"]

Array = np.ndarray[Any, Any]

REFETCH_HINT = "take the file away and let cida data fetch get it again"


@dataclass(frozen=True)
class IndexedTable:
    """A table with its truth: named columns, index, and labels of every row.

    ``columns`` are numbers, float64 with NaN where there is none, or categories, object arrays of
    str with None where there is none. ``u`` is the index, float64 (rows, numbers of the index),
    and ``index_names`` says what its numbers are. Neither the index nor the label is a column.
    """

    name: str
    columns: dict[str, Array]
    u: Array
    y: Array
    index_names: tuple[str, ...]


@dataclass(frozen=True)
class TextTable:
    """The cells of some columns of a file, as they are written there."""

    file: str
    cells: dict[str, tuple[str, ...]]

    def parse_numbers(self, name: str, required: bool = False) -> Array:
        """A column as float64; an empty cell is NaN, or is refused if every row needs a number."""
        values = np.array([_parse_number(cell) for cell in self.cells[name]])
        is_bad = ~np.isfinite(values) if required else np.isinf(values)
        if is_bad.any():
            raise self.make_cell_error(name, is_bad, "no number")
        return values

    def parse_categories(self, name: str) -> Array:
        """A column as objects: str, or None where the cell is empty."""
        return np.array([cell.strip() or None for cell in self.cells[name]], dtype=object)

    def make_cell_error(
        self, name: str, is_bad: Sequence[bool] | Array, problem: str
    ) -> ValueError:
        """The error that names the first wrong cell."""
        row = int(np.argmax(is_bad))
        return ValueError(
            f"{self.file} has {self.cells[name][row]!r} in column {name}, line {row + 2}: "
            f"this is {problem}; correct the line."
        )


def read_text_table(path: Path, names: Sequence[str], delimiter: str = ",") -> TextTable:
    """The named columns, two or more, of a file whose first line has the names."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = [*csv.reader(file, delimiter=delimiter)] or [[]]
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{path.name} is no table of text: {error}; {REFETCH_HINT}.") from error
    for name in names:
        if name not in header:
            raise ValueError(f"{path.name} has no column {name} in its first line; {REFETCH_HINT}.")
    for line, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise ValueError(
                f"{path.name} has {len(row)} cells in line {line} instead of {len(header)}; "
                f"correct the line."
            )
    select_columns = itemgetter(*map(header.index, names))
    columns = zip(*map(select_columns, rows), strict=True) if rows else [()] * len(names)
    return TextTable(path.name, dict(zip(names, columns, strict=True)))


def _parse_number(cell: str) -> float:
    """NaN if the cell is empty, infinity if it is no number."""
    try:
        return float(cell)
    except ValueError:
        return math.inf if cell.strip() else math.nan
