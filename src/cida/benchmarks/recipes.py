"""Named recipes: every choice of one method in one experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cida.datasets import World, circle, sine
from cida.discriminators import Histogram
from cida.estimators.saving import plain

__all__ = ["BENCHMARKS", "DEMO", "METHODS", "PRESETS", "Benchmark", "Recipe", "recipes"]

Settings = Mapping[str, Any]
PRESETS = ("best", "paper")


@dataclass(frozen=True)
class Recipe:
    """A method's name, how tables call it, and the settings of its estimator.

    An ``oracle`` is trained on the labels of all rows: the best that could be hoped for.
    """

    method: str
    title: str
    settings: Settings = field(default_factory=dict)
    oracle: bool = False

    def with_settings(self, **changes: Any) -> Recipe:
        """The same recipe with these settings changed; None leaves a setting as it is."""
        given = {name: value for name, value in changes.items() if value is not None}
        return replace(self, settings={**self.settings, **given})

    def words(self) -> dict[str, Any]:
        """The settings as JSON values."""
        return {name: plain(value) for name, value in self.settings.items()}


@dataclass(frozen=True)
class Benchmark:
    """A world to draw, how many of its domains are targets, and each preset's common settings."""

    name: str
    draw: Callable[..., World]
    bins: int
    target_bins: int
    paper: Settings
    best: Settings
    best_of: Mapping[str, Settings]

    def settings(self, preset: str, method: str) -> dict[str, Any]:
        """What this preset adds to the method."""
        if preset == "paper":
            return dict(self.paper)
        return {**self.best, **self.best_of.get(method, {})}


def recipes(benchmark: Benchmark, preset: str) -> dict[str, Recipe]:
    """All methods of the tables, in their order, by name."""
    found = {}
    for method, (title, own) in METHODS.items():
        settings = {**own(benchmark), **benchmark.settings(preset, method)}
        found[method] = Recipe(method, title, settings, oracle=method == "oracle")
    return found


def _with(**settings: Any) -> Callable[[Benchmark], Settings]:
    return lambda benchmark: settings


def _domains(**settings: Any) -> Callable[[Benchmark], Settings]:
    """Each domain a class of its own: categorical adaptation."""
    return lambda benchmark: {
        "discriminator": Histogram(bins=benchmark.bins, kernel=0),
        **settings,
    }


# What makes each method what it is, whatever the preset. CUA goes through the source alone, then
# through one target bin after another.
METHODS: dict[str, tuple[str, Callable[[Benchmark], Settings]]] = {
    "source-only": ("Source-Only", _with(discriminator=None)),
    "adda": ("ADDA", _with(game="adda")),
    "dann": ("DANN", _domains()),
    "cdann": ("CDANN", _domains(game="conditional")),
    "mdd": ("MDD", _with(game="mdd")),
    "cua": ("CUA", lambda benchmark: {"game": "cua", "stages": benchmark.target_bins + 1}),
    "cida": ("CIDA (L2)", _with(discriminator="l2")),
    "cida-l1": ("CIDA (L1)", _with(discriminator="l1")),
    "pcida": ("PCIDA (Gaussian)", _with(discriminator="gaussian")),
    "mixture": ("PCIDA (mixture)", _with(discriminator="mixture")),
    "histogram": (
        "Histogram head",
        lambda benchmark: {"discriminator": Histogram(bins=benchmark.bins)},
    ),
    "oracle": ("Oracle (all labels)", _with(discriminator=None)),
}

# Section 5 and the supplement of the paper: Adam at 1e-4, lambda_d = 2 for all, batch normalisation
# in predictor and discriminator, u an input of the encoder; no ceiling, curriculum or averaging.
PAPER: Settings = {
    "index_in_encoder": True,
    "batch_norm": True,
    "predictor_hidden": (128, 128),
    "lambda_d": 2.0,
    "discriminator_steps": 1,
    "ceiling": False,
    "balance_bins": 1,
    "learning_rate": 1e-4,
    "schedule": "constant",
    "averaging": 0.0,
}

# Tuned on seeds 100 and up. All methods see x in the moving frame, where 2,000 rounds are enough.
BEST: Settings = {"index_in_encoder": "frame", "steps": 2000}


def _best_of(bins: int) -> dict[str, Settings]:
    """Label smoothing for the two that take each domain for a class of its own.

    ADDA's second half has no labels to hold it, and drifts at a rate that suits the others.
    """
    head = {"discriminator": Histogram(bins=bins, kernel=0, smoothing=0.05)}
    return {"dann": head, "cdann": head, "adda": {"learning_rate": 5e-5}}


BENCHMARKS = {
    benchmark.name: benchmark
    for benchmark in (
        Benchmark("circle", circle, 30, 24, PAPER, BEST, _best_of(30)),
        Benchmark("sine", sine, 12, 7, PAPER, BEST, _best_of(12)),
    )
}

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
        Recipe("default", "Default (moving frame)", {"discriminator": "histogram"}),
    )
}
