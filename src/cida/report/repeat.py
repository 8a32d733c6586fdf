"""What was run, and how to repeat it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from cida.benchmarks.tables import Cells
from cida.report.chapters import Chapter, Method
from cida.report.parts import Part, folded, table
from cida.report.runs import Run

__all__ = ["facts", "repeat"]


def facts(chapter: Chapter) -> list[tuple[str, str]]:
    """The facts that all runs of a chapter share, or the few values that there are."""
    runs = chapter.runs
    found = [
        ("experiment", "" if chapter.own_tables else chapter.experiment),
        ("preset", chapter.preset),
        ("protocol", _protocol(chapter)),
        ("runs", f"{len(runs)}, in {_place(chapter)}"),
        ("seeds", _few(sorted({str(run.seed) for run in runs}, key=int))),
        ("data fingerprint", _few([_fingerprint(run) for run in runs])),
        ("versions", _few([_versions(run) for run in runs])),
        ("threads", _few([str(run.words.get("threads", "")) for run in runs])),
    ]
    return [(name, value) for name, value in found if value]


def repeat(chapter: Chapter) -> Part:
    """The command, the facts, and the recipe and command of each run."""
    commands = _commands(chapter)
    html = "".join(f"<pre><code>{escape(command)}</code></pre>" for command in commands)
    lines = "".join(f"<dt>{escape(n)}</dt><dd>{escape(v)}</dd>" for n, v in facts(chapter))
    html += f"<dl class='facts'>{lines}</dl>"
    differing = _differences(chapter)
    if differing:
        html += folded("In what the recipes differ", table(differing, "Settings that differ"))
    html += folded("Every run", table(_runs(chapter), "Every run and the command that repeats it"))
    recipes = {m.title: m.runs[0].settings for t in chapter.tasks for m in t.methods}
    text = json.dumps(recipes, indent=2, ensure_ascii=False)
    html += folded("The recipes in full", f"<pre>{escape(text)}</pre>")
    return Part("What was run, and how to repeat it", html, tables={"runs": _runs(chapter)})


def _protocol(chapter: Chapter) -> str:
    if chapter.story is not None and chapter.story.protocol:
        return chapter.story.protocol
    benchmark = chapter.tasks[0].benchmark
    words = benchmark.protocols.get(chapter.protocol, "") if benchmark is not None else ""
    return f"{chapter.protocol}: {words}" if words else chapter.protocol


def _commands(chapter: Chapter) -> list[str]:
    """The command that made them all, or that of each run where there are few."""
    if chapter.story is not None and chapter.story.command:
        return [chapter.story.command]
    found = list(dict.fromkeys(run.command for run in chapter.runs if run.command))
    return found if len(found) <= 3 else []


def _place(chapter: Chapter) -> str:
    """Where the runs are, as they were named."""
    folders = [run.folder for run in chapter.runs]
    if len(folders) == 1:
        return folders[0].resolve().name
    shared = list(folders[0].resolve().parents)
    for folder in folders[1:]:
        shared = [parent for parent in shared if parent in folder.resolve().parents]
    return shared[0].name or str(shared[0])


def _few(values: Sequence[str], most: int = 6) -> str:
    known = list(dict.fromkeys(value for value in values if value))
    rest = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + rest


def _fingerprint(run: Run) -> str:
    """One for each seed, or of a user's file all that was kept."""
    data = run.words.get("data", "")
    if isinstance(data, dict):
        return ", ".join(f"{name} {value}" for name, value in data.items())
    return str(data)


def _versions(run: Run) -> str:
    found = run.words.get("versions")
    return ", ".join(f"{k} {v}" for k, v in found.items()) if isinstance(found, dict) else ""


def _differences(chapter: Chapter) -> list[Cells]:
    """The settings that are not the same for all methods, a line a method."""
    methods = [method for task in chapter.tasks for method in task.methods]
    recipes: list[tuple[Method, dict[str, Any]]] = [(m, m.runs[0].settings) for m in methods]
    names = list(dict.fromkeys(name for _, recipe in recipes for name in recipe))
    absent = object()
    several = [n for n in names if len({_text(r.get(n, absent)) for _, r in recipes}) > 1]
    if not several:
        return []
    return [
        {
            "method": method.title,
            **{n: _text(recipe[n]) if n in recipe else "" for n in several},
        }
        for method, recipe in recipes
    ]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def _runs(chapter: Chapter) -> list[Cells]:
    return [
        {
            "run": run.folder.resolve().name,
            "method": run.title if run.own_table else method.title,
            "seed": str(run.seed),
            "data": _fingerprint(run),
            "command": run.command or "not kept",
        }
        for task in chapter.tasks
        for method in task.methods
        for run in method.runs
    ]
