"""What can be said without a target label: the certificate, expected accuracy, the doctor."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from cida.certificate import Certificate, certify_or_decline
from cida.report.blocks import (
    Section,
    panel_size,
    render_details,
    render_figure,
    render_legend,
    render_list,
    render_note,
    render_panels,
)
from cida.report.build import Chapter, MethodView, TaskView
from cida.report.charts import Chart, Series, facet, line_chart
from cida.report.runs import Run
from cida.report.sections.accuracy_section import find_source_bands
from cida.report.tables import render_html
from cida.report.ticks import axis_name, index_formatter
from cida.runs.result_table import Cell, CellValue, ResultTable, percent
from cida.selection.expected_score import ExpectedScore

__all__ = [
    "CertificateScope",
    "Certificates",
    "build_certificate_section",
    "build_doctor_section",
    "build_expected_score_section",
    "certify_runs",
    "find_dependence",
    "format_mean_expected",
    "run_certificate",
    "select_runs_to_certify",
]

Array = np.ndarray[Any, Any]
CertificateScope = Literal["every", "few", "none"]


Certificates = Mapping[Path, Certificate]  # of the run in each folder


# --- the certificate -----------------------------------------------------------------------------


def select_runs_to_certify(chapters: Sequence[Chapter], scope: CertificateScope) -> list[Run]:
    """Runs whose encodings are looked at: the first seed of each method, a few, or none.

    The few are the best method and the default, of a report of one task.
    """
    tasks = [task for chapter in chapters for task in chapter.tasks if not chapter.has_user_tables]
    if scope == "none" or (scope == "few" and len(tasks) > 1):
        return []
    runs = []
    for task in tasks:
        for method in task.methods:
            run = method.runs[0]
            is_selected = scope == "every" or method is task.best_method or method.key == "default"
            if is_selected and run.snapshot is not None and run.snapshot.z is not None:
                runs.append(run)
    return runs


def certify_runs(
    runs: Sequence[Run], on_run: Callable[[Run], None] = lambda run: None
) -> Certificates:
    """The certificate of the rows that each run shows; ``watch`` hears of each."""
    made = {}
    for run in runs:
        made[run.folder] = _certify_run(run)
        on_run(run)
    return made


def run_certificate(run: Run, certificates: Certificates) -> Certificate | None:
    """The certificate that was kept with a fit, or that was made for the report."""
    fit = run.record.fit
    return certificates.get(run.folder) if fit is None else fit.certificate


def find_dependence(certificate: Certificate | None) -> bool | None:
    """Whether a dependence of z on u was found; None where nothing could be tested."""
    verdicts = {"dependent": True, "no-dependence-found": False, "constant-encoding": False}
    return None if certificate is None else verdicts.get(certificate.verdict)


def _certify_run(run: Run) -> Certificate:
    snapshot = run.snapshot
    assert snapshot is not None
    assert snapshot.z is not None
    predictions = (
        snapshot.predicted[:, 0] if snapshot.classes is None else snapshot.predicted.argmax(1)
    )
    u, names = torch.from_numpy(snapshot.u), snapshot.index_names
    return certify_or_decline(snapshot.space, snapshot.z, u, predictions, index_names=names)


def build_certificate_section(
    task: TaskView, certificates: Certificates, level: int
) -> Section | None:
    """Does the encoding still tell u? The verdict of each method, and all that is behind it."""
    optional = {m.key: run_certificate(m.runs[0], certificates) for m in task.methods}
    found = {key: one for key, one in optional.items() if one is not None}
    if not found:
        return None
    tested = [m for m in task.methods if m.key in found]
    main = task.main_method if task.main_method.key in found else tested[0]
    sentences = {key: certificate.summary() for key, certificate in found.items()}
    parts = {
        m.key: f"<h{level}>{escape(m.title)}</h{level}>"
        f"<p>{escape(sentences[m.key][0])}</p>"
        + render_details("The whole certificate", render_list(sentences[m.key][1:]))
        for m in tested
    }
    others = "".join(part for key, part in parts.items() if key != main.key)
    without = [m.title for m in task.methods if m.key not in found]
    note = (
        f"Not looked at here: {', '.join(without)}; cida report looks at all that have an encoding."
        if without
        else ""
    )
    rows_note = (
        ""
        if task.methods[0].runs[0].is_user_table
        else (
            "By the rows of the first seed that are kept with the run, which may be ones it was "
            "trained on."
        )
    )
    html = (
        render_note(rows_note)
        + _render_verdicts(tested, found)
        + parts[main.key]
        + render_details(task.others_label(len(parts) - 1), others)
        + render_note(note)
    )
    return Section("Does the encoding still tell the index?", html)


def _render_verdicts(methods: Sequence[MethodView], found: Mapping[str, Certificate]) -> str:
    """Of several methods, for which a dependence was found."""
    dependent = [m.title for m in methods if find_dependence(found[m.key]) is True]
    independent = [m.title for m in methods if find_dependence(found[m.key]) is False]
    if len(dependent) + len(independent) < 2:
        return ""
    parts = [f"found: {', '.join(dependent)}"] if dependent else []
    parts += [f"none found: {', '.join(independent)}"] if independent else []
    return f"<p>A dependence on the index: {escape('; '.join(parts))}.</p>"


# --- the doctor ----------------------------------------------------------------------------------


def build_doctor_section(task: TaskView) -> Section | None:
    """What went wrong in training, and what to change."""
    lines: list[dict[str, CellValue]] = []
    faultless: list[str] = []
    methods_by_check: dict[str, list[str]] = {}
    for method in task.methods:
        fitted_runs = [(run, patient) for run in method.runs for patient in run.fitted_runs]
        diagnoses = [
            (run, finding) for run, patient in fitted_runs for finding in patient.diagnoses
        ]
        diagnoses_by_fault: dict[str, list[tuple[Run, Any]]] = {}
        for run, finding in diagnoses:
            diagnoses_by_fault.setdefault(finding.code, []).append((run, finding))
        for fault, group in diagnoses_by_fault.items():
            count = f"{len(group)} of {len(fitted_runs)}" if len(fitted_runs) > 1 else "yes"
            first = group[0][1]
            lines.append(
                {
                    "method": method.title,
                    "fault": fault,
                    "found": first.describe_evidence(),
                    "what to change": first.describe_suggestion(),
                    "trainings": count,
                }
            )
        skipped_checks = dict.fromkeys(
            check.summary() for _, p in fitted_runs for check in p.skipped_checks
        )
        for sentence in skipped_checks:
            methods_by_check.setdefault(sentence, []).append(method.title)
        if fitted_runs and not diagnoses and not skipped_checks:
            faultless.append(method.title)
    if not (lines or faultless or methods_by_check):
        return None
    table = ResultTable.of(lines)
    html = render_html(table, "Faults by method; the words are the first one's") if lines else ""
    if faultless:
        html += f"<p>No fault was found in the training of {escape(', '.join(faultless))}.</p>"
    skipped_lines = [
        f"{', '.join(names)}, not judged: {words}" for words, names in methods_by_check.items()
    ]
    html += render_list(skipped_lines, "soft")
    return Section("What the doctor says", html, tables={"doctor": table} if lines else {})


# --- expected accuracy ---------------------------------------------------------------------------


def build_expected_score_section(task: TaskView, level: int) -> Section | None:
    """The accuracy to expect along u, with its interval, and the true one where it is known."""
    methods = [m for m in task.methods if _expected_cells(m)]
    if not methods:
        return None
    floor, size = _axis_floor(methods), panel_size(len(methods))
    panels = [(m, _expected_panel(m, floor, size)) for m in methods]
    html = render_note(
        "Told without a label of the target, with the interval that it should lie in. A dashed "
        "line: farther from the source than any range that could be left out to check it; take it "
        f"for a guess. The axis begins at {100 * floor:.0f} %."
    )
    has_scores = any(m.results for m, _ in panels)
    legend_series = [Series("expected", [0], [0], "s2")]
    if has_scores:
        legend_series.append(Series("true", [0], [0], "s11"))
    figures = [render_figure(c, m.title, _format_target_mean(m), level) for m, c in panels]
    html += render_legend(legend_series) + render_panels(figures, is_wide=True)
    titled_charts = [(m.title, c) for m, c in panels]
    table = ResultTable.of(line for m, _ in panels for line in _expected_lines(m))
    facet_chart = facet(titled_charts, 3, "expected accuracy along the index")
    html += render_details("The same as a table", render_html(table, "Expected accuracy in %"))
    return Section("Expected accuracy", html, {"expected": facet_chart}, {"expected": table})


def _expected_cells(method: MethodView) -> list[Any]:
    snapshot = method.snapshots[0] if method.snapshots else None
    cells = list(snapshot.expected) if snapshot is not None else []
    return [cell for cell in cells if not isinstance(cell.lo, list)]


def _axis_floor(methods: Sequence[MethodView]) -> float:
    """Where the axis of all panels begins: below the lowest that is drawn, at a tenth."""
    scores = [float(cell.low) for method in methods for cell in _expected_cells(method)]
    scores += [float(c["score"]) for m in methods for row in m.results[:1] for c in row.by_index]
    return max(0.0, math.floor(10 * min(scores) - 0.1 + 1e-9) / 10)


def _expected_panel(method: MethodView, floor: float, size: tuple[float, float]) -> Chart:
    cells = _expected_cells(method)
    snapshot = method.snapshots[0]
    x = [(cell.lo + cell.hi) / 2 for cell in cells]
    score, low, high = ([getattr(c, name) for c in cells] for name in ("score", "low", "high"))
    series = []
    for checked in (True, False):
        cell_numbers = [k for k, cell in enumerate(cells) if cell.is_within_calibration is checked]
        for stretch in _consecutive_groups(cell_numbers):
            positions = stretch
            if not checked and positions[0] > 0:
                positions = [positions[0] - 1, *positions]  # the line goes on from what was checked
            spread = ([low[k] for k in positions], [high[k] for k in positions])
            centers, scores = [x[k] for k in positions], [score[k] for k in positions]
            series.append(Series("expected", centers, scores, "s2", spread, dashed=not checked))
    if method.results:
        true_cells = method.results[0].by_index
        centers = [(cell["lo"] + cell["hi"]) / 2 for cell in true_cells]
        series.append(Series("true", centers, [cell["score"] for cell in true_cells], "s11 thin"))
    u = snapshot.u[:, 0]
    x_range = (float(u.min()), float(u.max()))
    label = (
        f"{method.title}: expected accuracy. {_format_target_mean(method)}; "
        f"the axis begins at {100 * floor:.0f} %"
    )
    return line_chart(
        series,
        label,
        axis_name(snapshot),
        "accuracy",
        (floor, 1),
        find_source_bands(snapshot),
        x_range,
        size,
        index_formatter(snapshot),
        percent=True,
    )


def _consecutive_groups(numbers: Sequence[int]) -> list[list[int]]:
    """Runs of numbers that follow each other."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


def _format_target_mean(method: MethodView) -> str:
    return f"on the whole target {format_mean_expected(_expected_cells(method))}"


def format_mean_expected(cells: Sequence[ExpectedScore]) -> str:
    """The mean over the target rows of what is expected, and of its interval."""
    count = sum(cell.n for cell in cells)
    score, low, high = (
        100 * sum(cell.n * value for cell, value in zip(cells, values, strict=True)) / count
        for values in zip(*((c.score, c.low, c.high) for c in cells), strict=True)
    )
    return f"{score:.0f} % ({low:.0f} to {high:.0f})"


def _expected_lines(method: MethodView) -> list[dict[str, CellValue]]:
    format_index = index_formatter(method.snapshots[0])
    return [
        {
            "method": method.title,
            "from": Cell(cell.lo, display=format_index(cell.lo)),
            "to": Cell(cell.hi, display=format_index(cell.hi)),
            "rows": cell.n,
            "expected": percent(cell.score),
            "low": percent(cell.low),
            "high": percent(cell.high),
            "checked": "yes" if cell.is_within_calibration else "no",
        }
        for cell in _expected_cells(method)
    ]
