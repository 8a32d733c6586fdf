"""``cida predict``: a trained model on new data."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from cida.cli.console import print_json, print_lines

__all__ = ["Predict"]

READER_GROUP = "cida.readers"  # entry points by the suffix of their files, such as edf


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
            predict = reader.load()
            summary: dict[str, Any] = predict(
                self.run_folder, self.data, self.index, self.out, self.channel, console
            )
            return summary
        # Here, since it needs pyarrow, which recordings do without.
        from cida.cli.predict_table import predict_table

        for name, value in (("index", self.index), ("channel", self.channel)):
            if value:
                raise ValueError(f"{name} is for recordings; a table has its own: leave it out.")
        return predict_table(self.run_folder, self.data, self.out, console)
