"""Where the rows of a user's own table are along the index, and what is predicted of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cida.diagnostics.view import View
from cida.report.along import source_bands
from cida.report.chapters import Method, Task
from cida.report.parts import Part, charts_of, figure, legend, panel_size
from cida.report.svg import Chart, Series, line_chart, together
from cida.report.ticks import axis_name, first_column, index_words

__all__ = ["predictions"]

Array = np.ndarray[Any, Any]

CELLS = 30
MOST_CLASSES = 6  # lines that can be told apart
FEWEST_ROWS = 5  # of a cell: fewer say nothing


def predictions(task: Task, level: int) -> Part | None:
    """Rows along the index, and the means of what each method predicts there."""
    shown = [(m, m.views[0]) for m in task.methods if m.views]
    if not shown:
        return None
    view = shown[0][1]
    size = panel_size(1 + len(shown))
    rows, key = _rows_chart(view, size)
    panels = [figure(rows, "Where the rows are", "each point is one cell", level, legend(key))]
    charts = [("Where the rows are", rows)]
    for method, mine in shown:
        made = _predicted_chart(method, mine, size)
        if made is not None:
            chart, lines = made
            title = "What is predicted" + (f" by {method.title}" if len(shown) > 1 else "")
            words = "means over the rows of a cell, labelled or not"
            panels.append(figure(chart, title, words, level, legend(lines)))
            charts.append((title, chart))
    whole = together(charts, 2, "rows and predictions along the index")
    return Part(f"Along {axis_name(view)}", charts_of(panels, roomy=True), {"predictions": whole})


def _edges(u: Array) -> Array:
    low, high = float(u.min()), float(u.max())
    return np.linspace(low, high if high > low else low + 1, CELLS + 1)


def _rows_chart(view: View, size: tuple[float, float]) -> tuple[Chart, list[Series]]:
    u = first_column(view)
    edges = _edges(u)
    middle = ((edges[1:] + edges[:-1]) / 2).tolist()
    series = []
    for name, rows, style in (("source", view.source, "s3"), ("target", ~view.source, "s0")):
        share = np.histogram(u[rows], edges)[0] / len(u)
        series.append(Series(name, middle, share.tolist(), style))
    most = max(max(line.y) for line in series) or 1.0
    label = (
        f"rows along {axis_name(view)}: {int(view.source.sum()):,} of the source, "
        f"{int((~view.source).sum()):,} of the target are shown"
    )
    ends = (float(edges[0]), float(edges[-1]))
    chart = line_chart(
        series, label, axis_name(view), "share of the rows", (0, most), (), ends, size,
        index_words(view), percent=True,
    )  # fmt: skip
    return chart, series


def _predicted_chart(
    method: Method, view: View, size: tuple[float, float]
) -> tuple[Chart, list[Series]] | None:
    u = first_column(view)
    edges = _edges(u)
    cell = np.clip(np.digitize(u, edges) - 1, 0, CELLS - 1)
    enough = [k for k in range(CELLS) if (cell == k).sum() >= FEWEST_ROWS]
    if not enough:
        return None
    middle = [float(edges[k] + edges[k + 1]) / 2 for k in enough]
    means = np.array([view.predicted[cell == k].mean(0) for k in enough])
    names = view.classes or ("prediction",)
    largest = np.argsort(-means.mean(0), kind="stable")[:MOST_CLASSES]
    series = [
        Series(names[k], middle, means[:, k].tolist(), f"s{number}")
        for number, k in enumerate(sorted(largest.tolist()), 1)
    ]
    classes = view.classes is not None
    told = [f"{line.name} from {line.y[0]:.2f} to {line.y[-1]:.2f}" for line in series]
    chart = line_chart(
        series, f"{method.title}: mean predictions along {axis_name(view)}; {'; '.join(told)}",
        axis_name(view), "mean probability" if classes else "mean prediction",
        (0.0, 1.0) if classes else _padded(means), source_bands(view),
        (float(edges[0]), float(edges[-1])), size, index_words(view), percent=classes,
    )  # fmt: skip
    return chart, series


def _padded(values: Array) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = 0.08 * (high - low) or 1.0
    return low - margin, high + margin
