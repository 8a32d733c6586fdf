"""Losses against their ceilings, and the loss of the prediction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cida.report.blocks import (
    Section,
    panel_size,
    render_figure,
    render_legend,
    render_note,
    render_panels,
)
from cida.report.build import MethodView, TaskView
from cida.report.charts import Chart, Series, facet, line_chart
from cida.training import Event

__all__ = ["build_losses_section"]

MAX_LINE_POINTS = 80  # of a line


def build_losses_section(task: TaskView, level: int) -> Section | None:
    """A panel a method that plays against something with a ceiling; all seeds in it."""
    count = sum(bool(_histories(m)) for m in task.methods)
    panels = [(m, chart) for m in task.methods if (chart := _panel(m, count)) is not None]
    if not panels:
        return None
    html = render_note(
        "The ceiling is the loss of the best guess that ignores the encoding. A discriminator that "
        "plays well cannot be pushed above it; at it, nothing about u is left for it to read."
    )
    legend_series = [Series("loss", [0], [0], "s3"), Series("ceiling", [0], [0], "s0", dashed=True)]
    html += render_legend(legend_series)
    html += render_panels(
        [render_figure(c, m.title, _format_final_gap(m), level) for m, c in panels], is_wide=True
    )
    titled_charts = [(m.title, c) for m, c in panels]
    facet_chart = facet(titled_charts, 3, "discriminator losses against their ceilings")
    return Section("Losses against their ceilings", html, {"losses": facet_chart})


def _histories(method: MethodView) -> list[list[Event]]:
    """Of each model, the events in which the game has a ceiling."""
    all_histories = [history for run in method.runs for history in run.histories]
    ceiling_histories = [
        [event for event in history if event.ceilings] for history in all_histories
    ]
    return [_subsample(history) for history in ceiling_histories if history]


def _subsample(history: Sequence[Event]) -> list[Event]:
    positions = np.unique(
        np.linspace(0, len(history) - 1, min(len(history), MAX_LINE_POINTS)).astype(int)
    )
    return [history[k] for k in positions]


def _panel(method: MethodView, count: int) -> Chart | None:
    histories = _histories(method)
    if not histories:
        return None
    name = next(iter(histories[0][-1].ceilings))
    style_suffix = " thin" if len(histories) > 1 else ""
    series = []
    for history in histories:
        events = [event for event in history if name in event.ceilings and name in event.losses]
        steps = [float(event.step) for event in events]
        if events:
            ceiling = [event.ceilings[name] for event in events]
            series.append(Series("ceiling", steps, ceiling, f"s0{style_suffix}", dashed=True))
            series.append(
                Series("loss", steps, [e.losses[name] for e in events], f"s3{style_suffix}")
            )
    if not series:
        return None
    values = np.array([value for line in series for value in line.y if np.isfinite(value)])
    low, high = (float(np.quantile(values, q)) for q in (0.01, 0.99))  # a spike hides the rest
    margin = 0.08 * (high - low) or 0.1
    label = f"{method.title}: {name} loss and ceiling over {len(histories)} trainings; " + (
        _format_final_gap(method) or "no end"
    )
    y_range = (low - margin, high + margin)
    return line_chart(series, label, "step", "", y_range, size=panel_size(count))


def _format_final_gap(method: MethodView) -> str:
    """How far from the ceiling the game came to rest, the mean over its models."""
    gaps = []
    for history in _histories(method):
        last = history[-1]
        gaps += [last.ceilings[n] - last.losses[n] for n in last.ceilings if n in last.losses][:1]
    if not gaps:
        return ""
    mean_gap = float(np.mean(gaps))
    count_note = f", mean of {len(gaps)}" if len(gaps) > 1 else ""
    return (
        f"at the end {abs(mean_gap):.3f} {'below' if mean_gap >= 0 else 'above'} the "
        f"ceiling{count_note}"
    )
