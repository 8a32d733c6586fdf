"""What can be said without a target label: the certificate, expected accuracy, the doctor."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from cida.benchmarks.tables import Cells
from cida.diagnostics import Expected, certify
from cida.report.along import source_bands
from cida.report.chapters import Chapter, Method, Task
from cida.report.parts import (
    Part,
    charts_of,
    figure,
    folded,
    legend,
    listed,
    panel_size,
    soft,
    table,
)
from cida.report.runs import Run
from cida.report.svg import Chart, Series, line_chart, together
from cida.report.ticks import axis_name, index_words

__all__ = [
    "FOUND",
    "NONE",
    "Asked",
    "Certificates",
    "certificate",
    "certify_runs",
    "doctor",
    "expected",
    "mean_expected",
    "to_certify",
]

Array = np.ndarray[Any, Any]
Asked = Literal["every", "few", "none"]
Certificates = Mapping[Path, Sequence[str]]  # the words on the run in each folder

# How verdicts begin, and how those in older runs do.
FOUND = "The encoding still tells", "z depends on"
NONE = "The encoding shows no trace", "No dependence"


# --- the certificate -----------------------------------------------------------------------------


def to_certify(chapters: Sequence[Chapter], asked: Asked) -> list[Run]:
    """Runs whose encodings are looked at: the first seed of each method, a few, or none.

    The few are the best method and the default, of a report of one task.
    """
    tasks = [task for chapter in chapters for task in chapter.tasks if not chapter.own_tables]
    if asked == "none" or (asked == "few" and len(tasks) > 1):
        return []
    found = []
    for task in tasks:
        for method in task.methods:
            run = method.runs[0]
            chosen = asked == "every" or method is task.best or method.key == "default"
            if chosen and run.view is not None and run.view.z is not None:
                found.append(run)
    return found


def certify_runs(
    runs: Sequence[Run], watch: Callable[[Run], None] = lambda run: None
) -> Certificates:
    """The certificate's words on the rows that each run shows; ``watch`` hears of each."""
    found = {}
    for run in runs:
        found[run.folder] = _certified(run)
        watch(run)
    return found


def _certified(run: Run) -> list[str]:
    view = run.view
    assert view is not None
    assert view.z is not None
    said = view.predicted[:, 0] if view.classes is None else view.predicted.argmax(1)
    u = torch.from_numpy(view.u)
    try:
        return certify(view.space, view.z, u, said, index_names=view.index).words()
    except ValueError as error:  # too few rows, or nothing to tell: the sentence says which
        return [f"No certificate of alignment: {error}"]


def certificate(task: Task, known: Certificates, level: int) -> Part | None:
    """Does the encoding still tell u? The verdict of each method, and all that is behind it."""
    told = {m.key: _words(m.runs[0], known) for m in task.methods}
    if not any(told.values()):
        return None
    main = task.main if told[task.main.key] else next(m for m in task.methods if told[m.key])
    parts = {
        m.key: f"<h{level}>{escape(m.title)}</h{level}><p>{escape(told[m.key][0])}</p>"
        + folded("The whole certificate", listed(told[m.key][1:]))
        for m in task.methods
        if told[m.key]
    }
    others = "".join(part for key, part in parts.items() if key != main.key)
    without = [m.title for m in task.methods if not told[m.key]]
    note = (
        f"Not looked at here: {', '.join(without)}; cida report looks at all that have an encoding."
        if without
        else ""
    )
    how = (
        ""
        if task.methods[0].runs[0].own_table
        else (
            "By the rows of the first seed that are kept with the run, which may be ones it was "
            "trained on."
        )
    )
    html = (
        soft(how)
        + _verdicts(task, told)
        + parts[main.key]
        + folded(task.others(len(parts) - 1), others)
        + soft(note)
    )
    return Part("Does the encoding still tell the index?", html)


def _verdicts(task: Task, told: Mapping[str, Sequence[str]]) -> str:
    """Of several methods, for which a dependence was found."""
    found = [m.title for m in task.methods if told[m.key] and told[m.key][0].startswith(FOUND)]
    none = [m.title for m in task.methods if told[m.key] and told[m.key][0].startswith(NONE)]
    if len(found) + len(none) < 2:
        return ""
    parts = [f"found: {', '.join(found)}"] if found else []
    parts += [f"none found: {', '.join(none)}"] if none else []
    return f"<p>A dependence on the index: {escape('; '.join(parts))}.</p>"


def _words(run: Run, known: Certificates) -> list[str]:
    kept = run.words.get("trust")
    if isinstance(kept, dict):
        return [str(line) for line in kept.get("certificate", [])]
    return list(known.get(run.folder, ()))


# --- the doctor ----------------------------------------------------------------------------------


