"""The label column: classes or numbers, and which rows have one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cida.tables.cells import ColumnKind, normalize_text, to_numbers
from cida.tables.sources import TableSource

__all__ = ["ClassLabelReader", "NumberLabelReader", "natural_classes"]

Array = np.ndarray[Any, Any]
LabelColumn = tuple[Array, Array, tuple[str, ...] | None]  # y, labelled, classes

MAX_LABEL_CLASSES = 100
MISSING_CODE = -1  # the code of an empty label


class ClassLabelReader:
    """Labels as classes, in the order of their numbers or else of their texts."""

    def __init__(self, file: TableSource, name: str, kind: ColumnKind | None) -> None:
        self.file, self.name, self.kind = file, name, kind
        self.codes: dict[str, int] = {}
        self.chunks: list[Array] = []

    def add(self, column: Any) -> None:
        if self.kind == "number":
            values = to_numbers(self.name, self.kind, column)
            if self.file.missing_label is not None:
                values = np.where(values == self.file.missing_label, np.nan, values)
            cells = pa.array(values, from_pandas=True)
        else:
            cells = normalize_text(column)
        encoded = pc.dictionary_encode(cells)
        codes = [self._get_code(value) for value in encoded.dictionary.to_pylist()]
        positions = encoded.indices.fill_null(len(codes)).to_numpy(zero_copy_only=False)
        self.chunks.append(np.array([*codes, MISSING_CODE], dtype=np.int64)[positions])

    def finish(self) -> LabelColumn:
        """Codes in the order of the classes; refuses what cannot be learned."""
        codes = np.concatenate(self.chunks)
        labelled = codes != MISSING_CODE
        _check_labelled(self.name, labelled)
        classes = sorted(self.codes, key=self._sort_key)
        if len(classes) < 2:
            raise ValueError(
                f"label {self.name} has one class ({classes[0]}) among its "
                f"{int(labelled.sum()):,} labelled rows; a classifier needs at least two."
            )
        counts = np.bincount(codes[labelled], minlength=len(classes))
        for text in classes:
            if counts[self.codes[text]] == 1:
                row = int(np.flatnonzero(codes == self.codes[text])[0])
                raise ValueError(
                    f"label {self.name} has the class {text!r} only once, in "
                    f"{self.file.describe_row(row)}; a class needs two rows at least: correct "
                    "it, or "
                    "leave the row out."
                )
        position = np.zeros(len(classes) + 1, dtype=np.int64)  # the last for empty labels
        position[[self.codes[text] for text in classes]] = np.arange(len(classes))
        return position[codes], labelled, tuple(classes)

    def _get_code(self, value: Any) -> int:
        code = self.codes.setdefault(_label_to_text(value), len(self.codes))
        if code >= MAX_LABEL_CLASSES:
            hint = "add --regression for numbers" if self.kind == "number" else "name another"
            raise ValueError(
                f"label {self.name} has more than {MAX_LABEL_CLASSES} different values; {hint}."
            )
        return code

    def _sort_key(self, text: str) -> Any:
        return float(text) if self.kind == "number" else text


class NumberLabelReader:
    """Labels as numbers."""

    def __init__(self, file: TableSource, name: str, kind: ColumnKind | None) -> None:
        self.file, self.name, self.kind = file, name, kind
        self.chunks: list[Array] = []

    def add(self, column: Any) -> None:
        self.chunks.append(to_numbers(self.name, "number", column))

    def finish(self) -> LabelColumn:
        """The numbers; refuses labels that are all one number, or not finite."""
        y = np.concatenate(self.chunks)
        labelled = ~np.isnan(y)
        _check_labelled(self.name, labelled)
        infinite_rows = np.flatnonzero(np.isinf(y))
        if len(infinite_rows):
            raise ValueError(
                f"label {self.name} is infinite in "
                f"{self.file.describe_row(int(infinite_rows[0]))}; correct it, "
                "or empty it for a target row."
            )
        source_labels = y[labelled]
        if (source_labels == source_labels[0]).all():
            raise ValueError(
                f"label {self.name} is {source_labels[0]:g} in all of its "
                f"{len(source_labels):,} labelled rows; "
                "there is nothing to learn."
            )
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            std = float(source_labels.std())
        if not 1e-150 < std < 1e150:
            raise ValueError(
                f"label {self.name} goes from {source_labels.min():g} to "
                f"{source_labels.max():g}, which is beyond "
                "what can be computed with; give it in other units."
            )
        return np.where(labelled, y, 0.0), labelled, None


def _check_labelled(name: str, labelled: Array) -> None:
    if not labelled.any():
        raise ValueError(
            f"label {name} is empty in all {len(labelled):,} rows; fill it in where it is known: "
            "those rows are the source."
        )
    if labelled.all():
        raise ValueError(
            f"label {name} is given in all {len(labelled):,} rows, so there is no target to adapt "
            "to; leave it empty in the rows to predict."
        )


def natural_classes(names: Sequence[str], kind: ColumnKind | None) -> Array:
    """Class names as what they stand for: numbers, booleans or texts."""
    if kind == "number":
        values = [float(name) for name in names]
        return np.array([int(v) for v in values] if all(v.is_integer() for v in values) else values)
    if kind == "boolean":
        return np.array([name.lower() == "true" for name in names])
    return np.array(list(names))


def _label_to_text(value: Any) -> str:
    """A label as text; 1.0 is 1, since a column of numbers with holes is often read so."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value)
