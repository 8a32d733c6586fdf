"""What the defaults do on worlds with a known truth, one for each way an index can matter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.metrics import r2_score

from cida.benchmarks.recipes import Benchmark, Preset, Settings
from cida.benchmarks.samples import bin_words, expected_in_world, fingerprint, shown_world
from cida.benchmarks.views import Shown
from cida.datasets import (
    World,
    circle,
    drifting_regression,
    hours,
    irrelevant_index,
    ladder,
    moons,
    noise_index,
    noisy_index,
    plane,
    shifting_labels,
    sine,
)
from cida.datasets.ladder import RUNGS
from cida.dependence import distance_correlation
from cida.diagnostics import Expected, accuracy, label_shift, score_by_bin
from cida.space import line_space, thinned

__all__ = ["RESTARTS", "WORLDS", "WorldPoints"]

Array = np.ndarray[Any, Any]

BINS = 20
LOOKED_AT = 2000  # rows: distances between all of them


@dataclass(frozen=True)
class WorldPoints:
    """A world to train and to score on: labels of the target are there for scoring alone."""

    world: World
    task: str
    regression: bool = False

    simulated = False
    figures = "world_figures"
    line_a_method = False  # many worlds, few methods

    @property
    def name(self) -> str:
        return self.world.name

    def train(self, model: Any, oracle: bool) -> None:
        labels = self.world.y if oracle else self.world.training_labels
        model.fit(self.world.x, labels, domain_index=self.world.u)

    def scores(self, model: Any) -> dict[str, Any]:
        world = self.world
        predicted = model.predict(world.x, domain_index=world.u)
        metric = r2_score if self.regression else accuracy
        u = self._u
        cells = score_by_bin(line_space(u.shape[1]).fit(u), u, world.y, predicted, BINS, metric)
        source = world.source
        return {
            "source_accuracy": float(metric(world.y[source], predicted[source])),
            "target_accuracy": float(metric(world.y[~source], predicted[~source])),
            "all_accuracy": float(metric(world.y, predicted)),
            "by_index": [bin_words(cell) for cell in cells],
            "more": {"left of u": self._left(model)},
            "task": self.task,
        }

    def fingerprint(self) -> str:
        return fingerprint(self.world.x, self.world.u, self.world.training_labels)

    def shown(self) -> Shown:
        return shown_world(self.world)

    def expected(self, model: Any) -> Sequence[Expected]:
        return expected_in_world(self.world, model)

    def about(self, title: str) -> str:
        """How many rows there are, and whether the balance of labels moves along u."""
        source, u = self.world.source, self._u
        y = torch.from_numpy(self.world.y[source])
        shift = label_shift(line_space(u.shape[1]).fit(u), u[source], y)
        words = "moves along u, which fit warns of" if shift.suspected else "holds along u"
        return (
            f"{title}: {source.sum():,} source rows, {(~source).sum():,} target rows without "
            f"labels; the balance of source labels {words} ({shift.moves:.3f})."
        )

    @property
    def _u(self) -> torch.Tensor:
        return torch.from_numpy(self.world.u.reshape(len(self.world.u), -1))

    def _left(self, model: Any) -> float:
        """The distance correlation, bias-corrected and squared, of the encoding and u."""
        rows = thinned(len(self.world.u), LOOKED_AT).numpy()
        z = model.transform(self.world.x[rows], domain_index=self.world.u[rows])
        u = self._u[rows].double()
        index = line_space(u.shape[1]).fit(u).embed(u)
        return float(distance_correlation(torch.from_numpy(z).double(), index))


def _draw(
    make: Callable[..., World], task: str, regression: bool
) -> Callable[[int, str], WorldPoints]:
    return lambda seed, protocol: WorldPoints(make(seed=seed), task, regression)


PROTOCOLS = {"points": "all rows are trained on, the target's without labels, and scored"}

# The game alone, as it is without the choices that the default makes.
_ALONE: Settings = {"index_in_encoder": False, "steps": 2000}
OF_METHOD: dict[str, Settings] = {
    "source-only": {"index_in_encoder": False},
    "histogram": _ALONE,
    "given-prediction": _ALONE,
    "distance-correlation": _ALONE,
    "oracle": {"index_in_encoder": True},
}
METHODS = (
    "source-only", "histogram", "given-prediction", "distance-correlation", "default", "oracle",
)  # fmt: skip


def _world(
    task: str,
    title: str,
    make: Callable[..., World],
    regression: bool = False,
    experiment: str = "worlds",
    methods: Sequence[str] = METHODS,
) -> Benchmark:
    name = f"{experiment}/{task}"
    return Benchmark(
        name=name,
        draw=_draw(make, name, regression),
        methods=methods,
        presets={"best": Preset({}, OF_METHOD, protocol="points")},
        protocols=PROTOCOLS,
        bins=30,
        domains=30,
        cua_stages=20,
        title=title,
        regression=regression,
    )


WORLDS = (
    _world("circle", "Circle", circle),
    _world("sine", "Sine", sine),
    _world("moons", "Turning moons", moons),
    _world("plane", "Plane", plane),
    _world("hours", "Hours", hours),
    _world("noisy-index", "Noisy index", noisy_index),
    *(_world(f"ladder-{rung}", f"Ladder: {rung}", partial(ladder, rung)) for rung in RUNGS),
    _world("irrelevant-index", "Irrelevant index", irrelevant_index),
    _world("noise-index", "Noise for an index", noise_index),
    _world("shifting-labels", "Shifting labels", shifting_labels),
    _world("drifting-regression", "Drifting regression (R²)", drifting_regression, regression=True),
)


def _one_draw(make: Callable[..., World]) -> Callable[..., World]:
    """The same points whatever the seed, which then is that of the game alone."""
    return lambda seed: make(seed=0)


# One game against the best of four, on points of each seed's own and on points that all share.
RESTARTS = tuple(
    _world(task, title, make, experiment="restarts", methods=("default", "restarts"))
    for task, title, make in (
        ("circle", "Circle", circle),
        ("sine", "Sine", sine),
        ("circle-one-draw", "Circle, one draw of points", _one_draw(circle)),
        ("sine-one-draw", "Sine, one draw of points", _one_draw(sine)),
    )
)
