"""The cells of one column: from what a file holds to float64 numbers or to texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cida.array_types import Array

__all__ = ["CellError", "ColumnKind", "can_parse", "is_text", "normalize_text", "to_numbers"]

Cells = Any  # a pyarrow.Array; pyarrow has no types
ColumnKind = Literal["number", "boolean", "date", "category"]
NUMERIC_KINDS: tuple[ColumnKind, ...] = ("boolean", "number", "date")  # as they are tried

MISSING_MARKERS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "<NA>")
MICROSECONDS_PER_DAY = 86_400_000_000
# A zone makes another type of a time, and so do more than six digits of a second.
TIMESTAMP_TYPES = [pa.timestamp(unit, tz) for unit in ("us", "ns") for tz in (None, "UTC")]


class CellError(ValueError):
    """A cell that is not of its column's kind: which column, which row of the batch, what is in it.

    Who knows the file turns it into a sentence with the line in it.
    """

    def __init__(self, column: str, kind: ColumnKind, row: int, text: str) -> None:
        super().__init__(f"column {column} has {text!r} in row {row}, which is no {kind}.")
        self.column, self.kind, self.row, self.text = column, kind, row, text


def is_text(cells: Cells) -> bool:
    """Whether these are texts, plain or as a dictionary."""
    kind = cells.type.value_type if pa.types.is_dictionary(cells.type) else cells.type
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()
    )


def normalize_text(cells: Cells) -> Cells:
    """Every cell as text without blanks around it, null where it is missing."""
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    trimmed = pc.utf8_trim_whitespace(cells.cast(pa.string()))
    is_missing = pc.is_in(trimmed, value_set=pa.array(MISSING_MARKERS))
    return pc.if_else(is_missing, pa.scalar(None, pa.string()), trimmed)


def to_numbers(column: str, kind: ColumnKind, cells: Cells) -> Array:
    """The cells of a numeric kind as float64, NaN where missing; dates are days since 1970."""
    parse = _PARSERS[kind]
    if is_text(cells):
        cells = normalize_text(cells)
    try:
        return parse(cells)
    except pa.ArrowException:
        row = _find_first_unparsable(parse, cells)
        raise CellError(column, kind, row, _format_cell(cells[row])) from None


def _format_cell(cell: Any) -> str:
    try:
        return str(cell)
    except (OverflowError, ValueError):  # a date beyond Python's calendar
        return f"a {cell.type} beyond the calendar"


def can_parse(kind: ColumnKind, cells: Cells) -> bool:
    """Whether all of these texts, as `texts` gives them, can be read as this numeric kind."""
    try:
        _PARSERS[kind](cells.drop_null()[:1])  # most columns are told by one cell, at no cost
        _PARSERS[kind](cells)
    except pa.ArrowException:
        return False
    return True


def _find_first_unparsable(parse: Callable[[Cells], Array], cells: Cells) -> int:
    """The first cell that cannot be read, found by halves."""
    low, high = 0, len(cells)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            parse(cells[low:middle])
        except pa.ArrowException:
            high = middle
        else:
            low = middle
    return low


def _parse_numbers(cells: Cells) -> Array:
    if pa.types.is_time(cells.type) or pa.types.is_duration(cells.type):
        integer_type = pa.int32() if pa.types.is_time32(cells.type) else pa.int64()
        cells = cells.cast(integer_type)
    # Whole numbers beyond 2^53 are rounded, which a model does not feel; texts must parse.
    return _to_float64(cells.cast(pa.float64(), safe=is_text(cells)))


def _parse_booleans(cells: Cells) -> Array:
    if is_text(cells):
        lower = pc.utf8_lower(cells)
        is_boolean = pc.is_in(lower, value_set=pa.array(["true", "false", None], pa.string()))
        if not pc.all(is_boolean).as_py() and len(cells):
            raise pa.ArrowInvalid("neither true nor false")
        cells = pc.equal(lower, "true")
    return _to_float64(cells.cast(pa.bool_()).cast(pa.float64()))


def _parse_dates(cells: Cells) -> Array:
    if is_text(cells):
        cells = _parse_timestamps(cells)
    elif pa.types.is_null(cells.type):  # a column that is empty in all rows
        return np.full(len(cells), np.nan)
    elif not pa.types.is_temporal(cells.type):
        raise pa.ArrowInvalid("no date")
    instants = cells.cast(pa.timestamp("us", tz=getattr(cells.type, "tz", None)), safe=False)
    microseconds = instants.cast(pa.int64()).cast(pa.float64(), safe=False)
    return _to_float64(microseconds) / MICROSECONDS_PER_DAY


def _parse_timestamps(cells: Cells) -> Cells:
    for kind in TIMESTAMP_TYPES[:-1]:
        try:
            return cells.cast(kind)
        except pa.ArrowInvalid:
            continue
    return cells.cast(TIMESTAMP_TYPES[-1])


def _to_float64(cells: Cells) -> Array:
    values: Array = cells.to_numpy(zero_copy_only=False)
    return values.astype(np.float64, copy=False)


_PARSERS: dict[ColumnKind, Callable[[Cells], Array]] = {
    "number": _parse_numbers,
    "boolean": _parse_booleans,
    "date": _parse_dates,
}
