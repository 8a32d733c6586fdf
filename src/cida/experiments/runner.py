"""Runs recipes over seeds, keeps one folder a run, and writes results.json."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cida.estimators import CIDAClassifier
from cida.estimators.saving import library_versions, to_json_value
from cida.experiments.display_rows import take_snapshot
from cida.experiments.spec import Recipe, TaskData
from cida.io.files import remove_partial_files, write_atomically
from cida.report.result_tables import summarize_results
from cida.runs.records import CHECKPOINT_FOLDER_NAME, ORIGIN_KEY, RunResult
from cida.runs.snapshot import SNAPSHOT_FILE
from cida.training import Callback, Event, resumable
from cida.training.checkpointing import CHECKPOINT_INTERVAL_SECONDS

__all__ = [
    "NO_RESUME",
    "CompletedRun",
    "ResumeOptions",
    "build_run_record",
    "has_result",
    "library_versions",
    "load_completed_run",
    "load_finished_result",
    "run_recipe",
    "write_json",
    "write_results",
]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class ResumeOptions:
    """Whether a run goes on from its checkpoints, and the seconds between two of them."""

    resume: bool = False
    checkpoint_interval_seconds: float = CHECKPOINT_INTERVAL_SECONDS


NO_RESUME = ResumeOptions()


@dataclass(frozen=True)
class CompletedRun:
    """A finished run: its figures, its model and what happened on the way."""

    recipe: Recipe
    result: RunResult
    model: CIDAClassifier
    history: list[Event]


def run_recipe(
    recipe: Recipe,
    task_data: TaskData,
    seed: int,
    folder: Path,
    callbacks: Sequence[Callback] = (),
    origin: Mapping[str, str] | None = None,
    with_expected_score: bool = False,
    resume_options: ResumeOptions = NO_RESUME,
) -> CompletedRun:
    """Fits one recipe on the sample with one seed; target labels are used for scoring alone.

    Only an oracle sees them. ``origin`` tells run.json what the run is of: benchmark, preset,
    protocol, command. With ``expected`` the model is trained once more, to tell without target
    labels how right it is. ``row.json`` is written last: a folder that has it is a whole run.
    """
    _clear_run_folder(folder, resume_options.resume)
    model = recipe.build_model(seed, callbacks)
    with resumable(folder / CHECKPOINT_FOLDER_NAME, resume_options.checkpoint_interval_seconds):
        started = time.perf_counter()
        task_data.train(model, recipe.oracle)
        seconds = time.perf_counter() - started
        expected_scores = task_data.expected_scores(model) if with_expected_score else ()
    result = RunResult(
        method=recipe.method,
        seed=seed,
        **task_data.evaluate(model),
        seconds=round(seconds, 2),
        metric="r2" if recipe.regression else "accuracy",
        role=recipe.role,
    )
    recipe.save_model(model, folder)
    snapshot = take_snapshot(model, task_data, recipe.regression)
    replace(snapshot, expected=tuple(expected_scores)).save(folder / SNAPSHOT_FILE)
    record = {**build_run_record(recipe, task_data, seed), ORIGIN_KEY: dict(origin or {})}
    write_json(folder / "run.json", record)
    lines = "".join(json.dumps(asdict(event)) + "\n" for event in model.history_)
    write_atomically(folder / "events.jsonl", lines.encode())
    write_json(folder / "row.json", asdict(result))
    shutil.rmtree(folder / CHECKPOINT_FOLDER_NAME, ignore_errors=True)
    return CompletedRun(recipe, result, model, model.history_)


def _clear_run_folder(folder: Path, resume: bool) -> None:
    """What an earlier run left goes, but for its checkpoints if they are to be gone on from."""
    (folder / "row.json").unlink(missing_ok=True)
    remove_partial_files(folder)
    if not resume:
        shutil.rmtree(folder / CHECKPOINT_FOLDER_NAME, ignore_errors=True)


def load_finished_result(
    folder: Path, recipe: Recipe, task_data: TaskData, seed: int
) -> RunResult | None:
    """The row of a whole run in this folder, if of this recipe, sample, seed and versions."""
    try:
        record = dict(json.loads((folder / "run.json").read_text()))
        record.pop(ORIGIN_KEY, None)
        if record != build_run_record(recipe, task_data, seed):
            return None
        return RunResult(**json.loads((folder / "row.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None


def has_result(folder: Path, result: RunResult) -> bool:
    """Whether the folder has a whole run that found this row, in whatever time it took."""
    try:
        stored_result = RunResult(**json.loads((folder / "row.json").read_text()))
    except (OSError, ValueError, TypeError):
        return False
    # As text, in which a figure that is no number is equal to itself.
    return json.dumps(asdict(replace(stored_result, seconds=0))) == json.dumps(
        asdict(replace(result, seconds=0))
    )


def load_completed_run(folder: Path, recipe: Recipe) -> CompletedRun:
    """A run from its folder, as `run_recipe` gave it."""
    result = RunResult(**json.loads((folder / "row.json").read_text()))
    lines = (folder / "events.jsonl").read_text().splitlines()
    history = [Event(**json.loads(line)) for line in lines]
    return CompletedRun(recipe, result, recipe.load_model(folder), history)


def build_run_record(recipe: Recipe, task_data: TaskData, seed: int) -> dict[str, Any]:
    """What run.json says: enough to do the run again and to know that it was the same."""
    model = recipe.build_model(seed)
    settings = {k: to_json_value(v) for k, v in model.get_params(deep=False).items()}
    return {
        "schema": 1,
        "world": task_data.name,
        "method": recipe.method,
        "title": recipe.title,
        "oracle": recipe.oracle,
        "is_simulated": task_data.is_simulated,
        "settings": settings | recipe.to_dict(),
        "seed": seed,
        "versions": library_versions(),
        "threads": torch.get_num_threads(),
        "data": task_data.fingerprint(),
    }


def write_results(
    path: Path,
    experiment: str,
    preset: str,
    protocol: str,
    results: list[RunResult],
    is_simulated: bool = False,
) -> None:
    """results.json, as docs/architecture.md describes it."""
    content = {
        "schema": 1,
        "benchmark": experiment,
        "preset": preset,
        "protocol": protocol,
        "is_simulated": is_simulated,
        "rows": [_result_to_dict(row) for row in results],
        "summary": summarize_results(results),
    }
    write_json(path, content)


def _result_to_dict(result: RunResult) -> dict[str, Any]:
    """A row of results.json; what only some experiments have is left out of the others."""
    values = asdict(result)
    return {k: v for k, v in values.items() if v or k not in ("task", "extra_metrics")}


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Readable JSON, whole or not at all."""
    write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())
