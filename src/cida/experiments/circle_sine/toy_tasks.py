"""The toy experiments: Circle and Sine (section 5.2 of the paper), and the demo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from cida.datasets import IndexedData, make_circle, make_sine
from cida.discriminators import Histogram
from cida.experiments.folder_files import load_published_scores, load_recipes
from cida.experiments.spec import Recipe, TaskSpec
from cida.experiments.task_data import SyntheticTaskData
from cida.methods import METHODS

DataMaker = Callable[..., IndexedData]
FRESH_SEED_OFFSET = 10_000  # added to a seed, it draws the points that a model was not trained on
RECIPES = load_recipes(__package__)


def make_toy_data(data: IndexedData, fresh_data: IndexedData | None = None) -> SyntheticTaskData:
    """The task of these points, scored in each of their domains."""
    return SyntheticTaskData(data, fresh_data=fresh_data, n_bins=len(np.unique(data.u)))


def _draw_toy_data(make_data: DataMaker, seed: int, protocol: str) -> SyntheticTaskData:
    data = make_data(seed=seed)
    return make_toy_data(data, make_data(seed=seed + FRESH_SEED_OFFSET, scaling_from=data))


def _toy_task(name: str, make_data: DataMaker, n_domains: int, n_target_domains: int) -> TaskSpec:
    best = RECIPES.presets["best"]
    # Label smoothing for the two that take each domain for a class of its own.
    head = {"discriminator": Histogram(bins=n_domains, kernel=0, smoothing=0.05)}
    best = replace(best, method_settings={"dann": head, "cdann": head, **best.method_settings})
    presets = {"best": best, "paper": RECIPES.presets["paper"]}
    return TaskSpec(
        name,
        partial(_draw_toy_data, make_data),
        *RECIPES._replace(presets=presets),
        n_histogram_bins=n_domains,
        domain_classes=n_domains,
        n_cua_stages=n_target_domains + 1,  # the source alone comes first
        published_scores=load_published_scores(__package__)[name],
    )


CIRCLE = _toy_task("circle", make_circle, 30, 24)
SINE = _toy_task("sine", make_sine, 12, 7)

DEMO_RECIPES = {
    name: Recipe(name, method.title, {**method.settings, **settings}, role=method.role)
    for name, settings in RECIPES.presets["demo"].method_settings.items()
    for method in (METHODS[name],)
}
