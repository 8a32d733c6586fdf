"""Recipes: every choice of one method in one experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from torch import nn

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
from cida.estimators.saving import to_json_value
from cida.experiments.display_rows import DisplayRows
from cida.experiments.published import PublishedScore
from cida.selection.expected_score import ExpectedScore
from cida.spaces import Line, Space
from cida.training import Callback

__all__ = [
    "DEFAULT_COMPUTE",
    "METHODS",
    "PAPER_SETTINGS",
    "ComputeConfig",
    "NetworkBuilder",
    "Preset",
    "Recipe",
    "TaskData",
    "TaskSpec",
    "build_recipes",
]

MethodSettings = Mapping[str, Any]
MODEL_FILE_NAME = "model.safetensors"

# Section 5 and the supplement of the paper: Adam at 1e-4, lambda_d = 2 for all, batch normalisation
# in predictor and discriminator, u an input of the encoder; no ceiling, curriculum or averaging.
PAPER_SETTINGS: MethodSettings = {
    "coordinates": "learned",
    "batch_norm": True,
    "lambda_d": 2.0,
    "discriminator_steps": 1,
    "ceiling": False,
    "curriculum": 0.0,
    "n_balance_bins": 1,
    "learning_rate": 1e-4,
    "schedule": "constant",
    "ema_decay": 0.0,
}


class NetworkBuilder(Protocol):
    """An encoder that is not the estimator's own: a dataclass of plain values."""

    def encoder(self, space: Space, seed: int) -> nn.Module:
        """The encoder for an index in this space, its weights drawn with the seed."""


class TaskData(Protocol):
    """What one seed draws of a benchmark's data: to train on, and to score on."""

    @property
    def name(self) -> str:
        """The data's name."""

    def train(self, model: CIDAClassifier, oracle: bool) -> None:
        """Fits the model; target labels are there for an oracle alone."""

    def evaluate(self, model: CIDAClassifier) -> dict[str, Any]:
        """The accuracies of a `Row`; here target labels are read."""

    def fingerprint(self) -> str:
        """A short hash: equal for equal data."""

    def display_rows(self) -> DisplayRows:
        """Rows for a report to show, the same for every model."""

    def expected_scores(self, model: CIDAClassifier) -> Sequence[ExpectedScore]:
        """The accuracy to expect along u by a second training; no target label is read."""


@dataclass(frozen=True)
class ComputeConfig:
    """Where and how the encoders of all recipes are trained."""

    device: str = "cpu"
    precision: str = "float32"
    compile: bool = False

    def non_default_settings(self) -> dict[str, Any]:
        """Of an estimator: those that are not as usual."""
        defaults = asdict(DEFAULT_COMPUTE)
        return {name: value for name, value in asdict(self).items() if value != defaults[name]}

    def to_flags(self) -> list[str]:
        """The same, to be typed."""
        return [
            f"--{k}" if v is True else f"--{k} {v}" for k, v in self.non_default_settings().items()
        ]


DEFAULT_COMPUTE = ComputeConfig()


@dataclass(frozen=True)
class Recipe:
    """A method's name, how tables call it, and the settings of its estimator.

    An ``oracle`` is trained on the labels of all rows: the best that could be hoped for.
    """

    method: str
    title: str
    settings: MethodSettings = field(default_factory=dict)
    networks: Any = None
    oracle: bool = False
    regression: bool = False

    def with_settings(self, **changes: Any) -> Recipe:
        """The same recipe with these settings changed; None leaves a setting as it is."""
        new_settings = {name: value for name, value in changes.items() if value is not None}
        return replace(self, settings={**self.settings, **new_settings})

    @property
    def has_expected_score(self) -> bool:
        """Whether it can be told what accuracy to expect of it: an oracle has nothing to expect."""
        return not (self.oracle or self.regression)

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON values."""
        settings = {name: to_json_value(value) for name, value in self.settings.items()}
        if self.networks is not None:
            settings["networks"] = {k: to_json_value(v) for k, v in asdict(self.networks).items()}
        return settings

    def build_model(self, seed: int, callbacks: Sequence[Callback] = ()) -> Any:
        """The estimator, not fitted yet."""
        encoder = self._build_encoder(seed)
        return self._estimator_class(
            **self.settings, encoder=encoder, random_state=seed, callbacks=callbacks
        )

    def save_model(self, model: Any, folder: Path) -> None:
        """Leaves the fitted estimator in the run's folder."""
        model.save(folder / MODEL_FILE_NAME)

    def load_model(self, folder: Path) -> Any:
        """The estimator that a run left in its folder."""
        return self._estimator_class.load(folder / MODEL_FILE_NAME, encoder=self._build_encoder(0))

    @property
    def _estimator_class(self) -> type[CIDAClassifier] | type[CIDARegressor]:
        return CIDARegressor if self.regression else CIDAClassifier

    def _build_encoder(self, seed: int) -> nn.Module | None:
        networks: NetworkBuilder | None = self.networks
        if networks is None:
            return None
        return networks.encoder(self.settings.get("space") or Line(), seed)


