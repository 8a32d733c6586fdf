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

from cida.data import IndexedDataset
from cida.datasets import IndexedData, make_circle, make_hours, make_rotating_moons, make_sine
from cida.discriminators import Histogram
from cida.experiments.display_rows import DisplayRows
from cida.experiments.fetch import RemoteDataset
from cida.experiments.real_tables.nhanes import NHANES_DATASET
from cida.experiments.real_tables.table_tasks import NHANES, TableTaskData
from cida.experiments.recipe_networks import ImageNetworks
from cida.experiments.rotating_mnist.rotating_tasks import (
    DIGITS_NETWORKS,
    DIGITS_SETTINGS,
    ROTATING_DIGITS,
    RotatingTaskData,
)
from cida.experiments.spec import MethodSettings, Preset, Recipe, TaskSpec
from cida.experiments.task_data import N_EXPECTED_SCORE_BINS, bin_score_to_dict, hash_arrays
from cida.indexing import evenly_spaced
from cida.metrics import accuracy, score_by_bin
from cida.runs.snapshot import MAX_SNAPSHOT_ROWS
from cida.selection.expected_score import ExpectedScore
from cida.selection.source_ranges import nearest_source_third
from cida.spaces import Line, Periodic, Space
from cida.training import seeded

__all__ = ["LEAVE_RANGE_OUT", "SELECTION", "ScoredRows", "SelectionTaskData"]

Array = np.ndarray[Any, Any]

LEAVE_RANGE_OUT = "leave-range-out"
HELD_OUT_EVERY = 10  # one source row in so many is not trained on, for validators that ask for such
N_SELECTION_BINS = 20


@dataclass(frozen=True)
class ScoredRows:
    """Target rows with their truth, which serves for scoring alone."""

    x: Array
    y: Array
    u: Array


