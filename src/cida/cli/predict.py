"""``cida predict``: a trained model on new data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from cida.cli.console import print_json, print_lines

READER_GROUP = "cida.readers"  # entry points by the suffix of their files, such as edf
PROBABILITY_DIGITS = 6


@dataclass(frozen=True)
class Predict:
    """Predicts the rows of a new table, or the sleep stages of a new recording.

    Example:  cida predict runs/patients new.csv --out predicted.csv

    Example:  cida predict runs/sleep-intra-best/shhs-extrapolation/histogram-seed0 night.edf
    --index 63 --out stages.csv
    """

    run_folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The folder that cida fit wrote, or that of one run of cida reproduce sleep-..."""

    data: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DATA")]
    """A table with the columns that the model was fitted on (.csv, .parquet, .npz, or a folder of
    .npy files), or an EDF recording with a breathing belt."""

    out: Path
    """The file to write, .csv or .parquet: the prediction and each class's probability for every
    row, or (.csv) the stage of each 30 s."""

    index: tuple[float, ...] = ()
    """The index of a recording, such as the age: as many numbers as the model was trained on. A
    table has its own."""

    channel: str | None = None
    """The channel to read instead of the chest belt, or else the belly belt."""

    json: bool = False
    """Print one JSON object for programs; whatever else is said goes to stderr."""

    def run(self, console: Console) -> int:
        """Prints what was predicted and, last, the file's path."""
        prediction_summary = self._predict(console)
        print_lines(console, str(self.out.resolve()))
        if self.json:
            print_json("predict", files=[self.out.resolve()], **prediction_summary)
        return 0

    def _predict(self, console: Console) -> dict[str, Any]:
        readers = entry_points(group=READER_GROUP, name=self.data.suffix.lower().removeprefix("."))
        if readers:
            (reader,) = readers
            given = (self.run_folder, self.data, self.index, self.out, self.channel, console)
            summary: dict[str, Any] = reader.load()(*given)
            return summary
        for name, value in (("index", self.index), ("channel", self.channel)):
            if value:
                raise ValueError(f"{name} is for recordings; a table has its own: leave it out.")
        return predict_table(self.run_folder, self.data, self.out, console)


def predict_table(run: Path, data: Path, out: Path, console: Console) -> dict[str, Any]:
    """Writes a line for each row; prints what was ignored, unknown or far away, and returns it."""
    import numpy as np
    import torch

    from cida.estimators.labels import ClassLabels
    from cida.estimators.model_file import load
    from cida.estimators.prediction_inputs import iter_table_rows
    from cida.runs.fit_lines import rows_words
    from cida.tables import open_table, open_writer  # here: recordings do without pyarrow
    from cida.tables.writer import check_output_suffix

    check_output_suffix(out)
    model = load(run)
    state, table, codec = model.state_, model.state_.table, model.state_.labels
    if table is None or not table.index:
        raise ValueError(f"RUN is {run}, whose model was not fitted on a table; use it in Python.")
    source = open_table(data)
    if out.exists() and out.samefile(data):
        raise ValueError(f"out is {out}, which is DATA; choose another name.")
    classes = [str(name) for name in codec.classes] if isinstance(codec, ClassLabels) else []
    unknown: Counter[str] = Counter()
    n_rows = n_extrapolated = 0
    with open_writer(out) as write:
        for x, index, batch in iter_table_rows(state, source):
            u = torch.from_numpy(index)
            outputs, is_extrapolated = state.outputs(x, u, model.n_draws), state.is_extrapolated(u)
            columns: dict[str, Any] = {"row": np.arange(n_rows + 1, n_rows + len(u) + 1)}
            if isinstance(codec, ClassLabels):
                share = codec.probabilities(outputs).round(PROBABILITY_DIGITS)
                columns["prediction"] = np.array(classes, dtype=object)[outputs.argmax(axis=1)]
                columns |= {f"probability_{name}": share[:, k] for k, name in enumerate(classes)}
            else:
                columns["prediction"] = codec.decode(outputs)
            write({**columns, "beyond": is_extrapolated})
            n_rows += len(u)
            n_extrapolated += int(is_extrapolated.sum())
            unknown.update(table.schema.unknown_categories(batch))
    dropped = (column.name for column in table.schema.dropped)
    model_columns = {*table.required_columns, table.label, *dropped}
    extra = [name for name in source.column_names if name not in model_columns]
    notes = []
    if extra:
        notes.append(f"ignored, since the model was not fitted on them: {', '.join(extra)}")
    if unknown:
        counts = ", ".join(f"{name} ({rows_words(count)})" for name, count in unknown.items())
        notes.append(f"categories that the model does not know, read as missing: {counts}")
    if n_extrapolated:
        notes.append(
            f"{n_extrapolated:,} of {n_rows:,} rows have an index far beyond those seen in "
            "training (beyond is true); do not trust predictions there"
        )
    notes.append(f"{rows_words(n_rows)} predicted")
    print_lines(console, *notes)
    figures = {"rows": n_rows, "beyond": n_extrapolated, "unknown_categories": dict(unknown)}
    return {**figures, "notes": notes}
