"""The parts that reports are put together from."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template

from cida.benchmarks.runner import Outcome
from cida.benchmarks.tables import ResultLine, cells
from cida.report.svg import Series, line_chart
from cida.training import Event

__all__ = [
    "best_line",
    "figure",
    "legend",
    "loss_panels",
    "loss_section",
    "pictures_section",
    "results_table",
    "titles",
    "whole_page",
]


def pictures_section(pictures: Mapping[str, str], words: str) -> str:
    """Figures as images of their own, so that their styles do not meet the page's."""
    parts = [f"<p class='soft'>{escape(words)}</p>"]
    for title, picture in pictures.items():
        data = b64encode(picture.encode()).decode()
        image = (
            f"<img class='picture' alt='{escape(title)}' src='data:image/svg+xml;base64,{data}'>"
        )
        parts.append(f"<h2>{escape(title)}</h2><figure>{image}</figure>")
    return "".join(parts)


def whole_page(title: str, body: str) -> str:
    """The file: a title and a body in the template."""
    template = Template(files("cida.report").joinpath("page.html").read_text(encoding="utf-8"))
    return template.substitute(title=escape(title), body=body)


def titles(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """How tables call each method."""
    return {outcome.recipe.method: outcome.recipe.title for outcome in outcomes}


def best_line(lines: Sequence[ResultLine], outcomes: Sequence[Outcome]) -> ResultLine:
    """The best on the target of those that saw no target label."""
    oracles = {outcome.recipe.title for outcome in outcomes if outcome.recipe.oracle}
    return max(lines, key=lambda line: (line.title not in oracles, line.target))


def results_table(lines: Sequence[ResultLine], outcomes: Sequence[Outcome]) -> str:
    """The table of all methods, the published numbers below, and what the columns are."""
    best = best_line(lines, outcomes).title
    found = cells(lines)
    head = "".join(f"<th scope='col'>{name}</th>" for name in found[0])
    rows = []
    for line in found:
        kind = " class='best'" if line["method"] == best else ""
        row = "".join(f"<td>{escape(cell)}</td>" for cell in line.values())
        rows.append(f"<tr{kind}>{row}</tr>")
    seeds = lines[0].seeds
    return (
        f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
        "</table></div>"
        f"<p class='soft'>{seeds} seed{'s' if seeds > 1 else ''}; accuracy in %, gain in points of "
        "target accuracy over Source-Only. Target labels serve for scoring, and to train an "
        "oracle.</p>" + _stories(lines)
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


def figure(title: str, caption: str, picture: str, extra: str = "") -> str:
    """A panel with a heading and a caption."""
    return (
        f"<figure><h3>{escape(title)}</h3><figcaption>{escape(caption)}</figcaption>"
        f"{picture}{extra}</figure>"
    )


def legend(series: Sequence[Series]) -> str:
    """What the lines of a chart are."""
    items = []
    for line in series:
        dash = " dashed" if line.dashed else ""
        stroke = (
            f'<svg viewBox="0 0 26 10"><path class="line {line.style}{dash}" d="M1 5H25"/></svg>'
        )
        items.append(f"<li>{stroke}{escape(line.name)}</li>")
    return f"<ul class='legend'>{''.join(items)}</ul>"


def loss_section(outcomes: Sequence[Outcome]) -> str:
    """How close each discriminator came to its ceiling."""
    return loss_panels({outcome.recipe.title: outcome.history for outcome in outcomes})


def loss_panels(histories: Mapping[str, Sequence[Event]]) -> str:
    """The same for the events of trainings by their titles; those without an adversary are not."""
    figures = [_loss_panel(title, h) for title, h in histories.items() if h and h[-1].ceilings]
    if not figures:
        return ""
    return (
        "<h2>Discriminator losses against their ceilings</h2>"
        "<p class='soft'>The ceiling is the loss of the best guess that ignores the encoding. A "
        "discriminator that plays well cannot be pushed above it; at it, nothing about u is left "
        "for it to read.</p>"
        f"<div class='panels'>{''.join(figures)}</div>"
    )


def _loss_panel(title: str, history: Sequence[Event]) -> str:
    played = [event for event in history if "discriminator" in event.ceilings]
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
        f"discriminator loss of {title}",
        "step",
        "",
        (low - margin, high + margin),
        size=(320, 200),
        y_ticks=4,
    )
    left = ceiling[-1] - loss[-1]
    words = f"at the end {abs(left):.3f} {'below' if left >= 0 else 'above'} the ceiling"
    return figure(title, words, legend(series) + chart)
