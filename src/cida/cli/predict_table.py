"""``cida predict`` on a table: a line for each row, batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from cida.cli.output import print_lines
from cida.cli.table_words import rows_words
from cida.estimators.table import TableModel
from cida.estimators.table_predictor import check_columns, iter_encoded_batches
from cida.tables import TableSource, open_table, open_writer
from cida.tables.writer import check_output_suffix

__all__ = ["predict_table"]

Array = np.ndarray[Any, Any]
PROBABILITY_DIGITS = 6  # of a probability


def predict_table(run: Path, data: Path, out: Path, console: Console) -> dict[str, Any]:
    """Writes a line for each row; prints what was ignored, unknown or far away, and returns it."""
    check_output_suffix(out)
    model = TableModel.load(run)
    file = open_table(data)
    check_columns(model, file)
    if out.exists() and out.samefile(data):
        raise ValueError(f"out is {out}, which is DATA; choose another name.")
    unknown_categories: Counter[str] = Counter()
    n_rows = n_extrapolated = 0
    with open_writer(out) as write:
        for x, u, batch in iter_encoded_batches(model, file):
            predicted = model.predict(x, u)
            is_extrapolated = model.is_extrapolated(u)
            row_numbers = np.arange(n_rows + 1, n_rows + len(u) + 1)
            write(
                {"row": row_numbers, **_output_columns(model, predicted), "beyond": is_extrapolated}
            )
            n_rows, n_extrapolated = n_rows + len(u), n_extrapolated + int(is_extrapolated.sum())
            unknown_categories.update(model.schema.unknown_categories(batch))
        if not n_rows:
            raise ValueError(f"{data} has no rows below the names of its columns.")
    notes = list(_notes(model, file, unknown_categories, n_rows, n_extrapolated))
    print_lines(console, *notes)
    return {
        "rows": n_rows,
        "beyond": n_extrapolated,
        "unknown_categories": dict(unknown_categories),
        "notes": notes,
    }


def _output_columns(model: TableModel, predicted: Array) -> dict[str, Any]:
    if model.classes is None:
        return {"prediction": predicted[:, 0]}
    classes = np.array(model.classes, dtype=object)
    probability = predicted.round(PROBABILITY_DIGITS)
    return {
        "prediction": classes[predicted.argmax(1)],
        **{f"probability_{name}": probability[:, k] for k, name in enumerate(model.classes)},
    }


def _notes(
    model: TableModel,
    file: TableSource,
    unknown_categories: Counter[str],
    n_rows: int,
    n_extrapolated: int,
) -> Iterator[str]:
    model_columns = {
        *model.required_columns,
        model.label,
        *(name for name, _ in model.schema.dropped),
    }
    extra = [name for name in file.column_names if name not in model_columns]
    if extra:
        yield f"ignored, since the model was not fitted on them: {', '.join(extra)}"
    if unknown_categories:
        counts = ", ".join(
            f"{name} ({rows_words(count)})" for name, count in unknown_categories.items()
        )
        yield f"categories that the model does not know, read as missing: {counts}"
    if n_extrapolated:
        yield (
            f"{n_extrapolated:,} of {n_rows:,} rows have an index far beyond those seen in "
            "training (beyond "
            "is true); do not trust predictions there"
        )
    yield f"{rows_words(n_rows)} predicted"
