"""Recipes: every choice of one method in one experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from torch import nn

from cida.benchmarks.paper import Record
from cida.benchmarks.views import Shown
from cida.diagnostics import Expected
from cida.discriminators import (
    L1,
    L2,
    Discriminator,
    Flow,
    Gaussian,
    Histogram,
    Mixture,
    SkewNormal,
    VonMises,
    VonMisesMixture,
)
from cida.estimators import CIDAClassifier, CIDARegressor
from cida.estimators.saving import plain
from cida.space import Line, Space
from cida.training import Callback

__all__ = [
    "AS_IN_THE_PAPER",
    "AS_USUAL",
    "METHODS",
    "Benchmark",
    "Machine",
    "Networks",
    "Preset",
    "Recipe",
    "Sample",
    "recipes",
]

Settings = Mapping[str, Any]
MODEL = "model.safetensors"

# Section 5 and the supplement of the paper: Adam at 1e-4, lambda_d = 2 for all, batch normalisation
# in predictor and discriminator, u an input of the encoder; no ceiling, curriculum or averaging.
AS_IN_THE_PAPER: Settings = {
    "index_in_encoder": True,
    "batch_norm": True,
    "lambda_d": 2.0,
    "discriminator_steps": 1,
    "ceiling": False,
    "curriculum": 0.0,
    "balance_bins": 1,
    "learning_rate": 1e-4,
    "schedule": "constant",
    "averaging": 0.0,
}


class Networks(Protocol):
    """An encoder that is not the estimator's own: a dataclass of plain values."""

    def encoder(self, space: Space, seed: int) -> nn.Module:
        """The encoder for an index in this space, its weights drawn with the seed."""


class Sample(Protocol):
    """What one seed draws of a benchmark's data: to train on, and to score on."""

    @property
    def name(self) -> str:
        """The data's name."""

    def train(self, model: CIDAClassifier, oracle: bool) -> None:
        """Fits the model; target labels are there for an oracle alone."""

    def scores(self, model: CIDAClassifier) -> dict[str, Any]:
        """The accuracies of a `Row`; here target labels are read."""

    def fingerprint(self) -> str:
        """A short hash: equal for equal data."""

    def shown(self) -> Shown:
        """Rows for a report to show, the same for every model."""

    def expected(self, model: CIDAClassifier) -> Sequence[Expected]:
        """The accuracy to expect along u by a second training; no target label is read."""


@dataclass(frozen=True)
class Machine:
    """Where and how the encoders of all recipes are trained."""

    device: str = "cpu"
    precision: str = "float32"
    compile: bool = False

    def settings(self) -> dict[str, Any]:
        """Of an estimator: those that are not as usual."""
        usual = asdict(AS_USUAL)
        return {name: value for name, value in asdict(self).items() if value != usual[name]}

    def flags(self) -> list[str]:
        """The same, to be typed."""
        return [f"--{k}" if v is True else f"--{k} {v}" for k, v in self.settings().items()]


AS_USUAL = Machine()


@dataclass(frozen=True)
class Recipe:
    """A method's name, how tables call it, and the settings of its estimator.

    An ``oracle`` is trained on the labels of all rows: the best that could be hoped for.
    """

    method: str
    title: str
    settings: Settings = field(default_factory=dict)
    networks: Any = None
    oracle: bool = False
    regression: bool = False

    def with_settings(self, **changes: Any) -> Recipe:
        """The same recipe with these settings changed; None leaves a setting as it is."""
        given = {name: value for name, value in changes.items() if value is not None}
        return replace(self, settings={**self.settings, **given})

    @property
    def tells_expected(self) -> bool:
        """Whether it can be told what accuracy to expect of it: an oracle has nothing to expect."""
        return not (self.oracle or self.regression)

    def words(self) -> dict[str, Any]:
        """The settings as JSON values."""
        words = {name: plain(value) for name, value in self.settings.items()}
        if self.networks is not None:
            words["networks"] = {k: plain(v) for k, v in asdict(self.networks).items()}
        return words

    def model(self, seed: int, callbacks: Sequence[Callback] = ()) -> Any:
        """The estimator, not fitted yet."""
        encoder = self._encoder(seed)
        return self._kind(**self.settings, encoder=encoder, random_state=seed, callbacks=callbacks)

    def keep(self, model: Any, folder: Path) -> None:
        """Leaves the fitted estimator in the run's folder."""
        model.save(folder / MODEL)

    def load(self, folder: Path) -> Any:
        """The estimator that a run left in its folder."""
        return self._kind.load(folder / MODEL, encoder=self._encoder(0))

    @property
    def _kind(self) -> type[CIDAClassifier] | type[CIDARegressor]:
        return CIDARegressor if self.regression else CIDAClassifier

    def _encoder(self, seed: int) -> nn.Module | None:
        networks: Networks | None = self.networks
        if networks is None:
            return None
        return networks.encoder(self.settings.get("space") or Line(), seed)


