"""Runs recipes over seeds, keeps one folder a run, and writes results.json."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch

from cida.benchmarks.recipes import Recipe, Sample
from cida.benchmarks.views import view_of
from cida.diagnostics.view import VIEW
from cida.estimators import CIDAClassifier
from cida.estimators.saving import plain, versions
from cida.files import sweep, write_atomically
from cida.training import Callback, Event, resumable
from cida.training.resuming import SECONDS

__all__ = [
    "CHECKPOINT",
    "FROM_THE_START",
    "ORIGIN",
    "Outcome",
    "Resuming",
    "Row",
    "finished_row",
    "holds_row",
    "read_outcome",
    "run_recipe",
    "run_words",
    "summarise",
    "versions",
    "write_json",
    "write_results",
]

Array = np.ndarray[Any, Any]

ORIGIN = "origin"  # of run.json: what the run is of, which its numbers do not depend on

CHECKPOINT = "checkpoint"  # the folder of checkpoints in that of a run that is being made


@dataclass(frozen=True)
class Resuming:
    """Whether a run goes on from its checkpoints, and the seconds between two of them."""

    resume: bool = False
    seconds: float = SECONDS


FROM_THE_START = Resuming()


@dataclass(frozen=True)
class Row:
    """One run's figures, as results.json holds them; accuracies are fractions.

    ``fresh`` has the same accuracies on a fresh draw of the same domains, ``more`` the figures that
    one field reads beside accuracy; ``task`` is the benchmark's name where it is one of several.
    """

    method: str
    seed: int
    source_accuracy: float
    target_accuracy: float
    all_accuracy: float
    by_index: list[dict[str, Any]]
    seconds: float
    fresh: dict[str, Any] | None = None
    more: dict[str, Any] | None = None
    task: str = ""


@dataclass(frozen=True)
class Outcome:
    """A finished run: its figures, its model and what happened on the way."""

    recipe: Recipe
    row: Row
    model: CIDAClassifier
    history: list[Event]


def run_recipe(
    recipe: Recipe,
    sample: Sample,
    seed: int,
    folder: Path,
    callbacks: Sequence[Callback] = (),
    origin: Mapping[str, str] | None = None,
    expected: bool = False,
    resuming: Resuming = FROM_THE_START,
) -> Outcome:
    """Fits one recipe on the sample with one seed; target labels are used for scoring alone.

    Only an oracle sees them. ``origin`` tells run.json what the run is of: benchmark, preset,
    protocol, command. With ``expected`` the model is trained once more, to tell without target
    labels how right it is. ``row.json`` is written last: a folder that has it is a whole run.
    """
    _begin(folder, resuming.resume)
    model = recipe.model(seed, callbacks)
    with resumable(folder / CHECKPOINT, resuming.seconds):
        started = time.perf_counter()
        sample.train(model, recipe.oracle)
        seconds = time.perf_counter() - started
        cells = sample.expected(model) if expected else ()
    row = Row(method=recipe.method, seed=seed, **sample.scores(model), seconds=round(seconds, 2))
    recipe.keep(model, folder)
    view = view_of(model, sample, recipe.regression)
    replace(view, expected=tuple(cells)).write(folder / VIEW)
    words = {**run_words(recipe, sample, seed), ORIGIN: dict(origin or {})}
    write_json(folder / "run.json", words)
    lines = "".join(json.dumps(asdict(event)) + "\n" for event in model.history_)
    write_atomically(folder / "events.jsonl", lines.encode())
    write_json(folder / "row.json", asdict(row))
    shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
    return Outcome(recipe, row, model, model.history_)


def _begin(folder: Path, resume: bool) -> None:
    """What an earlier run left goes, but for its checkpoints if they are to be gone on from."""
    (folder / "row.json").unlink(missing_ok=True)
    sweep(folder)
    if not resume:
        shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)


def finished_row(folder: Path, recipe: Recipe, sample: Sample, seed: int) -> Row | None:
    """The row of a whole run in this folder, if of this recipe, sample, seed and versions."""
    try:
        words = dict(json.loads((folder / "run.json").read_text()))
        words.pop(ORIGIN, None)
        if words != run_words(recipe, sample, seed):
            return None
        return Row(**json.loads((folder / "row.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None


def holds_row(folder: Path, row: Row) -> bool:
    """Whether the folder has a whole run that found this row, in whatever time it took."""
    try:
        found = Row(**json.loads((folder / "row.json").read_text()))
    except (OSError, ValueError, TypeError):
        return False
    # As text, in which a figure that is no number is equal to itself.
    return json.dumps(asdict(replace(found, seconds=0))) == json.dumps(
        asdict(replace(row, seconds=0))
    )


def read_outcome(folder: Path, recipe: Recipe) -> Outcome:
    """A run from its folder, as `run_recipe` gave it."""
    row = Row(**json.loads((folder / "row.json").read_text()))
    lines = (folder / "events.jsonl").read_text().splitlines()
    history = [Event(**json.loads(line)) for line in lines]
    return Outcome(recipe, row, recipe.load(folder), history)


def run_words(recipe: Recipe, sample: Sample, seed: int) -> dict[str, Any]:
    """What run.json says: enough to do the run again and to know that it was the same."""
    model = recipe.model(seed)
    settings = {k: plain(v) for k, v in model.get_params(deep=False).items()}
    return {
        "schema": 1,
        "world": sample.name,
        "method": recipe.method,
        "title": recipe.title,
        "oracle": recipe.oracle,
        "settings": settings | recipe.words(),
        "seed": seed,
        "versions": versions(),
        "threads": torch.get_num_threads(),
        "data": sample.fingerprint(),
    }


def summarise(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Mean, standard deviation and worst seed of each task's methods, in order of appearance."""
    alike: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        alike.setdefault((row.task, row.method), []).append(row)
    lines = []
    for (task, method), mine in alike.items():
        fresh = [row.fresh for row in mine if row.fresh is not None]
        lines.append(
            {
                **({"task": task} if task else {}),
                "method": method,
                "seeds": len(mine),
                **_spread("target_accuracy", [row.target_accuracy for row in mine]),
                **_spread("all_accuracy", [row.all_accuracy for row in mine]),
                **_spread("fresh_target_accuracy", [f["target_accuracy"] for f in fresh]),
                **_spread("fresh_all_accuracy", [f["all_accuracy"] for f in fresh]),
            }
        )
    return lines


def _spread(name: str, scores: Sequence[float]) -> dict[str, float]:
    if not scores:
        return {}
    return {
        f"{name}_mean": mean(scores),
        f"{name}_std": stdev(scores) if len(scores) > 1 else 0.0,
        f"{name}_worst": min(scores),
    }


def write_results(
    path: Path,
    benchmark: str,
    preset: str,
    protocol: str,
    rows: list[Row],
    simulated: bool = False,
    metric: str = "accuracy",
) -> None:
    """results.json, as docs/architecture.md describes it."""
    words = {
        "schema": 1,
        "benchmark": benchmark,
        "preset": preset,
        "protocol": protocol,
        "simulated": simulated,
        "metric": metric,
        "rows": [_row_words(row) for row in rows],
        "summary": summarise(rows),
    }
    write_json(path, words)


def _row_words(row: Row) -> dict[str, Any]:
    """A row of results.json; what only some experiments have is left out of the others."""
    words = asdict(row)
    return {k: v for k, v in words.items() if v or k not in ("task", "more")}


def write_json(path: Path, words: Mapping[str, Any]) -> None:
    """Readable JSON, whole or not at all."""
    write_atomically(path, (json.dumps(words, indent=2) + "\n").encode())
