"""The label column: classes or numbers, and which rows have one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from cida.scratch import filled, parts
from cida.tables.cells import Kind, texts, to_numbers
from cida.tables.reading import TableFile
from cida.tables.store import Gathered

__all__ = ["ClassReader", "NumberReader"]

Array = np.ndarray[Any, Any]
Found = tuple[Array, Array, tuple[str, ...] | None]  # y, labelled, classes

MOST_CLASSES = 100
NONE = -1  # the code of an empty label


class ClassReader:
    """Labels as classes, in the order of their numbers or else of their texts."""

    def __init__(self, file: TableFile, name: str, kind: Kind | None) -> None:
        self.file, self.name, self.kind = file, name, kind
        self.codes: dict[str, int] = {}
        self.parts = Gathered()

    def add(self, column: Any) -> None:
        if self.kind == "number":
            values = to_numbers(self.name, self.kind, column)
            if self.file.unlabelled is not None:
                values = np.where(values == self.file.unlabelled, np.nan, values)
            cells = pa.array(values, from_pandas=True)
        else:
            cells = texts(column)
        encoded = pc.dictionary_encode(cells)
        mine = [self._code(value) for value in encoded.dictionary.to_pylist()]
        places = encoded.indices.fill_null(len(mine)).to_numpy(zero_copy_only=False)
        self.parts.add(np.array([*mine, NONE], dtype=np.int64)[places])

    def finish(self) -> Found:
        """Codes in the order of the classes; refuses what cannot be learned."""
        codes = torch.from_numpy(self.parts.whole())
        labelled = filled(len(codes), lambda part: codes[part] != NONE).numpy()
        _check_labelled(self.name, labelled)
        order = sorted(self.codes, key=self._rank)
        if len(order) < 2:
            raise ValueError(
                f"label {self.name} has one class ({order[0]}) among its "
                f"{int(labelled.sum()):,} labelled rows; a classifier needs at least two."
            )
        counts = torch.zeros(len(order) + 1, dtype=torch.int64)  # the first of empty labels
        for part in parts(len(codes)):
            counts += (codes[part] - NONE).bincount(minlength=len(counts))
        for text in order:
            if counts[self.codes[text] - NONE] == 1:
                row = int((codes == self.codes[text]).nonzero()[0, 0])
                raise ValueError(
                    f"label {self.name} has the class {text!r} only once, in "
                    f"{self.file.place(row)}; a class needs two rows at least: correct it, or "
                    "leave the row out."
                )
        position = torch.zeros(len(order) + 1, dtype=torch.int64)  # the last for empty labels
        position[[self.codes[text] for text in order]] = torch.arange(len(order))
        y = filled(len(codes), lambda part: position[codes[part]])
        return y.numpy(), labelled, tuple(order)

    def _code(self, value: Any) -> int:
        code = self.codes.setdefault(_words(value), len(self.codes))
        if code >= MOST_CLASSES:
            hint = "add --regression for numbers" if self.kind == "number" else "name another"
            raise ValueError(
                f"label {self.name} has more than {MOST_CLASSES} different values; {hint}."
            )
        return code

    def _rank(self, text: str) -> Any:
        return float(text) if self.kind == "number" else text


class NumberReader:
    """Labels as numbers."""

    def __init__(self, file: TableFile, name: str, kind: Kind | None) -> None:
        self.file, self.name, self.kind = file, name, kind
        self.parts = Gathered()

    def add(self, column: Any) -> None:
        self.parts.add(to_numbers(self.name, "number", column))

    def finish(self) -> Found:
        """The numbers; refuses labels that are all one number, or not finite."""
        y = self.parts.whole()
        labelled = ~np.isnan(y)
        _check_labelled(self.name, labelled)
        endless = np.flatnonzero(np.isinf(y))
        if len(endless):
            raise ValueError(
                f"label {self.name} is infinite in {self.file.place(int(endless[0]))}; correct it, "
                "or empty it for a target row."
            )
        known = y[labelled]
        if (known == known[0]).all():
            raise ValueError(
                f"label {self.name} is {known[0]:g} in all of its {len(known):,} labelled rows; "
                "there is nothing to learn."
            )
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            spread = float(known.std())
        if not 1e-150 < spread < 1e150:
            raise ValueError(
                f"label {self.name} goes from {known.min():g} to {known.max():g}, which is beyond "
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


def _words(value: Any) -> str:
    """A label as text; 1.0 is 1, since a column of numbers with holes is often read so."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value)
