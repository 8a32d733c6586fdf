"""Losses against their ceilings, and the loss of the prediction."""

from __future__ import annotations

import numpy as np

from cida.report.blocks import Html, Panel, Section, facet_panels, panel_size
from cida.report.build import MethodView, ReportView, TaskView
from cida.report.charts import Chart, IndexAxis, Series, line_chart
from cida.training import Event

MAX_LINE_POINTS = 80


def build_losses_section(report: ReportView, task: TaskView) -> Section | None:
    """A panel a method that plays against something with a ceiling; all seeds in it."""
    histories = {m.key: _histories(m) for m in task.methods}
    size = panel_size(sum(map(bool, histories.values())))
    panels = []
    for method in task.methods:
        gap = _describe_final_gap(histories[method.key])
        chart = _chart(f"{method.title}: ", histories[method.key], gap, size)
        panels += [Panel(method.title, chart, gap)] if chart is not None else []
    if not panels:
        return None
    lines = [Series("loss", [0], [0], "s3"), Series("ceiling", [0], [0], "s0", dashed=True)]
    files = {"losses": facet_panels(panels, "discriminator losses against their ceilings")}
    title = "Losses against their ceilings"
    return Section(title, [Html("losses", series=lines, panels=panels)], files)


def _histories(method: MethodView) -> list[list[Event]]:
    """Of each model, some of the events in which the game has a ceiling."""
    histories = [[e for e in fitted.history if e.ceilings] for fitted in method.fitted_runs]
    return [
        [
            history[k]
            for k in np.unique(np.linspace(0, len(history) - 1, MAX_LINE_POINTS).astype(int))
        ]
        for history in histories
        if history
    ]


def _chart(
    title: str, histories: list[list[Event]], gap: str, size: tuple[float, float]
) -> Chart | None:
    name = next(iter(histories[0][-1].ceilings)) if histories else ""
    thin = " thin" if len(histories) > 1 else ""
    series = []
    for history in histories:
        events = [event for event in history if name in event.ceilings and name in event.losses]
        if events:
            steps = [float(event.step) for event in events]
            ceilings, losses = zip(
                *((e.ceilings[name], e.losses[name]) for e in events), strict=True
            )
            series.append(Series("ceiling", steps, ceilings, f"s0{thin}", dashed=True))
            series.append(Series("loss", steps, losses, f"s3{thin}"))
    if not series:
        return None
    values = np.array([value for line in series for value in line.y if np.isfinite(value)])
    low, high = (float(np.quantile(values, q)) for q in (0.01, 0.99))  # a spike hides the rest
    margin = 0.08 * (high - low) or 0.1
    label = f"{title}{name} loss and ceiling over {len(histories)} trainings; {gap or 'no end'}"
    return line_chart(series, label, IndexAxis("step"), "", (low - margin, high + margin), size)


def _describe_final_gap(histories: list[list[Event]]) -> str:
    """How far from the ceiling the game came to rest, the mean over its models."""
    gaps = []
    for *_, last in histories:
        gaps += [last.ceilings[n] - last.losses[n] for n in last.ceilings if n in last.losses][:1]
    if not gaps:
        return ""
    gap, count = float(np.mean(gaps)), f", mean of {len(gaps)}" if len(gaps) > 1 else ""
    return f"at the end {abs(gap):.3f} {'below' if gap >= 0 else 'above'} the ceiling{count}"
