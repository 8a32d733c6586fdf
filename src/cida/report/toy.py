"""The report of a toy world: what was run, what came out, and where along u."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from cida.benchmarks.paper import Record
from cida.benchmarks.runner import Outcome
from cida.benchmarks.tables import ResultLine, result_lines
from cida.datasets import World
from cida.report.parts import (
    best_line,
    figure,
    legend,
    loss_section,
    pictures_section,
    results_table,
    titles,
    whole_page,
)
from cida.report.svg import Band, Marks, Series, index_colour, line_chart, scatter

__all__ = ["toy_report"]

Array = np.ndarray[Any, Any]
WORDS = (
    "Red dots and blue crosses are the two classes as predicted, a green frame holds the labelled "
    "source, black lines are the boundary of an RBF support vector machine fitted to each method's "
    "predictions at the same fitting accuracy. Bands run from the worst seed to the best."
)


def toy_report(
    world: World,
    outcomes: Sequence[Outcome],
    facts: Mapping[str, Any],
    pictures: Mapping[str, str] | None = None,
    records: Mapping[str, Record] | None = None,
) -> str:
    """The report of a toy world: ``outcomes`` of one or more methods, over one or more seeds.

    The panels show the first seed; the world must be the one of that seed. ``pictures`` are SVG
    texts by title, which take the place of panels; ``records`` published numbers by method.
    """
    first = [o for o in outcomes if o.row.seed == outcomes[0].row.seed]
    lines = result_lines([outcome.row for outcome in outcomes], titles(outcomes), records)
    title = f"cida on {world.name.capitalize()}"
    sections = [
        f"<h1>{escape(title)}</h1>",
        _lead(world, lines, outcomes),
        results_table(lines, outcomes),
        pictures_section(pictures, WORDS) if pictures else _panels(world, outcomes, first),
        loss_section(first),
        "<h2>How to repeat it</h2>",
        f"<pre>{escape(json.dumps(dict(facts), indent=2))}</pre>",
    ]
    return whole_page(title, "\n".join(part for part in sections if part))


def _panels(world: World, outcomes: Sequence[Outcome], first: Sequence[Outcome]) -> str:
    return (
        "<h2>The world, and what each method makes of it</h2>"
        "<p class='soft'>Red dots and blue crosses are the two classes; the green frame holds the "
        "labelled source. Rings mark wrong predictions.</p>"
        f"<div class='panels'>{_index_panel(world)}{_truth_panel(world)}"
        + "".join(_prediction_panel(world, outcome) for outcome in first)
        + "</div><h2>Accuracy against u</h2>"
        + _accuracy_chart(world, outcomes)
    )


def _lead(world: World, lines: Sequence[ResultLine], outcomes: Sequence[Outcome]) -> str:
    domains, sources = len(np.unique(world.u)), len(np.unique(world.u[world.source]))
    best = best_line(lines, outcomes)
    return (
        f"<p class='lead'>{domains} domains named by a continuous index u. Labels exist in the "
        f"first {sources}; the other {domains - sources} are the target, where no label is used. "
        f"Best on the target: <b>{escape(best.title)}</b>, "
        f"{100 * best.target:.1f} %.</p>"
    )


def _index_panel(world: World) -> str:
    groups = []
    for value in np.unique(world.u):
        mine = world.u == value
        colour = index_colour(_share(world, value))
        groups.append(Marks(world.x[mine, 0], world.x[mine, 1], "dot", colour=colour))
    stops = ",".join(index_colour(k / 8) for k in range(9))
    low, high = world.u.min(), world.u.max()
    ramp = (
        f"<div class='ramp' style='background:linear-gradient(90deg,{stops})'></div>"
        f"<div class='ends'><span>u = {low:g}</span><span>u = {high:g}</span></div>"
    )
    picture = scatter(groups, "the data coloured by u", world.x[world.source])
    return figure("Domains", "coloured by the index u", picture, ramp)


def _share(world: World, value: float) -> float:
    low, high = float(world.u.min()), float(world.u.max())
    return (value - low) / (high - low)


def _class_marks(world: World, labels: Array) -> list[Marks]:
    positive = labels == 1
    x, y = world.x[:, 0], world.x[:, 1]
    return [
        Marks(x[positive], y[positive], "dot", "positive"),
        Marks(x[~positive], y[~positive], "cross", "negative"),
    ]


def _truth_panel(world: World) -> str:
    picture = scatter(_class_marks(world, world.y), "the true labels", world.x[world.source])
    return figure("Ground truth", "the true labels", picture)


def _prediction_panel(world: World, outcome: Outcome) -> str:
    predicted = outcome.model.predict(world.x, domain_index=world.u)
    wrong = predicted != world.y
    marks = _class_marks(world, predicted)
    if wrong.any():
        marks.append(Marks(world.x[wrong, 0], world.x[wrong, 1], "ring"))
    title = outcome.recipe.title
    picture = scatter(marks, f"predictions of {title}", world.x[world.source])
    caption = f"{100 * outcome.row.target_accuracy:.1f} % right on the target"
    return figure(title, caption, picture)


def _accuracy_chart(world: World, outcomes: Sequence[Outcome]) -> str:
    series = []
    domains = np.unique(world.u).tolist()
    for number, (method, title) in enumerate(titles(outcomes).items()):
        runs = [o.row.by_index for o in outcomes if o.recipe.method == method]
        scores = np.array([[cell["accuracy"] for cell in cells] for cells in runs])
        spread = (scores.min(0).tolist(), scores.max(0).tolist()) if len(runs) > 1 else None
        series.append(Series(title, domains, scores.mean(0).tolist(), f"s{number % 6}", spread))
    source = world.u[world.source]
    chart = line_chart(
        series,
        "accuracy against u",
        "u",
        "accuracy",
        (0.0, 1.0),
        [Band(float(source.min()), float(source.max()), "source")],
        (float(world.u.min()), float(world.u.max())),
        percent=True,
    )
    return f"<figure>{legend(series)}{chart}</figure>"