@dataclass(frozen=True)
class Preset:
    """Settings and networks that all methods of a table share, and what single ones change.

    ``whole`` has recipes of methods that are not ours, as they are.
    """

    settings: Settings
    of_method: Mapping[str, Settings] = field(default_factory=dict)
    networks: Any = None
    protocol: str = ""
    networks_of: Mapping[str, Any] = field(default_factory=dict)
    whole: Mapping[str, Recipe] = field(default_factory=dict)


@dataclass(frozen=True)
class Benchmark:
    """An experiment: data to draw, methods, presets, and published numbers to stand beside ours.

    ``draw(seed, protocol)`` gives the data. ``domains`` are the classes that categorical methods
    make of u: how many, or the middle of each. ``bins`` is for the histogram head, ``cua_stages``
    for CUA, which goes through one target bin after another. ``download`` names data to fetch.
    A name such as sleep-intra/sof-extrapolation is of a task among several; ``title`` is how tables
    call it. Where the data can be a user's own, ``draw`` also takes their folder.
    """

    name: str
    draw: Callable[..., Sample]
    methods: Sequence[str]
    presets: Mapping[str, Preset]
    protocols: Mapping[str, str]
    bins: int
    domains: int | Sequence[float]
    cua_stages: int
    download: str | None = None
    records: Mapping[str, Record] = field(default_factory=dict)
    title: str = ""
    discriminator_hidden: tuple[int, ...] = (128, 128, 128)
    regression: bool = False

    @property
    def task(self) -> str:
        """What comes after the experiment's name, where it has several tasks."""
        return self.name.partition("/")[2]


def recipes(benchmark: Benchmark, preset: str) -> dict[str, Recipe]:
    """All methods of the benchmark's tables, in their order, by name."""
    chosen = benchmark.presets[preset]
    found = {}
    for method in benchmark.methods:
        if method in chosen.whole:
            found[method] = chosen.whole[method]
            continue
        title, own = METHODS[method]
        settings = {**chosen.settings, **own(benchmark), **chosen.of_method.get(method, {})}
        networks = chosen.networks_of.get(method, chosen.networks)
        oracle = method == "oracle"
        found[method] = Recipe(method, title, settings, networks, oracle, benchmark.regression)
    return found


def _with(**settings: Any) -> Callable[[Benchmark], Settings]:
    return lambda benchmark: settings


def _head(kind: type[Discriminator], **settings: Any) -> Callable[[Benchmark], Settings]:
    """A head of the benchmark's depth; games with an adversary of their own take its body."""
    return lambda benchmark: {
        "discriminator": kind(hidden=benchmark.discriminator_hidden),
        **settings,
    }


def _domains(**settings: Any) -> Callable[[Benchmark], Settings]:
    """Each domain a class of its own: categorical adaptation."""
    return lambda benchmark: {
        "discriminator": Histogram(
            bins=benchmark.domains, kernel=0, hidden=benchmark.discriminator_hidden
        ),
        **settings,
    }


def _histogram(**settings: Any) -> Callable[[Benchmark], Settings]:
    return lambda benchmark: {
        "discriminator": Histogram(bins=benchmark.bins, hidden=benchmark.discriminator_hidden),
        **settings,
    }


def _cua(benchmark: Benchmark) -> Settings:
    return _head(Histogram, game="cua", stages=benchmark.cua_stages)(benchmark)


# What makes each method what it is, whatever the preset.
METHODS: dict[str, tuple[str, Callable[[Benchmark], Settings]]] = {
    "source-only": ("Source-Only", _with(discriminator=None)),
    "source-only-windows": ("Source-Only, windows along u", _with(discriminator=None)),
    "source-only-along": ("Source-Only, norms along u", _with(discriminator=None)),
    "adda": ("ADDA", _head(Histogram, game="adda")),
    "dann-merged": ("DANN (1 target domain)", _head(Histogram, game="dann")),
    "dann": ("DANN", _domains()),
    "cdann": ("CDANN", _domains(game="conditional")),
    "mdd": ("MDD", _head(Histogram, game="mdd")),
    "cua": ("CUA", _cua),
    "cida": ("CIDA (L2)", _head(L2)),
    "cida-l1": ("CIDA (L1)", _head(L1)),
    "pcida": ("PCIDA (Gaussian)", _head(Gaussian)),
    "mixture": ("PCIDA (mixture)", _head(Mixture)),
    "skew": ("Skew-normal", _head(SkewNormal)),
    "flow": ("Flow", _head(Flow)),
    "von-mises": ("Von Mises", _head(VonMises)),
    "von-mises-mixture": ("Von Mises mixture", _head(VonMisesMixture)),
    "histogram": ("Histogram head", _histogram()),
    "conditional": ("Histogram head, conditional", _histogram(game="conditional")),
    "given-prediction": (
        "Histogram head, given the prediction",
        _histogram(game="given-prediction"),
    ),
    "distance-correlation": ("Distance correlation", _with(game="distance-correlation")),
    "hsic": ("HSIC", _with(game="hsic")),
    "histogram-line": ("Histogram head, u on a line", _histogram(space=Line())),
    "default": ("Default", _with()),
    "restarts": ("Default, best of 4", _with(restarts=4)),
    "oracle": ("Oracle (all labels)", _with(discriminator=None)),
}
