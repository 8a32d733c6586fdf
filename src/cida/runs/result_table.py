"""Tables as data: cells with a value, a format and an emphasis; how they look is the report's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

RowRole = Literal["own", "best", "published", "published-below"]


@dataclass(frozen=True)
class Cell:
    """A number with its format, or a text; None is a number that is not known.

    ``display`` is how a number is written where no format does it, such as a date. ``note`` is
    text behind the value. ``is_best`` marks the best of a comparison.
    """

    value: float | str | None = None
    format: str = ""
    is_best: bool = False
    note: str = ""
    display: str = ""

    @property
    def is_text(self) -> bool:
        """Whether the value is a text."""
        return isinstance(self.value, str)

    @property
    def value_text(self) -> str:
        """The value alone, as it is written."""
        if self.display or self.value is None:
            return self.display
        return f"{self.value:{self.format}}"

    def __str__(self) -> str:
        return f"{self.value_text}{self.note}"


CellValue = Cell | float | str | None


def percent(share: float | None, sign: str = "", is_best: bool = False) -> Cell:
    """A share in per cent with one decimal."""
    return Cell(None if share is None else 100 * share, f"{sign}.1f", is_best)


@dataclass(frozen=True)
class TableRow:
    """The cells of a row by column; a published row is not ours, and may go with the one above."""

    cells: dict[str, Cell]
    role: RowRole = "own"


@dataclass(frozen=True)
class ResultTable:
    """Rows that all have the same columns, in their order."""

    rows: tuple[TableRow, ...]

    @classmethod
    def of(cls, lines: Iterable[Mapping[str, CellValue]]) -> ResultTable:
        """A table of these values, a row for each mapping."""
        rows = [
            {name: v if isinstance(v, Cell) else Cell(v) for name, v in line.items()}
            for line in lines
        ]
        return cls(tuple(map(TableRow, rows)))

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.rows[0].cells)

    def cells(self, row: TableRow) -> list[Cell]:
        """The cells of a row in the order of the columns."""
        return [row.cells[name] for name in self.columns]

    @property
    def texts(self) -> list[dict[str, str]]:
        """The cells of each row as they are written."""
        return [{name: str(cell) for name, cell in row.cells.items()} for row in self.rows]

    def without_columns(self, names: Sequence[str]) -> ResultTable:
        """The same table, with these columns left out."""
        kept = [{n: c for n, c in row.cells.items() if n not in names} for row in self.rows]
        return ResultTable(
            tuple(TableRow(c, row.role) for c, row in zip(kept, self.rows, strict=True))
        )
