"""A bank of runs, good and bad: which validator finds the good ones without target labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from cida.batch import Rows
from cida.benchmarks.networks import ImageNetworks
from cida.benchmarks.recipes import Benchmark, Preset, Recipe, Settings
from cida.benchmarks.rotating import DIGITS, ROTATING_DIGITS, SMALL, Turning
from cida.benchmarks.samples import EXPECTED_CELLS, bin_words, fingerprint
from cida.benchmarks.tabular import NHANES, TableRows
from cida.benchmarks.views import Shown
from cida.datasets import World, circle, hours, moons, sine
from cida.diagnostics import Expected, accuracy, outermost, score_by_bin
from cida.diagnostics.view import MOST_ROWS
from cida.discriminators import Histogram
from cida.estimators.expected import expected_of_rows
from cida.space import Line, Periodic, Space, thinned
from cida.training import isolated

__all__ = ["LEFT_OUT", "SELECTION", "BankRows", "Scored"]

Array = np.ndarray[Any, Any]

LEFT_OUT = "leave-range-out"
HELD_OUT = 10  # one source row in so many is not trained on, for validators that ask for such
BINS = 20


@dataclass(frozen=True)
class Scored:
    """Target rows with their truth, which serves for scoring alone."""

    x: Array
    y: Array
    u: Array


@dataclass(frozen=True)
class BankRows:
    """Rows to train on, their space, and target rows to score on."""

    name: str
    task: str
    rows: Rows
    space: Space
    scored: Scored

    simulated = False
    figures = "selection_figures"
    line_a_method = True

    @property
    def held(self) -> Tensor:
        """Source rows whose labels are not trained on."""
        held = torch.zeros(len(self.rows), dtype=torch.bool)
        held[self.rows.sources[::HELD_OUT]] = True
        return held

    @cached_property
    def trained(self) -> Rows:
        """What every run is trained on."""
        return self.rows.hiding(self.held)

    def train(self, model: Any, oracle: bool) -> None:
        model.fit_rows(self.trained)

    def scores(self, model: Any) -> dict[str, Any]:
        """Beside accuracies, how the same recipe does on the source range that it is not shown."""
        right = self.right(model)
        u = torch.from_numpy(self.scored.u)
        ones = np.ones(len(right))
        cells = score_by_bin(self.space, u, ones, right.astype(float), BINS, accuracy)
        source = self._share_right(model, self.trained.sources)
        return {
            "source_accuracy": source,
            "target_accuracy": float(right.mean()),
            "all_accuracy": float(right.mean()),
            "by_index": [bin_words(cell) for cell in cells],
            "more": {LEFT_OUT: self._left_out(model)},
            "task": self.task,
        }

    def right(self, model: Any) -> Array:
        """Which of the scored rows are predicted right; here target labels are read."""
        return np.asarray(model.predict(self.scored.x, domain_index=self.scored.u) == self.scored.y)

    def fingerprint(self) -> str:
        rows = self.rows
        return fingerprint(*(t.numpy() for t in (rows.x, rows.y, rows.u)), self.scored.x)

    def shown(self) -> Shown:
        sources = self.rows.sources
        known = sources[thinned(len(sources), MOST_ROWS // 2)]
        asked = thinned(len(self.scored.u), MOST_ROWS // 2).numpy()
        with isolated(0):
            batch = self.rows[known]
        parts = zip(
            (batch.x, batch.y, batch.u),
            (self.scored.x, self.scored.y, self.scored.u),
            strict=True,
        )
        x, y, u = (np.concatenate([ours.numpy(), theirs[asked]]) for ours, theirs in parts)
        return Shown(x, u, np.arange(len(u)) < len(known), y, space=self.space)

    def expected(self, model: Any) -> list[Expected]:
        return expected_of_rows(model, self.trained, EXPECTED_CELLS)

    def about(self, title: str) -> str:
        """How many rows there are."""
        sources = len(self.rows.sources)
        return (
            f"{title}: {sources:,} source rows, one in {HELD_OUT} held out, "
            f"{len(self.rows) - sources:,} target rows without labels."
        )

    def _left_out(self, model: Any) -> float:
        hidden = outermost(self.space, self.trained.u, self.trained.labelled)
        twin = clone(model).fit_rows(self.trained.hiding(hidden))
        return self._share_right(twin, hidden.nonzero()[:, 0])

    def _share_right(self, model: Any, which: Tensor) -> float:
        with isolated(0):  # rows may be drawn as they are dealt
            batch = self.rows[which]
        predicted = model.predict(batch.x.numpy(), domain_index=batch.u.numpy())
        return accuracy(batch.y.numpy(), predicted)


def _of_world(task: str, make: Callable[..., World], space: Space) -> Callable[..., BankRows]:
    def draw(seed: int, protocol: str) -> BankRows:
        world = make(seed=seed)
        x = ((world.x - world.x.mean(0)) / world.x.std(0)).astype(np.float32)
        u = world.u.reshape(len(world.u), -1)
        tensors = (torch.from_numpy(each) for each in (x, world.y, u, world.source))
        target = ~world.source
        scored = Scored(x[target], world.y[target], u[target])
        return BankRows(world.name, task, Rows(*tensors), space.fit(torch.from_numpy(u)), scored)

    return draw


def _of_table(task: str, table: Benchmark) -> Callable[..., BankRows]:
    def draw(seed: int, protocol: str) -> BankRows:
        sample = table.draw(seed, protocol)
        assert isinstance(sample, TableRows)
        tensors = (torch.from_numpy(e) for e in (sample.x, sample.y, sample.u, sample.source))
        asked = sample.scored
        scored = Scored(sample.x[asked], sample.y[asked], sample.u[asked])
        space = sample.space.fit(torch.from_numpy(sample.u))
        return BankRows(sample.name, task, Rows(*tensors), space, scored)

    return draw


def _of_digits(task: str, digits: Benchmark) -> Callable[..., BankRows]:
    def draw(seed: int, protocol: str) -> BankRows:
        sample = digits.draw(seed, protocol)
        assert isinstance(sample, Turning)
        asked = sample.scored()
        with isolated(0):
            target = (asked.u[:, 0] > 45).nonzero()[:, 0]
            batch = asked[target]
        scored = Scored(batch.x.numpy(), batch.y.numpy(), batch.u.numpy())
        truth = sample.scored_digits.labels.numpy()
        scored = Scored(scored.x, np.tile(truth, len(asked) // len(truth))[target], scored.u)
        rows = sample.rows()
        return BankRows(sample.name, task, rows, Periodic(360).fit(rows.u), scored)

    return draw


# --- the recipes ---------------------------------------------------------------------------------

HEADS = {"l2": "L2", "gaussian": "Gaussian", "histogram": "Histogram"}
LAMBDAS = (0.2, 0.5, 1.0, 2.0, 5.0)  # the paper's
PROTOCOLS = {
    "clean": "all target rows are trained on without labels and, of tables one half, of digits "
    "other images, scored",
    "development": "of tables the other half of the target rows, of digits training images held "
    "out, are scored",
}
# As in the paper u is an input of the encoder: runs come out good and bad.
POINTS: Settings = {"index_in_encoder": True, "steps": 2000}
IMAGES: Settings = {**DIGITS, "steps": 600}


def _bank(settings: Settings, networks: ImageNetworks | None = None) -> Mapping[str, Recipe]:
    found = {}
    for head, title in HEADS.items():
        for lambda_d in LAMBDAS:
            method = f"{head}-{lambda_d:g}"
            own = {"discriminator": head, "lambda_d": lambda_d}
            if networks is not None:  # as in the experiment on digits
                head_of = {"histogram": Histogram(bins=ROTATING_DIGITS.bins)}
                own |= {"discriminator": head_of.get(head, head)}
                own |= {} if head == "histogram" else {"space": Line()}
            found[method] = Recipe(method, f"{title}, {lambda_d:g}", {**settings, **own}, networks)
    return found


def _group(
    task: str,
    title: str,
    draw: Callable[[str], Callable[..., BankRows]],
    settings: Settings,
    networks: ImageNetworks | None = None,
    download: str | None = None,
) -> Benchmark:
    name = f"selection/{task}"
    whole = _bank(settings, networks)
    return Benchmark(
        name=name,
        draw=draw(name),
        methods=tuple(whole),
        presets={"best": Preset(settings, protocol="clean", whole=whole)},
        protocols=PROTOCOLS,
        bins=30,
        domains=30,
        cua_stages=20,
        download=download,
        title=title,
    )


def _world(task: str, title: str, make: Callable[..., World], space: Space) -> Benchmark:
    return _group(
        task, title, lambda name: _of_world(name, make, space), {**POINTS, "space": space}
    )


SELECTION = (
    _world("circle", "Circle", circle, Line()),
    _world("sine", "Sine", sine, Line()),
    _group(
        "rotating-digits",
        "Rotating digits",
        lambda name: _of_digits(name, ROTATING_DIGITS),
        IMAGES,
        SMALL,
    ),
    _group("nhanes", "NHANES", lambda name: _of_table(name, NHANES[0]), POINTS, download="nhanes"),
    _world("moons", "Turning moons", moons, Line()),
    _world("hours", "Hours", hours, Periodic(24)),
)
