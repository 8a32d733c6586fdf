"""What was run, and how to repeat it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cida.report.blocks import Html, Section
from cida.report.build import Chapter
from cida.runs.result_table import ResultTable

MAX_LISTED_VALUES = 6
MAX_LISTED_COMMANDS = 3


def build_provenance_section(chapter: Chapter) -> Section:
    """The command, the facts, and the recipe and command of each run."""
    recipes = {method.title: method.runs[0].settings for method in chapter.methods}
    runs = _run_rows(chapter)
    block = Html(
        "provenance",
        commands=_commands(chapter),
        facts=_facts(chapter),
        differences=_differences(chapter),
        runs=runs,
        recipes=json.dumps(recipes, indent=2, ensure_ascii=False),
    )
    return Section("What was run, and how to repeat it", [block], tables={"runs": runs})


def _facts(chapter: Chapter) -> dict[str, str]:
    """The facts that all runs of a chapter share, or the few values that there are."""
    runs, manifest = chapter.runs, chapter.manifest
    records = [run.record for run in runs]
    versions = (", ".join(f"{n} {v}" for n, v in record.versions.items()) for record in records)
    return {
        "experiment": chapter.experiment,
        "preset": chapter.preset,
        "protocol": (manifest.protocol if manifest is not None else "") or chapter.protocol,
        "runs": f"{len(runs)}, in {_runs_location(chapter)}",
        "seeds": _join_unique(map(str, sorted(record.seed for record in records))),
        "data fingerprint": _join_unique(record.data for record in records),
        "versions": _join_unique(versions),
        "threads": _join_unique(str(record.threads) for record in records),
    }


def _commands(chapter: Chapter) -> list[str]:
    """The command that made them all, or that of each run where there are few."""
    if chapter.manifest is not None and chapter.manifest.command:
        return [chapter.manifest.command]
    commands = list(dict.fromkeys(run.command for run in chapter.runs if run.command))
    return commands if len(commands) <= MAX_LISTED_COMMANDS else []


def _runs_location(chapter: Chapter) -> str:
    """Where the runs are, as they were named."""
    folders = [run.folder.resolve() for run in chapter.runs]
    if len(folders) == 1:
        return folders[0].name
    common = Path(os.path.commonpath([folder.parent for folder in folders]))
    return common.name or str(common)


def _join_unique(values: Iterable[str]) -> str:
    unique = list(dict.fromkeys(filter(None, values)))
    rest = len(unique) - MAX_LISTED_VALUES
    return ", ".join(unique[:MAX_LISTED_VALUES]) + (f" and {rest} more" if rest > 0 else "")


def _differences(chapter: Chapter) -> ResultTable:
    """The settings that are not the same for all methods, a line a method."""
    recipes = [
        {name: _text(value) for name, value in method.runs[0].settings.items()}
        for method in chapter.methods
    ]
    names = dict.fromkeys(name for recipe in recipes for name in recipe)
    differing = [name for name in names if len({recipe.get(name) for recipe in recipes}) > 1]
    return ResultTable.of(
        {"method": method.title, **{name: recipe.get(name, "") for name in differing}}
        for method, recipe in zip(chapter.methods, recipes, strict=True)
        if differing
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def _run_rows(chapter: Chapter) -> ResultTable:
    return ResultTable.of(
        {
            "run": run.folder.resolve().name,
            "method": run.title if run.is_user_table else method.title,
            "seed": run.seed,
            "data": run.record.data,
            "command": run.command,
        }
        for method in chapter.methods
        for run in method.runs
    )
