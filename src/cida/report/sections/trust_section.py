"""What can be said without a target label: the certificate, expected accuracy, the doctor."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from cida.certificate import Certificate, certify_or_decline
from cida.doctor.diagnosis import Diagnosis, SkippedCheck
from cida.report.blocks import Html, Panel, Section, facet_panels, panel_size
from cida.report.build import Chapter, MethodView, ReportView, TaskView
from cida.report.charts import Series, line_chart
from cida.report.index_axis import index_axis, predicted_values
from cida.report.runs import Run
from cida.runs.result_table import Cell, CellValue, ResultTable, percent
from cida.selection.expected_score import ExpectedScore

CertificateScope = Literal["every", "few", "none"]


def certify_chapters(
    chapters: Sequence[Chapter],
    scope: CertificateScope,
    on_start: Callable[[int], None],
    on_certificate: Callable[[Run], None],
) -> dict[Path, Certificate]:
    """The certificates of the first seed of each method, of a few, or none, by the run's folder.

    They are of the rows that a run shows. The few are the best method and the default, of a report
    of one task. ``on_start`` hears how many there are to make, ``on_certificate`` of each.
    """
    tasks = [task for chapter in chapters for task in chapter.tasks if not task.is_user_table]
    if scope == "none" or (scope == "few" and len(tasks) > 1):
        tasks = []
    runs = [
        (method.runs[0], view, view.z)
        for task in tasks
        for method in task.methods
        if scope == "every" or method is task.best_method or method.key == "default"
        if (view := method.runs[0].snapshot) is not None and view.z is not None
    ]
    on_start(len(runs))
    certificates = {}
    for run, view, z in runs:
        u, predicted, names = torch.from_numpy(view.u), predicted_values(view), view.index_names
        made = certify_or_decline(view.space, z, u, predicted, index_names=names)
        certificates[run.folder] = made
        on_certificate(run)
    return certificates


def find_dependence(certificate: Certificate | None) -> bool | None:
    """Whether a dependence of z on u was found; None where nothing could be tested."""
    verdicts = {"dependent": True, "no-dependence-found": False, "constant-encoding": False}
    return None if certificate is None else verdicts.get(certificate.verdict)


def build_certificate_section(report: ReportView, task: TaskView) -> Section | None:
    """Does the encoding still tell u? The verdict of each method, and all that is behind it."""
    certificates: dict[str, dict[str, Any]] = {}
    titles: dict[bool | None, list[str]] = {}  # by whether a dependence was found
    for method in task.methods:
        certificate = report.certificate(method.runs[0])
        if certificate is not None:
            certificates[method.key] = {"title": method.title, "lines": certificate.summary()}
            titles.setdefault(find_dependence(certificate), []).append(method.title)
    if not certificates:
        return None
    block = Html(
        "certificates",
        task=task,
        found=titles.get(True, []),
        not_found=titles.get(False, []),
        certificates=certificates,
        not_certified=[m.title for m in task.methods if m.key not in certificates],
    )
    return Section("Does the encoding still tell the index?", [block])


def build_doctor_section(report: ReportView, task: TaskView) -> Section | None:
    """What went wrong in training, and what to change."""
    lines: list[dict[str, CellValue]] = []
    faultless: list[str] = []
    skipped: dict[object, tuple[SkippedCheck, list[str]]] = {}  # and by which methods
    for method in task.methods:
        trainings = method.fitted_runs
        by_code: dict[str, list[Diagnosis]] = {}
        for diagnosis in (each for fitted in trainings for each in fitted.diagnoses):
            by_code.setdefault(diagnosis.code, []).append(diagnosis)
        for code, group in by_code.items():
            count = f"{len(group)} of {len(trainings)}" if len(trainings) > 1 else "yes"
            lines.append(
                {
                    "method": method.title,
                    "fault": code,
                    "found": group[0].describe_evidence(),
                    "what to change": group[0].describe_suggestion(),
                    "trainings": count,
                }
            )
        checks = {
            (check.code, *sorted(check.evidence.items())): check
            for fitted in trainings
            for check in fitted.skipped_checks
        }
        for key, check in checks.items():
            skipped.setdefault(key, (check, []))[1].append(method.title)
        if trainings and not by_code and not checks:
            faultless.append(method.title)
    if not (lines or faultless or skipped):
        return None
    table = ResultTable.of(lines)
    block = Html("doctor", faults=table, faultless=faultless, skipped=list(skipped.values()))
    return Section("What the doctor says", [block], tables={"doctor": table} if lines else {})


def build_expected_score_section(report: ReportView, task: TaskView) -> Section | None:
    """The accuracy to expect along u, with its interval, and the true one where it is known."""
    cells_by_key = {m.key: cells for m in task.methods if (cells := _expected_cells(m))}
    methods = [method for method in task.methods if method.key in cells_by_key]
    if not methods:
        return None
    # The axis of all panels begins below the lowest that is drawn, at a tenth.
    scores = [cell.low for cells in cells_by_key.values() for cell in cells]
    scores += [cell["score"] for m in methods for row in m.results[:1] for cell in row.by_index]
    floor = max(0.0, math.floor(10 * min(scores) - 0.1 + 1e-9) / 10)
    series = [Series("expected", [0], [0], "s2")]
    series += [Series("true", [0], [0], "s11")] if any(m.results for m in methods) else []
    size = panel_size(len(methods))
    panels = [_expected_panel(m, cells_by_key[m.key], floor, size) for m in methods]
    lines = (line for m in methods for line in _expected_lines(m, cells_by_key[m.key]))
    table = ResultTable.of(lines)
    block = Html("expected", floor=floor, series=series, panels=panels, scores=table)
    files = {"expected": facet_panels(panels, "expected accuracy along the index")}
    return Section("Expected accuracy", [block], files, {"expected": table})


def _expected_cells(method: MethodView) -> list[Any]:
    """Those along an index of one number."""
    cells = method.snapshots[0].expected if method.snapshots else ()
    return [cell for cell in cells if not isinstance(cell.lo, list)]


def _expected_panel(
    method: MethodView, cells: list[Any], floor: float, size: tuple[float, float]
) -> Panel:
    series = []
    for is_checked in (True, False):
        numbers = [k for k, cell in enumerate(cells) if cell.is_within_calibration is is_checked]
        for _, group in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
            stretch = [number for _, number in group]
            first = stretch[0] if is_checked else max(stretch[0] - 1, 0)
            part = cells[first : stretch[-1] + 1]  # a guess goes on from what was checked
            x = [(cell.lo + cell.hi) / 2 for cell in part]
            spread = ([cell.low for cell in part], [cell.high for cell in part])
            y = [cell.score for cell in part]
            series.append(Series("expected", x, y, "s2", spread, dashed=not is_checked))
    for row in method.results[:1]:
        x = [(cell["lo"] + cell["hi"]) / 2 for cell in row.by_index]
        series.append(Series("true", x, [cell["score"] for cell in row.by_index], "s11 thin"))
    caption = f"on the whole target {format_mean_expected(cells)}"
    label = f"{method.title}: expected accuracy. {caption}; the axis begins at {100 * floor:.0f} %"
    axis = index_axis(method.snapshots[0])
    chart = line_chart(series, label, axis, "accuracy", (floor, 1), size, percent=True)
    return Panel(method.title, chart, caption)


def format_mean_expected(cells: Sequence[ExpectedScore]) -> str:
    """The mean over the target rows of what is expected, and of its interval."""
    values = [(cell.score, cell.low, cell.high) for cell in cells]
    mean = 100 * np.average(values, axis=0, weights=[cell.n for cell in cells])
    return f"{mean[0]:.0f} % ({mean[1]:.0f} to {mean[2]:.0f})"


def _expected_lines(method: MethodView, cells: Sequence[Any]) -> list[Mapping[str, CellValue]]:
    format_index = index_axis(method.snapshots[0]).format
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
        for cell in cells
    ]
