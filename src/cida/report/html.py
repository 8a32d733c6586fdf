"""One self-contained HTML file: what was run, what came out, and where along u."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from cida.benchmarks.paper import Record
from cida.benchmarks.runner import Outcome
from cida.benchmarks.tables import ResultLine, result_lines
from cida.datasets import World
from cida.report.svg import Band, Marks, Series, index_colour, line_chart, scatter

__all__ = ["toy_report"]

Array = np.ndarray[Any, Any]


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
    title = f"cida on {world.name.capitalize()}"
    sections = [
        f"<h1>{escape(title)}</h1>",
        _lead(world, outcomes),
        _table(outcomes, records),
        _pictures(pictures) if pictures else _panels(world, outcomes, first),
        _loss_section(first),
        "<h2>How to repeat it</h2>",
        f"<pre>{escape(json.dumps(dict(facts), indent=2))}</pre>",
    ]
    return _page(title, "\n".join(part for part in sections if part))


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


def _pictures(pictures: Mapping[str, str]) -> str:
    """Figures as images of their own, so that their styles do not meet the page's."""
    parts = [
        "<p class='soft'>Red dots and blue crosses are the two classes as predicted, a green frame "
        "holds the labelled source, black lines are the boundary of an RBF support vector machine "
        "fitted to each method's predictions at the same fitting accuracy. Bands run from the "
        "worst seed to the best.</p>"
    ]
    for title, picture in pictures.items():
        data = b64encode(picture.encode()).decode()
        image = (
            f"<img class='picture' alt='{escape(title)}' src='data:image/svg+xml;base64,{data}'>"
        )
        parts.append(f"<h2>{escape(title)}</h2><figure>{image}</figure>")
    return "".join(parts)


def _page(title: str, body: str) -> str:
    template = Template(files("cida.report").joinpath("page.html").read_text(encoding="utf-8"))
    return template.substitute(title=escape(title), body=body)


def _titles(outcomes: Sequence[Outcome]) -> dict[str, str]:
    return {outcome.recipe.method: outcome.recipe.title for outcome in outcomes}


def _best(lines: Sequence[ResultLine], outcomes: Sequence[Outcome]) -> ResultLine:
    """The best on the target of those that saw no target label."""
    oracles = {outcome.recipe.title for outcome in outcomes if outcome.recipe.oracle}
    return max(lines, key=lambda line: (line.title not in oracles, line.target))


def _lead(world: World, outcomes: Sequence[Outcome]) -> str:
    domains, sources = len(np.unique(world.u)), len(np.unique(world.u[world.source]))
    lines = result_lines([outcome.row for outcome in outcomes], _titles(outcomes))
    best = _best(lines, outcomes)
    return (
        f"<p class='lead'>{domains} domains named by a continuous index u. Labels exist in the "
        f"first {sources}; the other {domains - sources} are the target, where no label is used. "
        f"Best on the target: <b>{escape(best.title)}</b>, "
        f"{100 * best.target:.1f} %.</p>"
    )


def _table(outcomes: Sequence[Outcome], records: Mapping[str, Record] | None) -> str:
    lines = result_lines([outcome.row for outcome in outcomes], _titles(outcomes), records)
    best = _best(lines, outcomes)
    head = "".join(f"<th scope='col'>{name}</th>" for name in lines[0].words())
    rows = []
    for line in lines:
        kind = " class='best'" if line is best else ""
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in line.words().values())
        rows.append(f"<tr{kind}>{cells}</tr>")
    seeds = lines[0].seeds
    return (
        f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
        "</table></div>"
        f"<p class='soft'>{seeds} seed{'s' if seeds > 1 else ''}; accuracy in %, gain in points of "
        "target accuracy over Source-Only. Target labels serve for scoring alone.</p>"
        + _stories(lines)
    )


def _stories(lines: Sequence[ResultLine]) -> str:
    """Where the published numbers come from, and what the columns beside them are."""
    told = [f"{line.title}: {line.record.story}" for line in lines if line.record is not None]
    if "fresh" not in lines[0].words():
        return ""
    words = (
        "all: source and target domains together; fresh: points drawn anew from the same domains; "
        "record: the public record"
    )
    return f"<p class='soft'>{escape('; '.join([words, *told]))}.</p>"


def _figure(title: str, caption: str, picture: str, extra: str = "") -> str:
    return (
        f"<figure><h3>{escape(title)}</h3><figcaption>{escape(caption)}</figcaption>"
        f"{picture}{extra}</figure>"
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
    return _figure("Domains", "coloured by the index u", picture, ramp)


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
    return _figure("Ground truth", "the true labels", picture)


def _prediction_panel(world: World, outcome: Outcome) -> str:
    wrong = outcome.predicted != world.y
    marks = _class_marks(world, outcome.predicted)
    if wrong.any():
        marks.append(Marks(world.x[wrong, 0], world.x[wrong, 1], "ring"))
    title = outcome.recipe.title
    picture = scatter(marks, f"predictions of {title}", world.x[world.source])
    caption = f"{100 * outcome.row.target_accuracy:.1f} % right on the target"
    return _figure(title, caption, picture)


def _accuracy_chart(world: World, outcomes: Sequence[Outcome]) -> str:
    series = []
    domains = np.unique(world.u).tolist()
    for number, (method, title) in enumerate(_titles(outcomes).items()):
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
    return f"<figure>{_legend(series)}{chart}</figure>"


def _legend(series: Sequence[Series]) -> str:
    items = []
    for line in series:
        dash = " dashed" if line.dashed else ""
        stroke = (
            f'<svg viewBox="0 0 26 10"><path class="line {line.style}{dash}" d="M1 5H25"/></svg>'
        )
        items.append(f"<li>{stroke}{escape(line.name)}</li>")
    return f"<ul class='legend'>{''.join(items)}</ul>"


def _loss_section(outcomes: Sequence[Outcome]) -> str:
    figures = [_loss_panel(o) for o in outcomes if o.history and o.history[-1].ceilings]
    if not figures:
        return ""
    return (
        "<h2>Discriminator losses against their ceilings</h2>"
        "<p class='soft'>The ceiling is the loss of the best guess that ignores the encoding. A "
        "discriminator that plays well cannot be pushed above it; at it, nothing about u is left "
        "for it to read.</p>"
        f"<div class='panels'>{''.join(figures)}</div>"
    )


def _loss_panel(outcome: Outcome) -> str:
    played = [event for event in outcome.history if "discriminator" in event.ceilings]
    steps = [event.step for event in played]
    loss = [event.losses["discriminator"] for event in played]
    ceiling = [event.ceilings["discriminator"] for event in played]
    low, high = min(*loss, *ceiling), max(*loss, *ceiling)
    margin = 0.08 * (high - low) or 0.1
    series = [
        Series("loss", steps, loss, "s3"),
        Series("ceiling", steps, ceiling, "s0", dashed=True),
    ]
    chart = line_chart(
        series,
        f"discriminator loss of {outcome.recipe.title}",
        "step",
        "",
        (low - margin, high + margin),
        size=(320, 200),
        y_ticks=4,
    )
    left = ceiling[-1] - loss[-1]
    words = f"at the end {abs(left):.3f} {'below' if left >= 0 else 'above'} the ceiling"
    return _figure(outcome.recipe.title, words, _legend(series) + chart)