def doctor(task: Task) -> Part | None:
    """What went wrong in training, and what to change."""
    lines: list[Cells] = []
    quiet: list[str] = []
    unjudged: dict[str, list[str]] = {}
    for method in task.methods:
        patients = [(run, patient) for run in method.runs for patient in run.patients]
        found = [(run, finding) for run, patient in patients for finding in patient.findings]
        alike: dict[str, list[tuple[Run, Any]]] = {}
        for run, finding in found:
            alike.setdefault(finding.fault, []).append((run, finding))
        for fault, mine in alike.items():
            count = f"{len(mine)} of {len(patients)}" if len(patients) > 1 else "yes"
            first = mine[0][1]
            lines.append(
                {
                    "method": method.title, "fault": fault, "found": first.found,
                    "what to change": first.fix, "trainings": count,
                }
            )  # fmt: skip
        told = dict.fromkeys(sentence for _, p in patients for sentence in p.unjudged)
        for sentence in told:
            unjudged.setdefault(sentence, []).append(method.title)
        if patients and not found and not told:
            quiet.append(method.title)
    if not (lines or quiet or unjudged):
        return None
    html = table(lines, "Faults by method; the words are the first one's") if lines else ""
    if quiet:
        html += f"<p>No fault was found in the training of {escape(', '.join(quiet))}.</p>"
    told_of = [f"{', '.join(names)}, not judged: {words}" for words, names in unjudged.items()]
    html += listed(told_of, "soft")
    return Part("What the doctor says", html, tables={"doctor": lines} if lines else {})


# --- expected accuracy ---------------------------------------------------------------------------


def expected(task: Task, level: int) -> Part | None:
    """The accuracy to expect along u, with its interval, and the true one where it is known."""
    shown = [m for m in task.methods if _cells(m)]
    if not shown:
        return None
    floor, size = _floor(shown), panel_size(len(shown))
    panels = [(m, _expected_panel(m, floor, size)) for m in shown]
    html = soft(
        "Told without a label of the target, with the interval that it should lie in. A dashed "
        "line: farther from the source than any range that could be left out to check it; take it "
        f"for a guess. The axis begins at {100 * floor:.0f} %."
    )
    scored = any(m.rows for m, _ in panels)
    key = [Series("expected", [0], [0], "s2")]
    if scored:
        key.append(Series("true", [0], [0], "s11"))
    drawn = [figure(c, m.title, _mean_words(m), level) for m, c in panels]
    html += legend(key) + charts_of(drawn, roomy=True)
    named = [(m.title, c) for m, c in panels]
    lines = [line for m, _ in panels for line in _expected_lines(m)]
    whole = together(named, 3, "expected accuracy along the index")
    html += folded("The same as a table", table(lines, "Expected accuracy in %"))
    return Part("Expected accuracy", html, {"expected": whole}, {"expected": lines})


def _cells(method: Method) -> list[Any]:
    view = method.views[0] if method.views else None
    cells = list(view.expected) if view is not None else []
    return [cell for cell in cells if not isinstance(cell.lo, list)]


def _floor(methods: Sequence[Method]) -> float:
    """Where the axis of all panels begins: below the lowest that is drawn, at a tenth."""
    drawn = [float(cell.low) for method in methods for cell in _cells(method)]
    drawn += [float(c["accuracy"]) for m in methods for row in m.rows[:1] for c in row.by_index]
    return max(0.0, math.floor(10 * min(drawn) - 0.1 + 1e-9) / 10)


def _expected_panel(method: Method, floor: float, size: tuple[float, float]) -> Chart:
    cells = _cells(method)
    view = method.views[0]
    x = [(cell.lo + cell.hi) / 2 for cell in cells]
    score, low, high = ([getattr(c, name) for c in cells] for name in ("score", "low", "high"))
    series = []
    for checked in (True, False):
        mine = [k for k, cell in enumerate(cells) if cell.checked is checked]
        for stretch in _stretches(mine):
            run = stretch
            if not checked and run[0] > 0:
                run = [run[0] - 1, *run]  # the line goes on from what was checked
            spread = ([low[k] for k in run], [high[k] for k in run])
            at, told = [x[k] for k in run], [score[k] for k in run]
            series.append(Series("expected", at, told, "s2", spread, dashed=not checked))
    if method.rows:
        true = method.rows[0].by_index
        at = [(cell["lo"] + cell["hi"]) / 2 for cell in true]
        series.append(Series("true", at, [cell["accuracy"] for cell in true], "s11 thin"))
    u = view.u[:, 0]
    ends = (float(u.min()), float(u.max()))
    label = (
        f"{method.title}: expected accuracy. {_mean_words(method)}; "
        f"the axis begins at {100 * floor:.0f} %"
    )
    return line_chart(
        series, label, axis_name(view), "accuracy", (floor, 1), source_bands(view), ends, size,
        index_words(view), percent=True,
    )  # fmt: skip


def _stretches(numbers: Sequence[int]) -> list[list[int]]:
    """Runs of numbers that follow each other."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return found


def _mean_words(method: Method) -> str:
    return f"on the whole target {mean_expected(_cells(method))}"


def mean_expected(cells: Sequence[Expected]) -> str:
    """The mean over the target rows of what is expected, and of its interval."""
    count = sum(cell.n for cell in cells)
    score, low, high = (
        100 * sum(cell.n * value for cell, value in zip(cells, values, strict=True)) / count
        for values in zip(*((c.score, c.low, c.high) for c in cells), strict=True)
    )
    return f"{score:.0f} % ({low:.0f} to {high:.0f})"


def _expected_lines(method: Method) -> list[Cells]:
    words = index_words(method.views[0])
    return [
        {
            "method": method.title,
            "from": words(cell.lo),
            "to": words(cell.hi),
            "rows": str(cell.n),
            "expected": f"{100 * cell.score:.1f}",
            "low": f"{100 * cell.low:.1f}",
            "high": f"{100 * cell.high:.1f}",
            "checked": "yes" if cell.checked else "no",
        }
        for cell in _cells(method)
    ]
