"""``cida predict`` on a table: a line for each row, batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from cida.cli.table_words import rows_words
from cida.estimators.table import TableModel
from cida.estimators.table_networks import network_shape
from cida.tables import TableFile, open_table, writing
from cida.tables.frame import check_index, naming_cells, numbered
from cida.tables.reading import nearest
from cida.tables.writing import check_suffix

__all__ = ["predict_table"]

Array = np.ndarray[Any, Any]
DIGITS = 6  # of a probability


def predict_table(run: Path, data: Path, out: Path, console: Console) -> int:
    """Prints what was ignored, unknown or far away and, last, the file's path."""
    check_suffix(out)
    model = TableModel.load(run)
    file = open_table(data)
    _check_columns(model, file)
    if out.exists() and out.samefile(data):
        raise ValueError(f"out is {out}, which is DATA; choose another name.")
    strangers: Counter[str] = Counter()
    rows = beyond = 0
    with writing(out) as write:
        for x, u, new in _batches(model, file):
            predicted = model.predict(x, u)
            far = model.beyond(u)
            numbers = np.arange(rows + 1, rows + len(u) + 1)
            write({"row": numbers, **_columns(model, predicted), "beyond": far})
            rows, beyond = rows + len(u), beyond + int(far.sum())
            strangers.update(new)
        if not rows:
            raise ValueError(f"{data} has no rows below the names of its columns.")
    for line in _notes(model, file, strangers, rows, beyond):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    console.print(str(out.resolve()), soft_wrap=True, highlight=False)
    return 0


def _batches(model: TableModel, file: TableFile) -> Iterator[tuple[Array, Array, dict[str, int]]]:
    """Inputs, index, and how many cells hold a new category."""
    for start, batch in numbered(file.batches(model.needed)):
        with naming_cells(file, start):
            x, u = model.read(batch)
        check_index(file, model.index, u, start)
        if file.array is not None:
            x = model.scaled(file.array[start : start + len(batch)])
        yield x, u, model.schema.strangers(batch)


def _columns(model: TableModel, predicted: Array) -> dict[str, Any]:
    if model.classes is None:
        return {"prediction": predicted[:, 0]}
    classes = np.array(model.classes, dtype=object)
    probability = predicted.round(DIGITS)
    return {
        "prediction": classes[predicted.argmax(1)],
        **{f"probability_{name}": probability[:, k] for k, name in enumerate(model.classes)},
    }


def _check_columns(model: TableModel, file: TableFile) -> None:
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


def _notes(
    model: TableModel, file: TableFile, strangers: Counter[str], rows: int, beyond: int
) -> Iterator[str]:
    known = {*model.needed, model.label, *(name for name, _ in model.schema.dropped)}
    extra = [name for name in file.names if name not in known]
    if extra:
        yield f"ignored, since the model was not fitted on them: {', '.join(extra)}"
    if strangers:
        counts = ", ".join(f"{name} ({rows_words(count)})" for name, count in strangers.items())
        yield f"categories that the model does not know, read as missing: {counts}"
    if beyond:
        yield (
            f"{beyond:,} of {rows:,} rows have an index far beyond those seen in training (beyond "
            "is true); do not trust predictions there"
        )
    yield f"{rows_words(rows)} predicted"
