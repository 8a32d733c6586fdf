"""The toy experiments: Circle and Sine (section 5.2 of the paper), and the demo."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cida.datasets import IndexedData, make_circle, make_sine
from cida.discriminators import Histogram
from cida.experiments.folder_files import load_published_scores
from cida.experiments.spec import PAPER_SETTINGS, MethodSettings, Preset, Recipe, TaskSpec
from cida.experiments.task_data import SyntheticTaskData
from cida.methods import METHODS

__all__ = ["CIRCLE", "DEMO_RECIPES", "FRESH_SEED_OFFSET", "SINE", "make_toy_data"]

Array = np.ndarray[Any, Any]
FRESH_SEED_OFFSET = 10_000  # added to a seed, it draws the points that a model was not trained on


TOY_PAPER_SETTINGS: MethodSettings = {**PAPER_SETTINGS, "predictor_hidden": (128, 128)}

# Tuned on seeds 100 and up. All methods see x in the moving frame, where 2,000 rounds are enough.
TOY_SETTINGS: MethodSettings = {"coordinates": "moving-frame", "curriculum": 0.0, "steps": 2000}


def _method_settings(bins: int) -> dict[str, MethodSettings]:
    """Label smoothing for the two that take each domain for a class of its own.

    ADDA's second half has no labels to hold it, and drifts at a rate that suits the others.
    """
    head = {"discriminator": Histogram(bins=bins, kernel=0, smoothing=0.05)}
    return {"dann": head, "cdann": head, "adda": {"learning_rate": 5e-5}}


def make_toy_data(data: IndexedData, fresh_data: IndexedData | None = None) -> SyntheticTaskData:
    """The task of these points, scored in each of their domains."""
    return SyntheticTaskData(data, fresh_data=fresh_data, n_bins=len(np.unique(data.u)))


def _draw_toy_data(
    make_data: Callable[..., IndexedData], seed: int, protocol: str
) -> SyntheticTaskData:
    data = make_data(seed=seed)
    return make_toy_data(data, make_data(seed=seed + FRESH_SEED_OFFSET, scaling_from=data))


TOY_PROTOCOLS = {
    "points": "training points; fresh: a second draw of the same domains, scaled as the first"
}
TOY_METHODS = (
    "source-only",
    "adda",
    "dann",
    "cdann",
    "mdd",
    "cua",
    "cida",
    "cida-l1",
    "pcida",
    "mixture",
    "histogram",
    "oracle",
)


def _toy_task(
    name: str, make_data: Callable[..., IndexedData], n_domains: int, n_target_domains: int
) -> TaskSpec:
    return TaskSpec(
        name=name,
        draw_data=partial(_draw_toy_data, make_data),
        methods=TOY_METHODS,
        presets={
            "best": Preset(TOY_SETTINGS, _method_settings(n_domains), protocol="points"),
            "paper": Preset(TOY_PAPER_SETTINGS, protocol="points"),
        },
        protocols=TOY_PROTOCOLS,
        n_histogram_bins=n_domains,
        domain_classes=n_domains,
        n_cua_stages=n_target_domains + 1,  # the source alone comes first
        published_scores=load_published_scores(__package__)[name],
    )


CIRCLE = _toy_task("circle", make_circle, 30, 24)
SINE = _toy_task("sine", make_sine, 12, 7)

# The demo: the game on its own, without the frame, and last the estimator as it comes. The heads
# that see only a moment or two need the curriculum and a discriminator that keeps up, or they fold
# far domains onto near ones.
_GAME_ONLY = {"coordinates": "raw"}
_STRONG_DISCRIMINATOR = {**_GAME_ONLY, "curriculum": 0.9, "discriminator_steps": 3}

_DEMO_SETTINGS: dict[str, MethodSettings] = {
    "source-only": _GAME_ONLY,
    "cida": _STRONG_DISCRIMINATOR,
    "pcida": {"lambda_d": 0.3, **_STRONG_DISCRIMINATOR},
    "histogram": _GAME_ONLY,
    "default": {},
}
DEMO_RECIPES = {
    name: Recipe(
        name,
        METHODS[name].title,
        {**METHODS[name].settings, **settings},
        role=METHODS[name].role,
    )
    for name, settings in _DEMO_SETTINGS.items()
}
