"""``cida predict`` on a table: a line for each row, batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from cida.cli.console import print_lines
from cida.cli.fit_lines import rows_words
from cida.estimators.fitted_state import FittedState
from cida.estimators.labels import ClassLabels
from cida.estimators.model_file import load
from cida.estimators.prediction_inputs import iter_table_rows
from cida.tables import open_table, open_writer
from cida.tables.writer import check_output_suffix

__all__ = ["predict_table"]

Array = np.ndarray[Any, Any]
PROBABILITY_DIGITS = 6


def predict_table(run: Path, data: Path, out: Path, console: Console) -> dict[str, Any]:
    """Writes a line for each row; prints what was ignored, unknown or far away, and returns it."""
    check_output_suffix(out)
    model = load(run)
    state: FittedState = model.state_
    table = state.table
    if table is None or not table.index:
        raise ValueError(f"RUN is {run}, whose model was not fitted on a table; use it in Python.")
    source = open_table(data)
    if out.exists() and out.samefile(data):
        raise ValueError(f"out is {out}, which is DATA; choose another name.")
    unknown_categories: Counter[str] = Counter()
    n_rows = n_extrapolated = 0
    with open_writer(out) as write:
        for x, index, batch in iter_table_rows(state, source):
            assert index is not None  # the table has its own
            u = torch.from_numpy(index)
            columns = _output_columns(state, state.outputs(x, u, model.n_draws))
            is_extrapolated = state.is_extrapolated(u)
            row_numbers = np.arange(n_rows + 1, n_rows + len(u) + 1)
            write({"row": row_numbers, **columns, "beyond": is_extrapolated})
            n_rows += len(u)
            n_extrapolated += int(is_extrapolated.sum())
            unknown_categories.update(table.schema.unknown_categories(batch))
    dropped = (name for name, _ in table.schema.dropped)
    model_columns = {*table.required_columns, table.label, *dropped}
    extra = [name for name in source.column_names if name not in model_columns]
    notes = list(_notes(extra, unknown_categories, n_rows, n_extrapolated))
    print_lines(console, *notes)
    counts = {"rows": n_rows, "beyond": n_extrapolated}
    return {**counts, "unknown_categories": dict(unknown_categories), "notes": notes}


def _output_columns(state: FittedState, outputs: Array) -> dict[str, Any]:
    codec = state.labels
    if not isinstance(codec, ClassLabels):
        return {"prediction": codec.decode(outputs)}
    probability = codec.probabilities(outputs).round(PROBABILITY_DIGITS)
    names = [str(name) for name in codec.classes]
    return {
        "prediction": np.array(names, dtype=object)[outputs.argmax(axis=1)],
        **{f"probability_{name}": probability[:, k] for k, name in enumerate(names)},
    }


def _notes(
    extra_columns: list[str], unknown_categories: Counter[str], n_rows: int, n_extrapolated: int
) -> Iterator[str]:
    if extra_columns:
        yield f"ignored, since the model was not fitted on them: {', '.join(extra_columns)}"
    if unknown_categories:
        counts = (f"{name} ({rows_words(count)})" for name, count in unknown_categories.items())
        yield f"categories that the model does not know, read as missing: {', '.join(counts)}"
    if n_extrapolated:
        yield (
            f"{n_extrapolated:,} of {n_rows:,} rows have an index far beyond those seen in "
            "training (beyond is true); do not trust predictions there"
        )
    yield f"{rows_words(n_rows)} predicted"
