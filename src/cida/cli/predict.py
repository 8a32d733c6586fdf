"""``cida predict``: a trained model on new data."""

from __future__ import annotations

import csv
import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console

from cida import CidaWarning
from cida.benchmarks.saved import load_sleep_model
from cida.datasets.sleep import CLASSES, read_signal
from cida.datasets.sleep.jobs import need_packages
from cida.datasets.sleep.signals import SEGMENT_SECONDS
from cida.datasets.sleep.studies import BELTS
from cida.estimators import CIDAClassifier
from cida.files import write_atomically

__all__ = ["Predict"]

Array = np.ndarray[Any, Any]
NO_SIGNAL = "no signal"


@dataclass(frozen=True)
class Predict:
    """Predicts the sleep stages of a new recording with a model that ``cida reproduce`` trained.

    Example:  cida predict runs/sleep-intra-best/shhs-extrapolation/histogram-seed0 night.edf
    --index 63 --out stages.csv
    """

    run_folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The folder of one run."""

    data: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DATA")]
    """The recording: an EDF file with a breathing belt."""

    index: tuple[float, ...]
    """The index of the recording, such as the age: as many numbers as the model was trained on."""

    out: Path
    """The CSV file to write: a line for each 30 s, with the stage and each stage's probability."""

    channel: str | None = None
    """The channel to read instead of the chest belt, or else the belly belt."""

    def run(self, console: Console) -> int:
        """Prints how much of the night each stage has and, last, the file's path."""
        need_packages("reading a recording", "edfio")
        model = load_sleep_model(self.run_folder)
        if len(self.index) != model.index_width_:
            raise ValueError(
                f"index has {len(self.index)} numbers and the model was trained with "
                f"{model.index_width_}; give one for each."
            )
        if not np.isfinite(self.index).all():
            raise ValueError(f"index is {' '.join(map(str, self.index))}; it must be numbers.")
        if not self.data.is_file():
            raise ValueError(f"DATA is {self.data}, which is no file; give an EDF recording.")
        rows, real = read_signal(self.data, BELTS, self.channel)
        probability = self._probabilities(model, rows, console)
        stages = np.where(real, np.array(CLASSES)[probability.argmax(1)], NO_SIGNAL)
        write_atomically(self.out, _csv(stages, probability))
        for name in (*CLASSES, NO_SIGNAL):
            share = float((stages == name).mean())
            if share:
                console.print(f"{name:<10} {share:6.1%}", highlight=False)
        console.print(str(self.out.resolve()), soft_wrap=True, highlight=False)
        return 0

    def _probabilities(self, model: CIDAClassifier, rows: Array, console: Console) -> Array:
        index = np.tile(np.array(self.index), (len(rows), 1))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", CidaWarning)
            found: Array = model.predict_proba(rows[:, None], domain_index=index)
        for sentence in dict.fromkeys(str(one.message) for one in told):
            console.print(sentence, soft_wrap=True, style="yellow", highlight=False)
        return found


def _csv(stages: Array, probability: Array) -> bytes:
    made = io.StringIO()
    lines = csv.writer(made, lineterminator="\n")
    lines.writerow(["start_seconds", "stage", *CLASSES])
    for number, (stage, chances) in enumerate(zip(stages, probability, strict=True)):
        empty = stage == NO_SIGNAL
        cells = ["" if empty else f"{chance:.4f}" for chance in chances]
        lines.writerow([number * SEGMENT_SECONDS, stage, *cells])
    return made.getvalue().encode()
