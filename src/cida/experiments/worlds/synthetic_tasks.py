"""What the defaults do on worlds with a known truth, one for each way an index can matter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from cida.datasets import (
    IndexedData,
    make_circle,
    make_drifting_regression,
    make_hours,
    make_irrelevant_index,
    make_ladder,
    make_noise_index,
    make_noisy_index,
    make_plane,
    make_rotating_moons,
    make_shifting_labels,
    make_sine,
)
from cida.datasets.ladder import SWITCH_POINTS_BY_MOMENT
from cida.experiments.spec import MethodSettings, Preset, TaskSpec
from cida.experiments.task_data import DependenceTaskData

__all__ = ["RESTART_TASKS", "SYNTHETIC_TASKS"]

Array = np.ndarray[Any, Any]


def _make_draw(
    make_data: Callable[..., IndexedData], task: str, regression: bool
) -> Callable[[int, str], DependenceTaskData]:
    return lambda seed, protocol: DependenceTaskData(make_data(seed=seed), task, regression)


SYNTHETIC_PROTOCOLS = {"points": "all rows are trained on, the target's without labels, and scored"}

# The game alone, as it is without the choices that the default makes.
_GAME_ONLY: MethodSettings = {"coordinates": "raw", "steps": 2000}
SYNTHETIC_METHOD_SETTINGS: dict[str, MethodSettings] = {
    "source-only": {"coordinates": "raw"},
    "histogram": _GAME_ONLY,
    "given-prediction": _GAME_ONLY,
    "distance-correlation": _GAME_ONLY,
    "oracle": {"coordinates": "learned"},
}
SYNTHETIC_METHODS = (
    "source-only",
    "histogram",
    "given-prediction",
    "distance-correlation",
    "default",
    "oracle",
)


def _synthetic_task(
    task: str,
    title: str,
    make_data: Callable[..., IndexedData],
    regression: bool = False,
    experiment: str = "worlds",
    methods: Sequence[str] = SYNTHETIC_METHODS,
) -> TaskSpec:
    name = f"{experiment}/{task}"
    return TaskSpec(
        name=name,
        draw_data=_make_draw(make_data, name, regression),
        methods=methods,
        presets={"best": Preset({}, SYNTHETIC_METHOD_SETTINGS, protocol="points")},
        protocols=SYNTHETIC_PROTOCOLS,
        n_histogram_bins=30,
        domain_classes=30,
        n_cua_stages=20,
        title=title,
        regression=regression,
    )


SYNTHETIC_TASKS = (
    _synthetic_task("circle", "Circle", make_circle),
    _synthetic_task("sine", "Sine", make_sine),
    _synthetic_task("moons", "Turning moons", make_rotating_moons),
    _synthetic_task("plane", "Plane", make_plane),
    _synthetic_task("hours", "Hours", make_hours),
    _synthetic_task("noisy-index", "Noisy index", make_noisy_index),
    *(
        _synthetic_task(f"ladder-{rung}", f"Ladder: {rung}", partial(make_ladder, rung))
        for rung in SWITCH_POINTS_BY_MOMENT
    ),
    _synthetic_task("irrelevant-index", "Irrelevant index", make_irrelevant_index),
    _synthetic_task("noise-index", "Noise for an index", make_noise_index),
    _synthetic_task("shifting-labels", "Shifting labels", make_shifting_labels),
    _synthetic_task(
        "drifting-regression", "Drifting regression (R²)", make_drifting_regression, regression=True
    ),
)


def _fixed_draw(make_data: Callable[..., IndexedData]) -> Callable[..., IndexedData]:
    """The same points whatever the seed, which then is that of the game alone."""
    return lambda seed: make_data(seed=0)


# One game against the best of four, on points of each seed's own and on points that all share.
RESTART_TASKS = tuple(
    _synthetic_task(task, title, make, experiment="restarts", methods=("default", "restarts"))
    for task, title, make in (
        ("circle", "Circle", make_circle),
        ("sine", "Sine", make_sine),
        ("circle-one-draw", "Circle, one draw of points", _fixed_draw(make_circle)),
        ("sine-one-draw", "Sine, one draw of points", _fixed_draw(make_sine)),
    )
)
