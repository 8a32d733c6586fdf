"""Recipes: every choice of one method in one experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from torch import nn

from cida.discriminators import DISCRIMINATORS
from cida.estimators import CIDAClassifier, CIDARegressor
from cida.estimators.model_file import to_json_value
from cida.experiments.display_rows import DisplayRows
from cida.experiments.fetch import RemoteDataset
from cida.methods import METHODS, HeadBins, Method, Role
from cida.runs.records import ExperimentText, PublishedScore, TaskRecord
from cida.runs.result_table import ResultTable
from cida.selection.expected_score import ExpectedScore
from cida.spaces import Line, Space
from cida.training import Callback

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

    @property
    def is_simulated(self) -> bool:
        """Whether it stands for real data that is not there."""

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


DEFAULT_COMPUTE = ComputeConfig()


@dataclass(frozen=True)
class Recipe:
    """A method's name, how tables call it, and the settings of its estimator.

    An oracle is trained on the labels of all rows: the best that could be hoped for.
    """

    method: str
    title: str
    settings: MethodSettings = field(default_factory=dict)
    networks: Any = None
    role: Role = Role.ADAPTIVE
    regression: bool = False

    def with_settings(self, **changes: Any) -> Recipe:
        """The same recipe with these settings changed; None leaves a setting as it is."""
        new_settings = {name: value for name, value in changes.items() if value is not None}
        return replace(self, settings={**self.settings, **new_settings})

    @property
    def oracle(self) -> bool:
        """Whether it is trained on target labels too."""
        return self.role is Role.ORACLE

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
        settings = {**self.settings, "random_state": seed, "callbacks": callbacks}
        return self._estimator_class(**settings, encoder=self._build_encoder(seed))

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
        space: Space = self.settings.get("space") or Line()
        return None if networks is None else networks.encoder(space, seed)


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
    """A task: data to draw, methods, presets, and published numbers to stand beside ours.

    ``draw_data(seed, protocol)`` gives the data. ``domain_classes`` are the classes that
    categorical methods make of u: how many, or the middle of each. ``n_histogram_bins`` is for the
    histogram head, ``n_cua_stages`` for CUA, which goes through one target bin after another.
    ``download`` is data to fetch first. A name such as sleep-intra/sof-extrapolation is of a task
    among several; ``title`` is how tables call it. Where the data can be a user's own,
    ``draw_data`` also takes their folder.
    """

    name: str
    draw_data: Callable[..., TaskData]
    methods: Sequence[str]
    presets: Mapping[str, Preset]
    protocols: Mapping[str, str]
    n_histogram_bins: int = 30
    domain_classes: int | Sequence[float] = 30
    n_cua_stages: int = 20
    download: RemoteDataset | None = None
    published_scores: Mapping[str, PublishedScore] = field(default_factory=dict)
    title: str = ""
    discriminator_hidden: tuple[int, ...] = (128, 128, 128)
    regression: bool = False

    @property
    def task_name(self) -> str:
        """What comes after the experiment's name, where it has several tasks."""
        return self.name.partition("/")[2]

    @property
    def metric(self) -> str:
        """What its scores are."""
        return "r2" if self.regression else "accuracy"

    @property
    def record(self) -> TaskRecord:
        """What a report needs to know of it."""
        title = self.title or self.name
        return TaskRecord(self.name, title, tuple(self.methods), self.published_scores)


class Layout(StrEnum):
    """How the results of an experiment are laid out."""

    ONE_TASK = "one task"  # a line for each method, with all that is known of it
    TASKS_AS_ROWS = "tasks as rows"
    METHODS_AS_ROWS = "methods as rows"


@dataclass(frozen=True)
class PreparationRequest:
    """What is asked of `Experiment.prepare`: data for these tasks, before any of them is run."""

    tasks: Sequence[TaskSpec]
    seed: int
    protocol: str
    root: Path | None
    n_jobs: int
    on_progress: Callable[[str, int, int], None]


@dataclass(frozen=True)
class Analysis:
    """What an experiment makes of its runs beyond scores: tables by title, sentences, JSON files.

    ``wide_columns`` of the tables are left out where there is little room.
    """

    tables: Mapping[str, ResultTable] = field(default_factory=dict)
    sentences: Sequence[str] = ()
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    wide_columns: Sequence[str] = ()


@dataclass(frozen=True)
class Experiment:
    """A table of results to reproduce: its tasks, and how their results are shown.

    All tasks have the same methods, presets and protocols. ``figures_module`` has the function
    ``draw_figures(data_by_task, job_results, folder)``, which returns files by title; it needs
    matplotlib, and is only imported to draw. With ``by_interval`` each interval along u has a
    column. ``prepare`` gets data that no download has; with ``accepts_root`` they may be a user's
    own. ``analyze`` makes more of the finished runs than scores.
    """

    name: str
    tasks: tuple[TaskSpec, ...]
    text: ExperimentText
    figures_module: str
    layout: Layout = Layout.METHODS_AS_ROWS
    by_interval: bool = False
    accepts_root: bool = False
    prepare: Callable[[PreparationRequest], None] | None = None
    analyze: Callable[[Sequence[Any]], Analysis] | None = None


def build_recipes(task: TaskSpec, preset_name: str) -> dict[str, Recipe]:
    """The recipes of all methods of the task's tables, in their order, by name."""
    preset = task.presets[preset_name]
    return {name: _build_recipe(task, preset, name) for name in task.methods}


def _build_recipe(task: TaskSpec, preset: Preset, name: str) -> Recipe:
    if name in preset.complete_recipes:
        return preset.complete_recipes[name]
    method = METHODS[name]
    own = preset.method_settings.get(name, {})
    settings = {**preset.settings, **_method_settings(task, method), **own}
    if "coordinates" in settings:  # a recipe that fixes coordinates fixes the capacity too
        settings = {"capacity": "mlp", **settings}
    networks = preset.method_networks.get(name, preset.networks)
    return Recipe(name, method.title, settings, networks, method.role, task.regression)


def _method_settings(task: TaskSpec, method: Method) -> MethodSettings:
    """The method's settings, its head of the task's depth and with the task's bins."""
    settings = dict(method.settings)
    if settings.get("discriminator") is not None:
        is_histogram = method.head_bins is HeadBins.HISTOGRAM
        bins = {"bins": task.n_histogram_bins if is_histogram else task.domain_classes}
        own = {**({} if method.head_bins is None else bins), **method.head_settings}
        head = DISCRIMINATORS[settings["discriminator"]]
        settings["discriminator"] = head(hidden=task.discriminator_hidden, **own)
    if method.is_staged:
        settings["curriculum_stages"] = task.n_cua_stages
    return settings
