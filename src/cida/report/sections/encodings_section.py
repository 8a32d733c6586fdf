"""Encodings on their first two principal components, coloured by u and by what is predicted."""

from __future__ import annotations

from typing import Any

import numpy as np

from cida.indexing import evenly_spaced
from cida.report.blocks import Block, Figure, Html, Paragraph, Section, color_ramp, fold_others
from cida.report.build import MethodView, Report, TaskView
from cida.report.charts import Chart, Marks, facet, scatter_chart
from cida.report.index_axis import index_axis, index_values, predicted_values
from cida.report.theme import index_color
from cida.report.ticks import format_number
from cida.runs.snapshot import Snapshot

__all__ = ["build_encodings_section", "project_principal_components"]

Array = np.ndarray[Any, Any]

MAX_SCATTER_POINTS = 600
N_INDEX_COLORS = 24  # steps of u
MAX_COLORED_CLASSES = 10
SCATTER_SIZE_UNITS = (300.0, 220.0)
CLASS_STYLES = (5, 4, 3, 1, 2, 7, 9, 10, 8, 6, 0)  # red and blue first, as the toy worlds have them


def build_encodings_section(report: Report, task: TaskView) -> Section | None:
    """Two panels a method; nothing for methods that have no encoding."""
    figures: dict[str, list[Block]] = {}
    charts: list[tuple[str, Chart]] = []
    for method in task.methods:
        snapshot = method.snapshots[0] if method.snapshots else None
        if snapshot is not None and snapshot.z is not None and len(snapshot.z) > 2:
            points, shares = project_principal_components(snapshot.z)
            by_u, by_prediction = _charts(method, snapshot, points)
            figures[method.key] = [_figure(method, snapshot, shares, by_u, by_prediction)]
            charts.append((f"{method.title}, by {snapshot.index_names[0]}", by_u))
            charts.append((f"{method.title}, by prediction", by_prediction))
    if not figures or task.snapshot is None:
        return None
    note = Paragraph(
        f"Up to {MAX_SCATTER_POINTS} rows of the first seed. Where the encoding keeps nothing of "
        f"{task.snapshot.index_names[0]}, all its colours lie everywhere."
    )
    files = {"encodings": facet(charts, 2, "encodings")}
    return Section("Encodings", [note, *fold_others(task, figures)], files)


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


def _charts(method: MethodView, snapshot: Snapshot, points: Array) -> tuple[Chart, Chart]:
    sample = evenly_spaced(len(points), MAX_SCATTER_POINTS).numpy()
    x, y = points[sample].T
    by_u = _marks_by_share(x, y, index_values(snapshot), sample)
    values = predicted_values(snapshot)
    if snapshot.classes is None:
        by_prediction = _marks_by_share(x, y, values, sample)
    else:
        codes = np.minimum(values[sample], MAX_COLORED_CLASSES)
        by_prediction = [
            Marks(x[codes == k], y[codes == k], _class_style(k)) for k in np.unique(codes)
        ]
    labels = (
        f"{method.title}: encodings coloured by {snapshot.index_names[0]}",
        f"{method.title}: the same encodings coloured by what is predicted",
    )
    return (
        scatter_chart(by_u, labels[0], SCATTER_SIZE_UNITS),
        scatter_chart(by_prediction, labels[1], SCATTER_SIZE_UNITS),
    )


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


def _figure(
    method: MethodView, snapshot: Snapshot, shares: Array, by_u: Chart, by_prediction: Chart
) -> Figure:
    assert snapshot.z is not None
    caption = (
        f"{snapshot.z.shape[1]} columns; the two components hold {100 * shares[0]:.0f} % and "
        f"{100 * shares[1]:.0f} % of the variance"
    )
    axis = index_axis(snapshot)
    ends = [f"{axis.name} = {axis.format(end)}" for end in axis.ends or ()]
    if snapshot.classes is None:
        values = predicted_values(snapshot)
        extremes = (float(values.min()), float(values.max()))
        legend = color_ramp(*(f"predicted {format_number(value)}" for value in extremes))
    else:
        names = [*snapshot.classes[:MAX_COLORED_CLASSES], "others"][: len(snapshot.classes)]
        styles = [(name, _class_style(code)) for code, name in enumerate(names)]
        legend = Html("class_legend", {"styles": styles})
    pair = {"left": [by_u, color_ramp(*ends)], "right": [by_prediction, legend]}
    return Figure(method.title, [Html("pair", pair)], caption)
