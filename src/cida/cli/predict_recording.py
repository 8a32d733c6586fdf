"""``cida predict`` on a recording: the sleep stages of one night."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from cida import CidaWarning
from cida.benchmarks.saved import load_sleep_model
from cida.datasets.sleep import CLASSES, read_signal
from cida.datasets.sleep.jobs import need_packages
from cida.datasets.sleep.signals import SEGMENT_SECONDS
from cida.datasets.sleep.studies import BELTS
from cida.estimators import CIDAClassifier
from cida.files import write_atomically
from cida.words import nearest_file

__all__ = ["predict_recording"]

Array = np.ndarray[Any, Any]
NO_SIGNAL = "no signal"


def predict_recording(
    run: Path, data: Path, index: Sequence[float], out: Path, channel: str | None, console: Console
) -> dict[str, Any]:
    """Writes a line for each 30 s, and prints and returns how much of the night each stage has."""
    need_packages("reading a recording", "edfio")
    model = load_sleep_model(run)
    if not index:
        raise ValueError(
            "index is missing; give that of the recording, such as the age: --index 63."
        )
    if len(index) != model.index_width_:
        raise ValueError(
            f"index has {len(index)} numbers and the model was trained with "
            f"{model.index_width_}; give one for each."
        )
    if not np.isfinite(index).all():
        raise ValueError(f"index is {' '.join(map(str, index))}; it must be numbers.")
    if not data.is_file():
        hint = nearest_file(data, {".edf"})
        raise ValueError(f"DATA is {data}, which is no file; {hint}give an EDF recording.")
    rows, real = read_signal(data, BELTS, channel)
    probability = _probabilities(model, rows, index, console)
    stages = np.where(real, np.array(CLASSES)[probability.argmax(1)], NO_SIGNAL)
    write_atomically(out, _csv(stages, probability))
    shares = {name: float((stages == name).mean()) for name in (*CLASSES, NO_SIGNAL)}
    for name, share in shares.items():
        if share:
            console.print(f"{name:<10} {share:6.1%}", highlight=False)
    return {"segments": len(stages), "shares": shares}


def _probabilities(
    model: CIDAClassifier, rows: Array, index: Sequence[float], console: Console
) -> Array:
    tiled = np.tile(np.array(index), (len(rows), 1))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", CidaWarning)
        found: Array = model.predict_proba(rows[:, None], domain_index=tiled)
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
