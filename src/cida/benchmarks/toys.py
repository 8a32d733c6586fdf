"""The toy experiments: Circle and Sine (section 5.2 of the paper), and the demo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from cida.benchmarks.paper import RECORD
from cida.benchmarks.recipes import AS_IN_THE_PAPER, Benchmark, Preset, Recipe, Settings
from cida.benchmarks.samples import bin_words, expected_in_world, fingerprint, shown_world
from cida.benchmarks.views import Shown
from cida.datasets import World, circle, sine
from cida.diagnostics import Expected, accuracy, score_by_bin
from cida.discriminators import Histogram
from cida.estimators import CIDAClassifier
from cida.space import Line

__all__ = ["CIRCLE", "DEMO", "FRESH", "SINE", "Points"]

Array = np.ndarray[Any, Any]
FRESH = 10_000  # added to a seed, it draws the points that a model was not trained on


@dataclass(frozen=True)
class Points:
    """A toy world to train and to score on, and a fresh draw of the same domains to score on."""

    world: World
    fresh: World | None = None

    @property
    def name(self) -> str:
        return self.world.name

    def train(self, model: CIDAClassifier, oracle: bool) -> None:
        labels = self.world.y if oracle else self.world.training_labels
        model.fit(self.world.x, labels, domain_index=self.world.u)

    def scores(self, model: CIDAClassifier) -> dict[str, Any]:
        fresh = None if self.fresh is None else _scores(self.fresh, model)
        return {**_scores(self.world, model), "fresh": fresh}

    def fingerprint(self) -> str:
        return fingerprint(self.world.x, self.world.u, self.world.training_labels)

    def shown(self) -> Shown:
        return shown_world(self.world)

    def expected(self, model: CIDAClassifier) -> Sequence[Expected]:
        return expected_in_world(self.world, model)


def _scores(world: World, model: CIDAClassifier) -> dict[str, Any]:
    predicted = model.predict(world.x, domain_index=world.u)
    source = world.source
    u = torch.from_numpy(world.u)[:, None]
    domains = len(np.unique(world.u))
    cells = score_by_bin(Line(), u, world.y, predicted, domains, accuracy)
    return {
        "source_accuracy": accuracy(world.y[source], predicted[source]),
        "target_accuracy": accuracy(world.y[~source], predicted[~source]),
        "all_accuracy": accuracy(world.y, predicted),
        "by_index": [bin_words(cell) for cell in cells],
    }


PAPER: Settings = {**AS_IN_THE_PAPER, "predictor_hidden": (128, 128)}

# Tuned on seeds 100 and up. All methods see x in the moving frame, where 2,000 rounds are enough.
BEST: Settings = {"index_in_encoder": "frame", "curriculum": 0.0, "steps": 2000}


def _best_of(bins: int) -> dict[str, Settings]:
    """Label smoothing for the two that take each domain for a class of its own.

    ADDA's second half has no labels to hold it, and drifts at a rate that suits the others.
    """
    head = {"discriminator": Histogram(bins=bins, kernel=0, smoothing=0.05)}
    return {"dann": head, "cdann": head, "adda": {"learning_rate": 5e-5}}


def _circle(seed: int, protocol: str) -> Points:
    world = circle(seed=seed)
    return Points(world, circle(seed=seed + FRESH, scaled_as=world))


def _sine(seed: int, protocol: str) -> Points:
    world = sine(seed=seed)
    return Points(world, sine(seed=seed + FRESH, scaled_as=world))


PROTOCOLS = {
    "points": "training points; fresh: a second draw of the same domains, scaled as the first"
}
TOY_METHODS = (
    "source-only", "adda", "dann", "cdann", "mdd", "cua", "cida", "cida-l1", "pcida", "mixture",
    "histogram", "oracle",
)  # fmt: skip


def _toy(name: str, draw: Any, domains: int, targets: int) -> Benchmark:
    return Benchmark(
        name=name,
        draw=draw,
        methods=TOY_METHODS,
        presets={
            "best": Preset(BEST, _best_of(domains), protocol="points"),
            "paper": Preset(PAPER, protocol="points"),
        },
        protocols=PROTOCOLS,
        bins=domains,
        domains=domains,
        cua_stages=targets + 1,  # the source alone comes first
        records=RECORD[name],
    )


CIRCLE = _toy("circle", _circle, 30, 24)
SINE = _toy("sine", _sine, 12, 7)

# The demo: the game on its own, without the frame, and last the estimator as it comes. The heads
# that see only a moment or two need the curriculum and a discriminator that keeps up, or they fold
# far domains onto near ones.
_ALONE = {"index_in_encoder": False}
_KEEP_UP = {**_ALONE, "curriculum": 0.9, "discriminator_steps": 3}

DEMO = {
    recipe.method: recipe
    for recipe in (
        Recipe("source-only", "Source-Only", {"discriminator": None, **_ALONE}),
        Recipe("cida", "CIDA (L2)", {"discriminator": "l2", **_KEEP_UP}),
        Recipe(
            "pcida", "PCIDA (Gaussian)", {"discriminator": "gaussian", "lambda_d": 0.3, **_KEEP_UP}
        ),
        Recipe("histogram", "Histogram head", {"discriminator": "histogram", **_ALONE}),
        Recipe("default", "Default (moving frame)"),
    )
}
