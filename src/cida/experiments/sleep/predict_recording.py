"""``cida predict`` on a recording: the sleep stages of one night."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from cida import CidaWarning
from cida.cli.console import print_lines
from cida.errors import did_you_mean_file
from cida.estimators import CIDAClassifier
from cida.estimators.model_file import load
from cida.experiments.sleep import EXPERIMENTS
from cida.experiments.sleep.recording_errors import require_packages
from cida.experiments.sleep.recordings import SEGMENT_SECONDS, read_signal
from cida.experiments.sleep.sleep_store import format_csv
from cida.experiments.sleep.stages import STAGE_CLASSES
from cida.io.files import write_atomically
from cida.runs.run_folder import RunFolder

NO_SIGNAL = "no signal"
SLEEP_TASK_NAMES = {task.name for experiment in EXPERIMENTS for task in experiment.tasks}


def predict_recording(
    run: Path, data: Path, index: Sequence[float], out: Path, channel: str | None, console: Console
) -> dict[str, Any]:
    """Writes a line for each 30 s, and prints and returns how much of the night each stage has."""
    require_packages("reading a recording", "edfio")
    model = load_sleep_model(run)
    if not index:
        problem = "index is missing; give that of the recording"
        raise ValueError(f"{problem}, such as the age: --index 63.")
    if len(index) != model.index_width_:
        problem = f"{len(index)} numbers and the model was trained with {model.index_width_}"
        raise ValueError(f"index has {problem}; give one for each.")
    if not np.isfinite(index).all():
        raise ValueError(f"index is {' '.join(map(str, index))}; it must be numbers.")
    if not data.is_file():
        hint = did_you_mean_file(data, {".edf"})
        raise ValueError(f"DATA is {data}, which is no file; {hint}give an EDF recording.")
    rows, has_signal = read_signal(data, channel)
    u = np.tile(np.array(index), (len(rows), 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CidaWarning)
        probabilities = model.predict_proba(rows[:, None], domain_index=u)
    print_lines(console, *dict.fromkeys(str(one.message) for one in caught), style="yellow")
    names = (*STAGE_CLASSES, NO_SIGNAL)
    classes = np.where(has_signal, probabilities.argmax(1), len(STAGE_CLASSES))
    lines: list[list[Any]] = [["start_seconds", "stage", *STAGE_CLASSES]]
    for number, (stage, row) in enumerate(zip(classes, probabilities, strict=True)):
        cells = [f"{probability:.4f}" if has_signal[number] else "" for probability in row]
        lines.append([number * SEGMENT_SECONDS, names[stage], *cells])
    write_atomically(out, format_csv(lines))
    counts = np.bincount(classes, minlength=len(names))
    shares = dict(zip(names, (counts / len(classes)).tolist(), strict=True))
    for name, share in shares.items():
        if share:
            console.print(f"{name:<10} {share:6.1%}", highlight=False)
    return {"segments": len(classes), "shares": shares}


def load_sleep_model(folder: Path) -> CIDAClassifier:
    """The classifier of a run of a sleep experiment."""
    try:
        task_name = RunFolder.open(folder).record.task
    except FileNotFoundError:
        raise ValueError(
            f"RUN is {folder}, which has no run.json; give the folder of one run, such as "
            "runs/sleep-intra-best/shhs-extrapolation/histogram-seed0."
        ) from None
    if task_name not in SLEEP_TASK_NAMES:
        raise ValueError(
            f"RUN is {folder}, a run of {task_name}; recordings are predicted by runs of "
            "sleep-intra, sleep-cross or sleep-multi."
        )
    model: CIDAClassifier = load(folder)
    return model
