"""Encodings on their first two principal components, coloured by u and by what is predicted."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from cida.indexing import evenly_spaced
from cida.report.blocks import Section, render_color_ramp, render_details, render_note
from cida.report.build import MethodView, TaskView
from cida.report.charts import Chart, Marks, facet, scatter_chart
from cida.report.theme import N_LINE_STYLES, index_color
from cida.report.ticks import axis_name, first_index_column, format_number, index_formatter
from cida.runs.snapshot import Snapshot

__all__ = ["build_encodings_section", "project_principal_components"]

Array = np.ndarray[Any, Any]

MAX_SCATTER_POINTS = 600
N_INDEX_COLORS = 24  # steps of u
MAX_COLORED_CLASSES = 10
SCATTER_SIZE_UNITS = (300.0, 220.0)


def build_encodings_section(task: TaskView, level: int) -> Section | None:
    """Two panels a method; nothing for methods that have no encoding."""
    methods = [(m, snapshot) for m in task.methods if (snapshot := _first_encoded(m)) is not None]
    if not methods or task.snapshot is None:
        return None
    panels = {m.key: _panels(m, view) for m, view in methods}
    figures = {m.key: _figure(m, view, panels[m.key], level) for m, view in methods}
    main = task.main_method if task.main_method.key in figures else methods[0][0]
    rest = "".join(figures[m.key] for m, _ in methods if m is not main)
    name = axis_name(task.snapshot)
    html = render_note(
        f"Up to {MAX_SCATTER_POINTS} rows of the first seed. Where the encoding keeps nothing "
        f"of {name}, "
        "all its colours lie everywhere."
    )
    html += figures[main.key]
    html += render_details(task.others_label(len(methods) - 1), rest)
    rows = [
        (f"{m.title}, by {name}" if k == 0 else f"{m.title}, by prediction", chart)
        for m, _ in methods
        for k, (_, chart) in enumerate(panels[m.key])
    ]
    return Section("Encodings", html, {"encodings": facet(rows, 2, "encodings")})


def _first_encoded(method: MethodView) -> Snapshot | None:
    snapshot = method.snapshots[0] if method.snapshots else None
    return (
        snapshot
        if snapshot is not None and snapshot.z is not None and len(snapshot.z) > 2
        else None
    )


def project_principal_components(z: Array) -> tuple[Array, Array]:
    """The first two principal components, and the share of the variance in each.

    The sign is free: the largest loading of each is made positive.
    """
    centred = z.astype(np.float64) - z.mean(0, dtype=np.float64)
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    count = min(2, len(axes))
    axes = axes[:count] * np.sign(axes[np.arange(count), np.abs(axes[:count]).argmax(1)])[:, None]
    points = np.zeros((len(z), 2))
    points[:, :count] = centred @ axes.T
    total = float((sizes**2).sum())
    shares = np.zeros(2)
    shares[:count] = sizes[:count] ** 2 / total if total > 0 else 0
    return points, shares


def _panels(method: MethodView, snapshot: Snapshot) -> list[tuple[str, Chart]]:
    assert snapshot.z is not None
    points, _ = project_principal_components(snapshot.z)
    sample = evenly_spaced(len(points), MAX_SCATTER_POINTS).numpy()
    x, y = points[sample].T
    name = axis_name(snapshot)
    by_u = scatter_chart(
        _marks_by_share(x, y, _range_shares(first_index_column(snapshot))[sample]),
        f"{method.title}: encodings coloured by {name}",
        SCATTER_SIZE_UNITS,
    )
    if snapshot.classes is None:
        predictions = _range_shares(snapshot.predicted[:, 0])[sample]
        marks = _marks_by_share(x, y, predictions)
    else:
        predictions = snapshot.predicted.argmax(1)[sample]
        marks = _marks_by_class(x, y, predictions)
    prediction_label = f"{method.title}: the same encodings coloured by what is predicted"
    return [
        (f"by {name}", by_u),
        ("by prediction", scatter_chart(marks, prediction_label, SCATTER_SIZE_UNITS)),
    ]


def _range_shares(values: Array) -> Array:
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


def _marks_by_share(x: Array, y: Array, shares: Array) -> list[Marks]:
    step = np.clip((shares * N_INDEX_COLORS).astype(int), 0, N_INDEX_COLORS - 1)
    return [
        Marks(x[step == k], y[step == k], color=index_color((k + 0.5) / N_INDEX_COLORS))
        for k in np.unique(step)
    ]


def _marks_by_class(x: Array, y: Array, predictions: Array) -> list[Marks]:
    codes = np.minimum(predictions, MAX_COLORED_CLASSES)
    return [Marks(x[codes == k], y[codes == k], _class_style(int(k))) for k in np.unique(codes)]


def _class_style(code: int) -> str:
    """Red and blue first, as the toy worlds have them."""
    order = (5, 4, 3, 1, 2, 7, 9, 10, 8, 6, 0)
    return f"s{order[code % len(order)] % N_LINE_STYLES}"


def _figure(
    method: MethodView, snapshot: Snapshot, panels: Sequence[tuple[str, Chart]], level: int
) -> str:
    assert snapshot.z is not None
    _, variance_shares = project_principal_components(snapshot.z)
    (_, by_u), (_, by_prediction) = panels
    caption = (
        f"{snapshot.z.shape[1]} columns; the two components hold {100 * variance_shares[0]:.0f} "
        "% and "
        f"{100 * variance_shares[1]:.0f} % of the variance"
    )
    ends = [
        index_formatter(snapshot)(float(f(first_index_column(snapshot)))) for f in (np.min, np.max)
    ]
    name = axis_name(snapshot)
    color_ramp = render_color_ramp(f"{name} = {ends[0]}", f"{name} = {ends[1]}")
    return (
        f"<figure><h{level}>{escape(method.title)}</h{level}><figcaption>{caption}</figcaption>"
        f"<div class='pair'><div>{by_u.to_inline_svg()}{color_ramp}</div>"
        f"<div>{by_prediction.to_inline_svg()}{_render_prediction_legend(snapshot)}</div></div></figure>"
    )


def _render_prediction_legend(snapshot: Snapshot) -> str:
    """What the colours of predictions are."""
    if snapshot.classes is None:
        predictions = snapshot.predicted[:, 0]
        return render_color_ramp(
            *(f"predicted {format_number(float(f(predictions)))}" for f in (np.min, np.max))
        )
    items = []
    for code, name in enumerate(snapshot.classes[: MAX_COLORED_CLASSES + 1]):
        class_label = "others" if code == MAX_COLORED_CLASSES else name
        dot = (
            '<svg class="chart" viewBox="0 0 10 10" aria-hidden="true">'
            f'<path class="dot {_class_style(code)}" style="stroke-width:8" d="M5 5h0"/></svg>'
        )
        items.append(f"<li>{dot}{escape(class_label)}</li>")
    return f"<ul class='legend dots' aria-label='predicted class'>{''.join(items)}</ul>"
