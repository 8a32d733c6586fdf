"""Encodings on their first two principal components, coloured by u and by what is predicted."""

from __future__ import annotations

from typing import Any

import numpy as np

from cida.indexing import evenly_spaced
from cida.report.blocks import Html, Section
from cida.report.build import MethodView, ReportView, TaskView
from cida.report.charts import Array, Marks, facet, scatter_chart
from cida.report.index_axis import index_axis, index_values, predicted_values
from cida.report.theme import index_color
from cida.report.ticks import format_number
from cida.runs.snapshot import Snapshot

MAX_SCATTER_POINTS = 600
N_INDEX_COLORS = 24  # steps of u
MAX_COLORED_CLASSES = 10
SCATTER_SIZE_UNITS = (300.0, 220.0)
CLASS_STYLES = (5, 4, 3, 1, 2, 7, 9, 10, 8, 6, 0)  # red and blue first, as the toy worlds have them


def build_encodings_section(report: ReportView, task: TaskView) -> Section | None:
    """Two panels a method; nothing for methods that have no encoding."""
    figures: dict[str, dict[str, Any]] = {}
    for method in task.methods:
        snapshot = method.snapshots[0] if method.snapshots else None
        if snapshot is not None and snapshot.z is not None and len(snapshot.z) > 2:
            figures[method.key] = {"title": method.title, **_figure(method, snapshot, snapshot.z)}
    if not figures or task.snapshot is None:
        return None
    name = task.snapshot.index_names[0]
    charts = [
        (f"{figure['title']}, by {words}", figure[key])
        for figure in figures.values()
        for key, words in (("by_u", name), ("by_prediction", "prediction"))
    ]
    files = {"encodings": facet(charts, 2, "encodings")}
    block = Html("encodings", task=task, max_points=MAX_SCATTER_POINTS, figures=figures)
    return Section("Encodings", [block], files)


def project_principal_components(z: Array) -> tuple[Array, Array]:
    """The first two principal components, and the share of the variance in each.

    The sign is free: the largest loading of each is made positive.
    """
    flat = z.reshape(len(z), -1).astype(np.float64)
    centred = flat - flat.mean(0)
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes[:2] * np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(1)])[:2, None]
    points, shares = np.zeros((len(z), 2)), np.zeros(2)
    points[:, : len(axes)] = centred @ axes.T
    total = float((sizes**2).sum())
    shares[: len(axes)] = sizes[:2] ** 2 / total if total > 0 else 0
    return points, shares


def _figure(method: MethodView, snapshot: Snapshot, z: Array) -> dict[str, Any]:
    """Both charts, and what is to be known of their points and colours."""
    points, shares = project_principal_components(z)
    sample = evenly_spaced(len(points), MAX_SCATTER_POINTS).numpy()
    x, y = points[sample].T
    axis, values = index_axis(snapshot), predicted_values(snapshot)
    if snapshot.classes is None:
        marks, names = _marks_by_share(x, y, values, sample), []
        ends = [f"predicted {format_number(float(end))}" for end in (values.min(), values.max())]
    else:
        codes, ends = np.minimum(values[sample], MAX_COLORED_CLASSES), []
        marks = [Marks(x[codes == k], y[codes == k], _class_style(k)) for k in np.unique(codes)]
        names = [*snapshot.classes[:MAX_COLORED_CLASSES], "others"][: len(snapshot.classes)]
    by_u = _marks_by_share(x, y, index_values(snapshot), sample)
    label = f"{method.title}: encodings coloured by {axis.name}"
    predicted_label = f"{method.title}: the same encodings coloured by what is predicted"
    return {
        "width": z.shape[1],
        "shares": shares,
        "by_u": scatter_chart(by_u, label, SCATTER_SIZE_UNITS),
        "by_prediction": scatter_chart(marks, predicted_label, SCATTER_SIZE_UNITS),
        "index_ends": [f"{axis.name} = {axis.format(end)}" for end in axis.ends or ()],
        "predicted_ends": ends,
        "class_styles": [(name, _class_style(code)) for code, name in enumerate(names)],
    }


def _marks_by_share(x: Array, y: Array, values: Array, sample: Array) -> list[Marks]:
    """Coloured by where the values are between the least and the greatest."""
    low, high = float(values.min()), float(values.max())
    shares = (values[sample] - low) / (high - low) if high > low else np.zeros(len(sample))
    step = np.clip((shares * N_INDEX_COLORS).astype(int), 0, N_INDEX_COLORS - 1)
    return [
        Marks(x[step == k], y[step == k], color=index_color((k + 0.5) / N_INDEX_COLORS))
        for k in np.unique(step)
    ]


def _class_style(code: int) -> str:
    return f"s{CLASS_STYLES[code % len(CLASS_STYLES)]}"
