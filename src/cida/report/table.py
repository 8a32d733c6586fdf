"""The report of a model of a user's own table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from cida.report.parts import figure, legend, loss_panels, whole_page
from cida.report.svg import Band, Series, line_chart
from cida.training import Event

__all__ = ["Along", "table_report"]

Array = np.ndarray[Any, Any]

CELLS = 30
MOST_CLASSES = 6  # lines that can be told apart
FEWEST_ROWS = 5  # of a cell: fewer say nothing


@dataclass(frozen=True)
class Along:
    """Some rows along one index column: where they are, which are the source, what is predicted.

    ``predicted`` has a column for each class, the probabilities, or one column of numbers.
    """

    name: str
    u: Array
    source: Array
    predicted: Array
    classes: tuple[str, ...] | None
    wraps: bool = False


def table_report(
    title: str,
    understood: Sequence[str],
    warnings: Sequence[str],
    came_to: Sequence[str],
    trust: Mapping[str, Sequence[str]],
    along: Along,
    histories: Mapping[str, Sequence[Event]],
    facts: Mapping[str, Any],
) -> str:
    """One page: what was understood, what it came to, rows and predictions along the index."""
    sections = [
        f"<h1>{escape(title)}</h1>",
        _list(understood),
        *(f"<p class='notice'>{escape(words)}</p>" for words in warnings),
        "<h2>What it came to</h2>",
        _list(came_to),
        "<p class='soft'>No target label was seen: how right the model is on the target nobody "
        "can say from this table alone.</p>",
        "<h2>Does the encoding still tell the index?</h2>",
        _list(trust["certificate"]),
        "<h2>What the doctor says</h2>",
        _list(trust["faults"] or ("No fault was found in the training.",)),
        f"<h2>Along {escape(along.name)}</h2>",
        _rows_figure(along),
        _predictions_figure(along),
        loss_panels(histories),
        "<h2>How to repeat it</h2>",
        f"<pre>{escape(json.dumps(dict(facts), indent=2))}</pre>",
    ]
    return whole_page(title, "\n".join(part for part in sections if part))


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _edges(along: Along) -> Array:
    low, high = float(along.u.min()), float(along.u.max())
    return np.linspace(low, high if high > low else low + 1, CELLS + 1)


def _rows_figure(along: Along) -> str:
    edges = _edges(along)
    middle = ((edges[1:] + edges[:-1]) / 2).tolist()
    series = []
    for name, rows, style in (("source", along.source, "s3"), ("target", ~along.source, "s0")):
        counts = np.histogram(along.u[rows], edges)[0] / len(along.u)
        series.append(Series(name, middle, counts.tolist(), style))
    most = max(max(line.y) for line in series) or 1.0
    chart = line_chart(
        series, "rows along the index", along.name, "share of the rows", (0, most), percent=True
    )
    return figure("Where the rows are", "each point is one cell", legend(series) + chart)


def _predictions_figure(along: Along) -> str:
    edges = _edges(along)
    cell = np.clip(np.digitize(along.u, edges) - 1, 0, CELLS - 1)
    enough = [k for k in range(CELLS) if (cell == k).sum() >= FEWEST_ROWS]
    if not enough:
        return ""
    middle = [float(edges[k] + edges[k + 1]) / 2 for k in enough]
    means = np.array([along.predicted[cell == k].mean(0) for k in enough])
    names = along.classes or ("prediction",)
    largest = np.argsort(-means.mean(0), kind="stable")[:MOST_CLASSES]
    series = [
        Series(names[k], middle, means[:, k].tolist(), f"s{number}")
        for number, k in enumerate(sorted(largest.tolist()))
    ]
    classes = along.classes is not None
    low, high = (0.0, 1.0) if classes else _padded(means)
    source = along.u[along.source]
    # On a circle the source may lie on both sides of the seam: the figure above shows it.
    bands = [] if along.wraps else [Band(float(source.min()), float(source.max()), "source")]
    chart = line_chart(
        series, "predictions along the index", along.name,
        "mean probability" if classes else "mean prediction", (low, high), bands,
        (float(edges[0]), float(edges[-1])), percent=classes,
    )  # fmt: skip
    words = "means over the rows of a cell, labelled or not"
    return figure("What is predicted", words, legend(series) + chart)


def _padded(values: Array) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = 0.08 * (high - low) or 1.0
    return low - margin, high + margin
