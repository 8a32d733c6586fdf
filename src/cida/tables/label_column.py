"""The label column: classes or numbers, and which rows have one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cida.array_types import Array
from cida.tables.cells import ColumnKind, normalize_text, to_numbers
from cida.tables.sources import TableSource

__all__ = ["LabelReader"]


MAX_LABEL_CLASSES = 100


class LabelReader:
    """Sees the labels of every batch once, then tells classes or numbers."""

    def __init__(
        self, table: TableSource, name: str, kind: ColumnKind | None, regression: bool
    ) -> None:
        self.table, self.name, self.regression = table, name, regression
        self.kind = "number" if regression else kind
        self.chunks: list[Any] = []  # numbers, NaN where missing, or texts as dictionaries

    def add(self, column: Any) -> None:
        if self.kind == "number":
            self.chunks.append(to_numbers(self.name, "number", column))
            return
        cells = normalize_text(column)
        cells = pc.utf8_lower(cells) if self.kind == "boolean" else cells
        self.chunks.append(pc.dictionary_encode(cells))
        self._check_class_count(len(self.chunks[-1].dictionary))

    def finish(self) -> tuple[Array, Array, Array | None]:
        """Codes and classes in their order, or numbers; and which rows are labelled.

        Refuses what cannot be learned.
        """
        if self.regression:
            y = np.concatenate(self.chunks)
            labelled = ~np.isnan(y)
            self._check_labelled(labelled)
            self._check_numbers(y, y[labelled])
            return np.where(labelled, y, 0.0), labelled, None
        codes, classes = self._encode_classes()
        labelled = codes >= 0
        self._check_labelled(labelled)
        if len(classes) < 2:
            raise ValueError(
                f"label {self.name} has one class ({classes[0]}) among its "
                f"{int(labelled.sum()):,} labelled rows; a classifier needs at least two."
            )
        for code in np.flatnonzero(np.bincount(codes[labelled]) == 1)[:1]:
            row = self.table.describe_row(int(np.flatnonzero(codes == code)[0]))
            raise ValueError(
                f"label {self.name} has the class {str(classes[code])!r} only once, in {row}; a "
                "class needs two rows at least: correct it, or leave the row out."
            )
        if self.kind == "boolean":
            classes = classes == "true"
        return np.where(labelled, codes, 0), labelled, classes

    def _encode_classes(self) -> tuple[Array, Array]:
        """The number of each row's class, -1 where it has none, and the classes in order."""
        if self.kind == "number":
            y = np.concatenate(self.chunks)
            is_missing = np.isnan(y) | (y == self.table.missing_label)
            known = np.unique(y[~is_missing]).tolist()
            codes = np.where(is_missing, -1, np.searchsorted(known, y))
            classes = [int(v) for v in known] if all(v.is_integer() for v in known) else known
        else:
            chunks = pa.chunked_array(self.chunks).unify_dictionaries().chunks
            texts = chunks[0].dictionary.to_pylist()
            classes = sorted(texts)
            positions = np.array([*(classes.index(text) for text in texts), -1])
            codes = positions[np.concatenate([c.indices.fill_null(-1).to_numpy() for c in chunks])]
        self._check_class_count(len(classes))
        return codes, np.array(classes)

    def _check_class_count(self, n_classes: int) -> None:
        if n_classes > MAX_LABEL_CLASSES:
            hint = "add --regression for numbers" if self.kind == "number" else "name another"
            raise ValueError(
                f"label {self.name} has more than {MAX_LABEL_CLASSES} different values; {hint}."
            )

    def _check_labelled(self, labelled: Array) -> None:
        if not labelled.any():
            raise ValueError(
                f"label {self.name} is empty in all {len(labelled):,} rows; fill it in where it "
                "is known: those rows are the source."
            )
        if labelled.all():
            raise ValueError(
                f"label {self.name} is given in all {len(labelled):,} rows, so there is no target "
                "to adapt to; leave it empty in the rows to predict."
            )

    def _check_numbers(self, y: Array, known: Array) -> None:
        """Refuses labels that are all one number, or not finite."""
        for row in np.flatnonzero(np.isinf(y))[:1]:
            raise ValueError(
                f"label {self.name} is infinite in {self.table.describe_row(int(row))}; correct "
                "it, or empty it for a target row."
            )
        if (known == known[0]).all():
            raise ValueError(
                f"label {self.name} is {known[0]:g} in all of its {len(known):,} labelled rows; "
                "there is nothing to learn."
            )
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            std = float(known.std())
        if not 1e-150 < std < 1e150:
            raise ValueError(
                f"label {self.name} goes from {known.min():g} to {known.max():g}, which is beyond "
                "what can be computed with; give it in other units."
            )