@dataclass(frozen=True)
class SelectionTaskData:
    """Rows to train on, their space, and target rows to score on."""

    name: str
    task: str
    dataset: IndexedDataset
    space: Space
    scored_rows: ScoredRows

    is_simulated = False

    @property
    def held_out_mask(self) -> Tensor:
        """Source rows whose labels are not trained on."""
        mask = torch.zeros(len(self.dataset), dtype=torch.bool)
        mask[self.dataset.source_rows[::HELD_OUT_EVERY]] = True
        return mask

    @cached_property
    def training_dataset(self) -> IndexedDataset:
        """What every run is trained on."""
        return self.dataset.with_hidden_labels(self.held_out_mask)

    def train(self, model: Any, oracle: bool) -> None:
        model.fit_dataset(self.training_dataset)

    def evaluate(self, model: Any) -> dict[str, Any]:
        """Beside accuracies, how the same recipe does on the source range that it is not shown."""
        is_correct = self.predict_correctness(model)
        u = torch.from_numpy(self.scored_rows.u)
        ones = np.ones(len(is_correct))
        cells = score_by_bin(
            self.space, u, ones, is_correct.astype(float), N_SELECTION_BINS, accuracy
        )
        source = self._accuracy_on(model, self.training_dataset.source_rows)
        return {
            "source_score": source,
            "target_score": float(is_correct.mean()),
            "all_score": float(is_correct.mean()),
            "by_index": [bin_score_to_dict(cell) for cell in cells],
            "extra_metrics": {LEAVE_RANGE_OUT: self._leave_range_out_score(model)},
            "task": self.task,
        }

    def predict_correctness(self, model: Any) -> Array:
        """Which of the scored rows are predicted right; here target labels are read."""
        return np.asarray(
            model.predict(self.scored_rows.x, domain_index=self.scored_rows.u) == self.scored_rows.y
        )

    def fingerprint(self) -> str:
        rows = self.dataset
        return hash_arrays(*(t.numpy() for t in (rows.x, rows.y, rows.u)), self.scored_rows.x)

    def display_rows(self) -> DisplayRows:
        source_rows = self.dataset.source_rows
        source_sample = source_rows[evenly_spaced(len(source_rows), MAX_SNAPSHOT_ROWS // 2)]
        scored_sample = evenly_spaced(len(self.scored_rows.u), MAX_SNAPSHOT_ROWS // 2).numpy()
        with seeded(0):
            batch = self.dataset[source_sample]
        parts = zip(
            (batch.x, batch.y, batch.u),
            (self.scored_rows.x, self.scored_rows.y, self.scored_rows.u),
            strict=True,
        )
        x, y, u = (
            np.concatenate([source_values.numpy(), scored_values[scored_sample]])
            for source_values, scored_values in parts
        )
        return DisplayRows(x, u, np.arange(len(u)) < len(source_sample), y, space=self.space)

    def expected_scores(self, model: Any) -> list[ExpectedScore]:
        cells: list[ExpectedScore] = model.expected_dataset_score(
            self.training_dataset, N_EXPECTED_SCORE_BINS
        )
        return cells

    def summary(self, title: str) -> str:
        """How many rows there are."""
        n_source_rows = len(self.dataset.source_rows)
        return (
            f"{title}: {n_source_rows:,} source rows, one in {HELD_OUT_EVERY} held out, "
            f"{len(self.dataset) - n_source_rows:,} target rows without labels."
        )

    def _leave_range_out_score(self, model: Any) -> float:
        hidden = nearest_source_third(
            self.space, self.training_dataset.u, self.training_dataset.labelled
        )
        refitted = clone(model).fit_dataset(self.training_dataset.with_hidden_labels(hidden))
        return self._accuracy_on(refitted, hidden.nonzero()[:, 0])

    def _accuracy_on(self, model: Any, row_numbers: Tensor) -> float:
        with seeded(0):  # rows may be drawn as they are dealt
            batch = self.dataset[row_numbers]
        predicted = model.predict(batch.x.numpy(), domain_index=batch.u.numpy())
        return accuracy(batch.y.numpy(), predicted)


def _draw_from_generator(
    task: str, make_data: Callable[..., IndexedData], space: Space
) -> Callable[..., SelectionTaskData]:
    def draw(seed: int, protocol: str) -> SelectionTaskData:
        data = make_data(seed=seed)
        x = ((data.x - data.x.mean(0)) / data.x.std(0)).astype(np.float32)
        u = data.u.reshape(len(data.u), -1)
        tensors = (torch.from_numpy(each) for each in (x, data.y, u, data.source))
        target = ~data.source
        scored = ScoredRows(x[target], data.y[target], u[target])
        return SelectionTaskData(
            data.name, task, IndexedDataset(*tensors), space.fit(torch.from_numpy(u)), scored
        )

    return draw


def _draw_from_table(task: str, table: TaskSpec) -> Callable[..., SelectionTaskData]:
    def draw(seed: int, protocol: str) -> SelectionTaskData:
        task_data = table.draw_data(seed, protocol)
        assert isinstance(task_data, TableTaskData)
        tensors = (
            torch.from_numpy(e)
            for e in (task_data.x, task_data.y, task_data.u, task_data.source_mask)
        )
        scored_mask = task_data.scored_mask
        scored = ScoredRows(
            task_data.x[scored_mask], task_data.y[scored_mask], task_data.u[scored_mask]
        )
        space = task_data.space.fit(torch.from_numpy(task_data.u))
        return SelectionTaskData(task_data.name, task, IndexedDataset(*tensors), space, scored)

    return draw


def _draw_from_digits(task: str, digits: TaskSpec) -> Callable[..., SelectionTaskData]:
    def draw(seed: int, protocol: str) -> SelectionTaskData:
        task_data = digits.draw_data(seed, protocol)
        assert isinstance(task_data, RotatingTaskData)
        scored_dataset = task_data.scored_dataset()
        with seeded(0):
            target = (scored_dataset.u[:, 0] > 45).nonzero()[:, 0]
            batch = scored_dataset[target]
        scored = ScoredRows(batch.x.numpy(), batch.y.numpy(), batch.u.numpy())
        truth = task_data.scored_digits.labels.numpy()
        scored = ScoredRows(
            scored.x, np.tile(truth, len(scored_dataset) // len(truth))[target], scored.u
        )
        dataset = task_data.training_dataset()
        return SelectionTaskData(
            task_data.name, task, dataset, Periodic(360).fit(dataset.u), scored
        )

    return draw


# --- the recipes ---------------------------------------------------------------------------------

HEAD_TITLES = {"l2": "L2", "gaussian": "Gaussian", "histogram": "Histogram"}
PAPER_LAMBDAS = (0.2, 0.5, 1.0, 2.0, 5.0)  # the paper's
HEAD_BY_METHOD = {f"{head}-{value:g}": head for head in HEAD_TITLES for value in PAPER_LAMBDAS}
SELECTION_PROTOCOLS = {
    "clean": "all target rows are trained on without labels and, of tables one half, of digits "
    "other images, scored",
    "development": "of tables the other half of the target rows, of digits training images held "
    "out, are scored",
}
# As in the paper u is an input of the encoder: runs come out good and bad.
POINT_SETTINGS: MethodSettings = {"coordinates": "learned", "capacity": "mlp", "steps": 2000}
IMAGE_SETTINGS: MethodSettings = {**DIGITS_SETTINGS, "steps": 600}


def _build_bank(
    settings: MethodSettings, networks: ImageNetworks | None = None
) -> Mapping[str, Recipe]:
    recipe_by_method = {}
    for head, title in HEAD_TITLES.items():
        for lambda_d in PAPER_LAMBDAS:
            method = f"{head}-{lambda_d:g}"
            method_settings = {"discriminator": head, "lambda_d": lambda_d}
            if networks is not None:  # as in the experiment on digits
                discriminator_by_head = {
                    "histogram": Histogram(bins=ROTATING_DIGITS.n_histogram_bins)
                }
                method_settings |= {"discriminator": discriminator_by_head.get(head, head)}
                method_settings |= {} if head == "histogram" else {"space": Line()}
            recipe_by_method[method] = Recipe(
                method, f"{title}, {lambda_d:g}", {**settings, **method_settings}, networks
            )
    return recipe_by_method


def _selection_task(
    task: str,
    title: str,
    draw: Callable[[str], Callable[..., SelectionTaskData]],
    settings: MethodSettings,
    networks: ImageNetworks | None = None,
    download: RemoteDataset | None = None,
) -> TaskSpec:
    name = f"selection/{task}"
    complete_recipes = _build_bank(settings, networks)
    return TaskSpec(
        name=name,
        draw_data=draw(name),
        methods=tuple(complete_recipes),
        presets={"best": Preset(settings, protocol="clean", complete_recipes=complete_recipes)},
        protocols=SELECTION_PROTOCOLS,
        n_histogram_bins=30,
        domain_classes=30,
        n_cua_stages=20,
        download=download,
        title=title,
    )


def _generated_task(
    task: str, title: str, make_data: Callable[..., IndexedData], space: Space
) -> TaskSpec:
    return _selection_task(
        task,
        title,
        lambda name: _draw_from_generator(name, make_data, space),
        {**POINT_SETTINGS, "space": space},
    )


SELECTION = (
    _generated_task("circle", "Circle", make_circle, Line()),
    _generated_task("sine", "Sine", make_sine, Line()),
    _selection_task(
        "rotating-digits",
        "Rotating digits",
        lambda name: _draw_from_digits(name, ROTATING_DIGITS),
        IMAGE_SETTINGS,
        DIGITS_NETWORKS,
    ),
    _selection_task(
        "nhanes",
        "NHANES",
        lambda name: _draw_from_table(name, NHANES[0]),
        POINT_SETTINGS,
        download=NHANES_DATASET,
    ),
    _generated_task("moons", "Turning moons", make_rotating_moons, Line()),
    _generated_task("hours", "Hours", make_hours, Periodic(24)),
)
