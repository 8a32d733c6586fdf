"""What the defaults do on worlds with a known truth, one for each way an index can matter."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cida import datasets as worlds
from cida.datasets.ladder import SWITCH_POINTS_BY_MOMENT
from cida.experiments.folder_files import load_recipes
from cida.experiments.spec import TaskSpec
from cida.experiments.task_data import DependenceTaskData

RECIPES = load_recipes(__package__)


def _synthetic_task(
    task: str,
    title: str,
    make_data: Callable[..., worlds.IndexedData],
    regression: bool = False,
    experiment: str = "worlds",
    methods: tuple[str, ...] = RECIPES.methods,
) -> TaskSpec:
    name = f"{experiment}/{task}"

    def draw(seed: int, protocol: str) -> DependenceTaskData:
        return DependenceTaskData(make_data(seed=seed), name, regression)

    recipes = RECIPES._replace(methods=methods)
    return TaskSpec(name, draw, *recipes, title=title, regression=regression)


SYNTHETIC_TASKS = (
    _synthetic_task("circle", "Circle", worlds.make_circle),
    _synthetic_task("sine", "Sine", worlds.make_sine),
    _synthetic_task("moons", "Turning moons", worlds.make_rotating_moons),
    _synthetic_task("plane", "Plane", worlds.make_plane),
    _synthetic_task("hours", "Hours", worlds.make_hours),
    _synthetic_task("noisy-index", "Noisy index", worlds.make_noisy_index),
    *(
        _synthetic_task(f"ladder-{rung}", f"Ladder: {rung}", partial(worlds.make_ladder, rung))
        for rung in SWITCH_POINTS_BY_MOMENT
    ),
    _synthetic_task("irrelevant-index", "Irrelevant index", worlds.make_irrelevant_index),
    _synthetic_task("noise-index", "Noise for an index", worlds.make_noise_index),
    _synthetic_task("shifting-labels", "Shifting labels", worlds.make_shifting_labels),
    _synthetic_task(
        "drifting-regression", "Drifting regression (R²)", worlds.make_drifting_regression, True
    ),
)


# One game against the best of four, on points of each seed's own and on points that all share.
RESTART_TASKS = tuple(
    _synthetic_task(task, title, make, experiment="restarts", methods=("default", "restarts"))
    for task, title, make in (
        ("circle", "Circle", worlds.make_circle),
        ("sine", "Sine", worlds.make_sine),
        ("circle-one-draw", "Circle, one draw of points", lambda seed: worlds.make_circle(seed=0)),
        ("sine-one-draw", "Sine, one draw of points", lambda seed: worlds.make_sine(seed=0)),
    )
)
