"""Losses against their ceilings, and the loss of the prediction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cida.report.chapters import Method, Task
from cida.report.parts import Part, charts_of, figure, legend, panel_size, soft
from cida.report.svg import Chart, Series, line_chart, together
from cida.training import Event

__all__ = ["losses"]

MOST_POINTS = 80  # of a line


def losses(task: Task, level: int) -> Part | None:
    """A panel a method that plays against something with a ceiling; all seeds in it."""
    count = sum(bool(_histories(m)) for m in task.methods)
    panels = [(m, chart) for m in task.methods if (chart := _panel(m, count)) is not None]
    if not panels:
        return None
    html = soft(
        "The ceiling is the loss of the best guess that ignores the encoding. A discriminator that "
        "plays well cannot be pushed above it; at it, nothing about u is left for it to read."
    )
    key = [Series("loss", [0], [0], "s3"), Series("ceiling", [0], [0], "s0", dashed=True)]
    html += legend(key)
    html += charts_of([figure(c, m.title, _at_the_end(m), level) for m, c in panels], roomy=True)
    named = [(m.title, c) for m, c in panels]
    whole = together(named, 3, "discriminator losses against their ceilings")
    return Part("Losses against their ceilings", html, {"losses": whole})


def _histories(method: Method) -> list[list[Event]]:
    """Of each model, the events in which the game has a ceiling."""
    every = [history for run in method.runs for history in run.histories]
    played = [[event for event in history if event.ceilings] for history in every]
    return [_thin(history) for history in played if history]


def _thin(history: Sequence[Event]) -> list[Event]:
    some = np.unique(np.linspace(0, len(history) - 1, min(len(history), MOST_POINTS)).astype(int))
    return [history[k] for k in some]


def _panel(method: Method, count: int) -> Chart | None:
    histories = _histories(method)
    if not histories:
        return None
    name = next(iter(histories[0][-1].ceilings))
    thin = " thin" if len(histories) > 1 else ""
    series = []
    for history in histories:
        known = [event for event in history if name in event.ceilings and name in event.losses]
        steps = [float(event.step) for event in known]
        if known:
            ceiling = [event.ceilings[name] for event in known]
            series.append(Series("ceiling", steps, ceiling, f"s0{thin}", dashed=True))
            series.append(Series("loss", steps, [e.losses[name] for e in known], f"s3{thin}"))
    if not series:
        return None
    values = np.array([value for line in series for value in line.y if np.isfinite(value)])
    low, high = (float(np.quantile(values, q)) for q in (0.01, 0.99))  # a spike hides the rest
    margin = 0.08 * (high - low) or 0.1
    label = f"{method.title}: {name} loss and ceiling over {len(histories)} trainings; " + (
        _at_the_end(method) or "no end"
    )
    ends = (low - margin, high + margin)
    return line_chart(series, label, "step", "", ends, size=panel_size(count))


def _at_the_end(method: Method) -> str:
    """How far from the ceiling the game came to rest, the mean over its models."""
    ends = []
    for history in _histories(method):
        last = history[-1]
        ends += [last.ceilings[n] - last.losses[n] for n in last.ceilings if n in last.losses][:1]
    if not ends:
        return ""
    left = float(np.mean(ends))
    several = f", mean of {len(ends)}" if len(ends) > 1 else ""
    return f"at the end {abs(left):.3f} {'below' if left >= 0 else 'above'} the ceiling{several}"
