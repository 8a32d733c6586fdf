"""What was run, and how to repeat it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from cida.report.blocks import Section, render_details
from cida.report.build import Chapter, MethodView
from cida.report.runs import Run
from cida.report.tables import render_html
from cida.runs.result_table import ResultTable

__all__ = ["build_provenance_section", "list_provenance"]


def list_provenance(chapter: Chapter) -> list[tuple[str, str]]:
    """The facts that all runs of a chapter share, or the few values that there are."""
    runs = chapter.runs
    items = [
        ("experiment", "" if chapter.has_user_tables else chapter.experiment),
        ("preset", chapter.preset),
        ("protocol", _protocol(chapter)),
        ("runs", f"{len(runs)}, in {_runs_location(chapter)}"),
        ("seeds", _join_unique(sorted({str(run.seed) for run in runs}, key=int))),
        ("data fingerprint", _join_unique([run.record.data for run in runs])),
        ("versions", _join_unique([_versions(run) for run in runs])),
        ("threads", _join_unique([str(run.record.threads) for run in runs])),
    ]
    return [(name, value) for name, value in items if value]


def build_provenance_section(chapter: Chapter) -> Section:
    """The command, the facts, and the recipe and command of each run."""
    commands = _commands(chapter)
    html = "".join(f"<pre><code>{escape(command)}</code></pre>" for command in commands)
    items_html = "".join(
        f"<dt>{escape(n)}</dt><dd>{escape(v)}</dd>" for n, v in list_provenance(chapter)
    )
    html += f"<dl class='facts'>{items_html}</dl>"
    differences = _differences(chapter)
    if differences is not None:
        html += render_details(
            "In what the recipes differ", render_html(differences, "Settings that differ")
        )
    html += render_details(
        "Every run", render_html(_run_rows(chapter), "Every run and the command that repeats it")
    )
    recipes = {m.title: m.runs[0].settings for t in chapter.tasks for m in t.methods}
    text = json.dumps(recipes, indent=2, ensure_ascii=False)
    html += render_details("The recipes in full", f"<pre>{escape(text)}</pre>")
    return Section("What was run, and how to repeat it", html, tables={"runs": _run_rows(chapter)})


def _protocol(chapter: Chapter) -> str:
    if chapter.manifest is not None and chapter.manifest.protocol:
        return chapter.manifest.protocol
    return chapter.protocol


def _commands(chapter: Chapter) -> list[str]:
    """The command that made them all, or that of each run where there are few."""
    if chapter.manifest is not None and chapter.manifest.command:
        return [chapter.manifest.command]
    commands = list(dict.fromkeys(run.command for run in chapter.runs if run.command))
    return commands if len(commands) <= 3 else []


def _runs_location(chapter: Chapter) -> str:
    """Where the runs are, as they were named."""
    folders = [run.folder for run in chapter.runs]
    if len(folders) == 1:
        return folders[0].resolve().name
    common_parents = list(folders[0].resolve().parents)
    for folder in folders[1:]:
        common_parents = [parent for parent in common_parents if parent in folder.resolve().parents]
    return common_parents[0].name or str(common_parents[0])


def _join_unique(values: Sequence[str], max_values: int = 6) -> str:
    unique_values = list(dict.fromkeys(value for value in values if value))
    rest = f" and {len(unique_values) - max_values} more" if len(unique_values) > max_values else ""
    return ", ".join(unique_values[:max_values]) + rest


def _versions(run: Run) -> str:
    return ", ".join(f"{name} {version}" for name, version in run.record.versions.items())


def _differences(chapter: Chapter) -> ResultTable | None:
    """The settings that are not the same for all methods, a line a method."""
    methods = [method for task in chapter.tasks for method in task.methods]
    recipes: list[tuple[MethodView, dict[str, Any]]] = [(m, m.runs[0].settings) for m in methods]
    names = list(dict.fromkeys(name for _, recipe in recipes for name in recipe))
    absent = object()
    differing_names = [n for n in names if len({_text(r.get(n, absent)) for _, r in recipes}) > 1]
    if not differing_names:
        return None
    return ResultTable.of(
        {
            "method": method.title,
            **{n: _text(recipe[n]) if n in recipe else "" for n in differing_names},
        }
        for method, recipe in recipes
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
        for task in chapter.tasks
        for method in task.methods
        for run in method.runs
    )
