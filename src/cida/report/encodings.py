"""Encodings on their first two principal components, coloured by u and by what is predicted."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from cida.diagnostics.view import View
from cida.report.chapters import Method, Task
from cida.report.palette import STYLES, index_colour
from cida.report.parts import Part, folded, ramp, soft
from cida.report.svg import Chart, Marks, scatter, together
from cida.report.ticks import axis_name, first_column, index_words, number_words
from cida.space import thinned

__all__ = ["encodings", "main_plane"]

Array = np.ndarray[Any, Any]

MOST_POINTS = 600
COLOURS = 24  # steps of u
MOST_CLASSES = 10
SIZE = (300.0, 220.0)


def encodings(task: Task, level: int) -> Part | None:
    """Two panels a method; nothing for methods that have no encoding."""
    shown = [(m, view) for m in task.methods if (view := _first(m)) is not None]
    if not shown or task.view is None:
        return None
    panels = {m.key: _panels(m, view) for m, view in shown}
    drawn = {m.key: _figure(m, view, panels[m.key], level) for m, view in shown}
    main = task.main if task.main.key in drawn else shown[0][0]
    rest = "".join(drawn[m.key] for m, _ in shown if m is not main)
    name = axis_name(task.view)
    html = soft(
        f"Up to {MOST_POINTS} rows of the first seed. Where the encoding keeps nothing of {name}, "
        "all its colours lie everywhere."
    )
    html += drawn[main.key]
    html += folded(task.others(len(shown) - 1), rest)
    rows = [
        (f"{m.title}, by {name}" if k == 0 else f"{m.title}, by prediction", chart)
        for m, _ in shown
        for k, (_, chart) in enumerate(panels[m.key])
    ]
    return Part("Encodings", html, {"encodings": together(rows, 2, "encodings")})


def _first(method: Method) -> View | None:
    view = method.views[0] if method.views else None
    return view if view is not None and view.z is not None and len(view.z) > 2 else None


def main_plane(z: Array) -> tuple[Array, Array]:
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


def _panels(method: Method, view: View) -> list[tuple[str, Chart]]:
    assert view.z is not None
    points, _ = main_plane(view.z)
    some = thinned(len(points), MOST_POINTS).numpy()
    x, y = points[some].T
    name = axis_name(view)
    by_u = scatter(
        _by_share(x, y, _shares(first_column(view))[some]),
        f"{method.title}: encodings coloured by {name}",
        SIZE,
    )
    if view.classes is None:
        said = _shares(view.predicted[:, 0])[some]
        marks = _by_share(x, y, said)
    else:
        said = view.predicted.argmax(1)[some]
        marks = _by_class(x, y, said)
    told = f"{method.title}: the same encodings coloured by what is predicted"
    return [(f"by {name}", by_u), ("by prediction", scatter(marks, told, SIZE))]


def _shares(values: Array) -> Array:
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


def _by_share(x: Array, y: Array, shares: Array) -> list[Marks]:
    step = np.clip((shares * COLOURS).astype(int), 0, COLOURS - 1)
    return [
        Marks(x[step == k], y[step == k], colour=index_colour((k + 0.5) / COLOURS))
        for k in np.unique(step)
    ]


def _by_class(x: Array, y: Array, said: Array) -> list[Marks]:
    codes = np.minimum(said, MOST_CLASSES)
    return [Marks(x[codes == k], y[codes == k], _class_style(int(k))) for k in np.unique(codes)]


def _class_style(code: int) -> str:
    """Red and blue first, as the toy worlds have them."""
    order = (5, 4, 3, 1, 2, 7, 9, 10, 8, 6, 0)
    return f"s{order[code % len(order)] % STYLES}"


def _figure(method: Method, view: View, panels: Sequence[tuple[str, Chart]], level: int) -> str:
    assert view.z is not None
    _, held = main_plane(view.z)
    (_, by_u), (_, by_said) = panels
    caption = (
        f"{view.z.shape[1]} columns; the two components hold {100 * held[0]:.0f} % and "
        f"{100 * held[1]:.0f} % of the variance"
    )
    ends = [index_words(view)(float(f(first_column(view)))) for f in (np.min, np.max)]
    name = axis_name(view)
    colours = ramp(f"{name} = {ends[0]}", f"{name} = {ends[1]}")
    return (
        f"<figure><h{level}>{escape(method.title)}</h{level}><figcaption>{caption}</figcaption>"
        f"<div class='pair'><div>{by_u.inline()}{colours}</div>"
        f"<div>{by_said.inline()}{_classes(view)}</div></div></figure>"
    )


def _classes(view: View) -> str:
    """What the colours of predictions are."""
    if view.classes is None:
        said = view.predicted[:, 0]
        return ramp(*(f"predicted {number_words(float(f(said)))}" for f in (np.min, np.max)))
    items = []
    for code, name in enumerate(view.classes[: MOST_CLASSES + 1]):
        words = "others" if code == MOST_CLASSES else name
        dot = (
            '<svg class="chart" viewBox="0 0 10 10" aria-hidden="true">'
            f'<path class="dot {_class_style(code)}" style="stroke-width:8" d="M5 5h0"/></svg>'
        )
        items.append(f"<li>{dot}{escape(words)}</li>")
    return f"<ul class='legend dots' aria-label='predicted class'>{''.join(items)}</ul>"
