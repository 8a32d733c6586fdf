"""Runs recipes over seeds, keeps one folder a run, and writes results.json."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from cida.estimators import CIDAClassifier
from cida.estimators.model_file import library_versions, to_json_value
from cida.experiments.display_rows import take_snapshot
from cida.experiments.spec import Recipe, TaskData
from cida.io.files import write_atomically
from cida.report.result_tables import summarize_results
from cida.runs.records import Origin, RunRecord, RunResult
from cida.runs.run_folder import RunFolder
from cida.training import Callback, Event
from cida.training.checkpointing import CHECKPOINT_INTERVAL_SECONDS


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
    origin: Origin | None = None,
    with_expected_score: bool = False,
    resume_options: ResumeOptions = NO_RESUME,
) -> CompletedRun:
    """Fits one recipe on the sample with one seed; target labels are used for scoring alone.

    Only an oracle sees them. ``origin`` is kept in the record of the run. With
    ``with_expected_score`` the model is trained once more, to estimate its score without target
    labels. The result is written last: a folder that has one is a whole run.
    """
    run_folder = RunFolder(folder)
    model = recipe.build_model(seed, callbacks)
    with run_folder.rewrite(resume_options.resume, resume_options.checkpoint_interval_seconds):
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
        snapshot = take_snapshot(model, task_data.display_rows(), recipe.regression)
        run_folder.write_snapshot(replace(snapshot, expected=tuple(expected_scores)))
        record = build_run_record(recipe, task_data, seed)
        run_folder.write_record(replace(record, origin=origin or Origin()))
        run_folder.write_events([model.history_])
        run_folder.write_result(result)
    return CompletedRun(recipe, result, model, model.history_)


def load_finished_result(
    folder: Path, recipe: Recipe, task_data: TaskData, seed: int
) -> RunResult | None:
    """The result of a whole run in this folder, if of this recipe, data, seed and versions."""
    try:
        run_folder, record = RunFolder(folder), build_run_record(recipe, task_data, seed)
        return run_folder.result if run_folder.record.identity == record.identity else None
    except (OSError, ValueError):
        return None


def has_result(folder: Path, result: RunResult) -> bool:
    """Whether the folder has a whole run that found this row, in whatever time it took."""
    try:
        rows = (RunFolder(folder).result, result)
    except (OSError, ValueError):
        return False
    # As text, in which a figure that is no number is equal to itself.
    texts = [row and json.dumps(asdict(replace(row, seconds=0))) for row in rows]
    return texts[0] == texts[1]


def load_completed_run(folder: Path, recipe: Recipe) -> CompletedRun:
    """A run from its folder, as `run_recipe` gave it."""
    run_folder = RunFolder(folder)
    result = run_folder.result
    assert result is not None
    return CompletedRun(recipe, result, recipe.load_model(folder), run_folder.events().get(0, []))


def build_run_record(recipe: Recipe, task_data: TaskData, seed: int) -> RunRecord:
    """What is run: enough to do it again and to know that it was the same."""
    model = recipe.build_model(seed)
    settings = {k: to_json_value(v) for k, v in model.get_params(deep=False).items()}
    return RunRecord(
        task=task_data.name,
        method=recipe.method,
        seed=seed,
        settings=settings | recipe.to_dict(),
        data=task_data.fingerprint(),
        versions=library_versions(),
        threads=torch.get_num_threads(),
        title=recipe.title,
        is_oracle=recipe.oracle,
        is_simulated=task_data.is_simulated,
    )


def write_results(path: Path, results: list[RunResult], **facts: Any) -> None:
    """results.json: what was run (benchmark, preset, protocol, ...), and what came of it."""
    rows = [asdict(result) for result in results]
    # What only some experiments have is left out of the others.
    rows = [{k: v for k, v in r.items() if v or k not in ("task", "extra_metrics")} for r in rows]
    write_json(path, {"schema": 1, **facts, "rows": rows, "summary": summarize_results(results)})


def format_command(command: str, **flags: Any) -> str:
    """The command with these flags; None and False are left out."""
    parts = [command]
    for name, value in flags.items():
        if value is not None and value is not False:
            values = value if isinstance(value, tuple) else () if value is True else (value,)
            parts += [f"--{name.replace('_', '-')}", *map(str, values)]
    return " ".join(parts)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Readable JSON, whole or not at all."""
    write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())
