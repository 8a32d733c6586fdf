"""``cida predict`` on a table: a line for each row, batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from cida.cli.output import say
from cida.cli.table_words import rows_words
from cida.estimators.table import TableModel
from cida.estimators.table_predictor import check_columns, encoded_batches
from cida.tables import TableFile, open_table, writing
from cida.tables.writing import check_suffix

__all__ = ["predict_table"]

Array = np.ndarray[Any, Any]
DIGITS = 6  # of a probability


def predict_table(run: Path, data: Path, out: Path, console: Console) -> dict[str, Any]:
    """Writes a line for each row; prints what was ignored, unknown or far away, and returns it."""
    check_suffix(out)
    model = TableModel.load(run)
    file = open_table(data)
    check_columns(model, file)
    if out.exists() and out.samefile(data):
        raise ValueError(f"out is {out}, which is DATA; choose another name.")
    strangers: Counter[str] = Counter()
    rows = beyond = 0
    with writing(out) as write:
        for x, u, batch in encoded_batches(model, file):
            predicted = model.predict(x, u)
            far = model.beyond(u)
            numbers = np.arange(rows + 1, rows + len(u) + 1)
            write({"row": numbers, **_columns(model, predicted), "beyond": far})
            rows, beyond = rows + len(u), beyond + int(far.sum())
            strangers.update(model.schema.strangers(batch))
        if not rows:
            raise ValueError(f"{data} has no rows below the names of its columns.")
    notes = list(_notes(model, file, strangers, rows, beyond))
    say(console, *notes)
    return {"rows": rows, "beyond": beyond, "unknown_categories": dict(strangers), "notes": notes}


def _columns(model: TableModel, predicted: Array) -> dict[str, Any]:
    if model.classes is None:
        return {"prediction": predicted[:, 0]}
    classes = np.array(model.classes, dtype=object)
    probability = predicted.round(DIGITS)
    return {
        "prediction": classes[predicted.argmax(1)],
        **{f"probability_{name}": probability[:, k] for k, name in enumerate(model.classes)},
    }


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