@dataclass(frozen=True)
class Preset:
    """Settings and networks that all methods of a table share, and what single ones change.

    ``whole`` has recipes of methods that are not ours, as they are.
    """

    settings: MethodSettings
    method_settings: Mapping[str, MethodSettings] = field(default_factory=dict)
    networks: Any = None
    protocol: str = ""
    method_networks: Mapping[str, Any] = field(default_factory=dict)
    complete_recipes: Mapping[str, Recipe] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskSpec:
    """An experiment: data to draw, methods, presets, and published numbers to stand beside ours.

    ``draw(seed, protocol)`` gives the data. ``domains`` are the classes that categorical methods
    make of u: how many, or the middle of each. ``bins`` is for the histogram head, ``cua_stages``
    for CUA, which goes through one target bin after another. ``download`` names data to fetch.
    A name such as sleep-intra/sof-extrapolation is of a task among several; ``title`` is how tables
    call it. Where the data can be a user's own, ``draw`` also takes their folder.
    """

    name: str
    draw_data: Callable[..., TaskData]
    methods: Sequence[str]
    presets: Mapping[str, Preset]
    protocols: Mapping[str, str]
    n_histogram_bins: int
    domain_classes: int | Sequence[float]
    n_cua_stages: int
    download_name: str | None = None
    published_scores: Mapping[str, PublishedScore] = field(default_factory=dict)
    title: str = ""
    discriminator_hidden: tuple[int, ...] = (128, 128, 128)
    regression: bool = False

    @property
    def task_name(self) -> str:
        """What comes after the experiment's name, where it has several tasks."""
        return self.name.partition("/")[2]


def build_recipes(task: TaskSpec, preset_name: str) -> dict[str, Recipe]:
    """All methods of the benchmark's tables, in their order, by name."""
    preset_values = task.presets[preset_name]
    recipe_by_method = {}
    for method in task.methods:
        if method in preset_values.complete_recipes:
            recipe_by_method[method] = preset_values.complete_recipes[method]
            continue
        title, method_settings = METHODS[method]
        settings = {
            **preset_values.settings,
            **method_settings(task),
            **preset_values.method_settings.get(method, {}),
        }
        networks = preset_values.method_networks.get(method, preset_values.networks)
        oracle = method == "oracle"
        recipe_by_method[method] = Recipe(
            method, title, settings, networks, oracle, task.regression
        )
    return recipe_by_method


def _fixed_settings(**settings: Any) -> Callable[[TaskSpec], MethodSettings]:
    return lambda benchmark: settings


def _head_settings(
    discriminator_class: type[Discriminator], **settings: Any
) -> Callable[[TaskSpec], MethodSettings]:
    """A head of the benchmark's depth; games with an adversary of their own take its body."""
    return lambda benchmark: {
        "discriminator": discriminator_class(hidden=benchmark.discriminator_hidden),
        **settings,
    }


def _categorical_settings(**settings: Any) -> Callable[[TaskSpec], MethodSettings]:
    """Each domain a class of its own: categorical adaptation."""
    return lambda benchmark: {
        "discriminator": Histogram(
            bins=benchmark.domain_classes, kernel=0, hidden=benchmark.discriminator_hidden
        ),
        **settings,
    }


def _histogram_settings(**settings: Any) -> Callable[[TaskSpec], MethodSettings]:
    return lambda benchmark: {
        "discriminator": Histogram(
            bins=benchmark.n_histogram_bins, hidden=benchmark.discriminator_hidden
        ),
        **settings,
    }


def _cua_settings(task: TaskSpec) -> MethodSettings:
    return _head_settings(Histogram, game="cua", stages=task.n_cua_stages)(task)


# What makes each method what it is, whatever the preset.
METHODS: dict[str, tuple[str, Callable[[TaskSpec], MethodSettings]]] = {
    "source-only": ("Source-Only", _fixed_settings(discriminator=None)),
    "source-only-windows": ("Source-Only, windows along u", _fixed_settings(discriminator=None)),
    "source-only-along": ("Source-Only, norms along u", _fixed_settings(discriminator=None)),
    "adda": ("ADDA", _head_settings(Histogram, game="adda")),
    "dann-merged": ("DANN (1 target domain)", _head_settings(Histogram, game="dann")),
    "dann": ("DANN", _categorical_settings()),
    "cdann": ("CDANN", _categorical_settings(game="conditional")),
    "mdd": ("MDD", _head_settings(Histogram, game="mdd")),
    "cua": ("CUA", _cua_settings),
    "cida": ("CIDA (L2)", _head_settings(L2)),
    "cida-l1": ("CIDA (L1)", _head_settings(L1)),
    "pcida": ("PCIDA (Gaussian)", _head_settings(Gaussian)),
    "mixture": ("PCIDA (mixture)", _head_settings(Mixture)),
    "skew": ("Skew-normal", _head_settings(SkewNormal)),
    "flow": ("Flow", _head_settings(Flow)),
    "von-mises": ("Von Mises", _head_settings(VonMises)),
    "von-mises-mixture": ("Von Mises mixture", _head_settings(VonMisesMixture)),
    "histogram": ("Histogram head", _histogram_settings()),
    "conditional": ("Histogram head, conditional", _histogram_settings(game="conditional")),
    "given-prediction": (
        "Histogram head, given the prediction",
        _histogram_settings(game="given-prediction"),
    ),
    "distance-correlation": ("Distance correlation", _fixed_settings(game="distance-correlation")),
    "hsic": ("HSIC", _fixed_settings(game="hsic")),
    "histogram-line": ("Histogram head, u on a line", _histogram_settings(space=Line())),
    "default": ("Default", _fixed_settings()),
    "restarts": ("Default, best of 4", _fixed_settings(restarts=4)),
    "oracle": ("Oracle (all labels)", _fixed_settings(discriminator=None)),
}
