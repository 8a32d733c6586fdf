"""A bank of runs, good and bad: which validator finds the good ones without target labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from cida.data import IndexedDataset
from cida.datasets import IndexedData, make_circle, make_hours, make_rotating_moons, make_sine
from cida.discriminators import Histogram
from cida.experiments.display_rows import DisplayRows
from cida.experiments.folder_files import load_recipes
from cida.experiments.spec import MethodSettings, Recipe, TaskSpec
from cida.experiments.task_data import DatasetTaskData, ScoredRows, bin_score_to_dict, hash_arrays
from cida.indexing import evenly_spaced
from cida.metrics import accuracy, score_by_bin
from cida.runs.snapshot import MAX_SNAPSHOT_ROWS
from cida.selection.source_ranges import nearest_source_third
from cida.spaces import Line, Periodic, Space
from cida.training import seeded

DataMaker = Callable[..., IndexedData]
LEAVE_RANGE_OUT = "leave-range-out"
HELD_OUT_EVERY = 10  # one source row in so many is not trained on, for validators that ask for such
N_SELECTION_BINS = 20


@dataclass(frozen=True)
class SelectionTaskData(DatasetTaskData):
    """Rows to train on, their space, and target rows to score on."""

    name: str
    task: str
    dataset: IndexedDataset
    space: Space
    scored_rows: ScoredRows

    @property
    def held_out_mask(self) -> Tensor:
        """Source rows whose labels are not trained on."""
        mask = torch.zeros(len(self.dataset), dtype=torch.bool)
        mask[self.dataset.source_rows[::HELD_OUT_EVERY]] = True
        return mask

    def training_dataset(self, oracle: bool = False) -> IndexedDataset:
        """What every run is trained on."""
        return self.dataset.with_hidden_labels(self.held_out_mask)

    def evaluate(self, model: Any) -> dict[str, Any]:
        """Beside accuracies, how the same recipe does on the source range that it is not shown."""
        is_correct = self.predict_correctness(model).astype(float)
        u, ones = torch.from_numpy(self.scored_rows.u), np.ones(len(is_correct))
        cells = score_by_bin(self.space, u, ones, is_correct, N_SELECTION_BINS, accuracy)
        dataset = self.training_dataset()
        hidden = nearest_source_third(self.space, dataset.u, dataset.labelled)
        refitted = clone(model).fit_dataset(dataset.with_hidden_labels(hidden))
        held_out_score = self._accuracy_on(refitted, hidden.nonzero()[:, 0])
        return {
            "source_score": self._accuracy_on(model, dataset.source_rows),
            "target_score": float(is_correct.mean()),
            "all_score": float(is_correct.mean()),
            "by_index": [bin_score_to_dict(cell) for cell in cells],
            "extra_metrics": {LEAVE_RANGE_OUT: held_out_score},
            "task": self.task,
        }

    def predict_correctness(self, model: Any) -> np.ndarray:
        """Which of the scored rows are predicted right; here target labels are read."""
        rows = self.scored_rows
        return np.asarray(model.predict(rows.x, domain_index=rows.u) == rows.y)

    def fingerprint(self) -> str:
        rows = self.dataset
        return hash_arrays(*(t.numpy() for t in (rows.x, rows.y, rows.u)), self.scored_rows.x)

    def display_rows(self) -> DisplayRows:
        rows, n_each = self.scored_rows, MAX_SNAPSHOT_ROWS // 2
        source = self.dataset.source_rows
        source = source[evenly_spaced(len(source), n_each)]
        scored = evenly_spaced(len(rows.u), n_each).numpy()
        with seeded(0):
            batch = self.dataset[source]
        x, y, u = (
            np.concatenate([dealt.numpy(), stored[scored]])
            for dealt, stored in ((batch.x, rows.x), (batch.y, rows.y), (batch.u, rows.u))
        )
        return DisplayRows(x, u, np.arange(len(u)) < len(source), y, space=self.space)

    def summary(self, title: str) -> str:
        """How many rows there are."""
        n_source_rows = len(self.dataset.source_rows)
        return (
            f"{title}: {n_source_rows:,} source rows, one in {HELD_OUT_EVERY} held out, "
            f"{len(self.dataset) - n_source_rows:,} target rows without labels."
        )

    def _accuracy_on(self, model: Any, row_numbers: Tensor) -> float:
        with seeded(0):  # rows may be drawn as they are dealt
            batch = self.dataset[row_numbers]
        predicted = model.predict(batch.x.numpy(), domain_index=batch.u.numpy())
        return accuracy(batch.y.numpy(), predicted)


def _draw_generated(
    make_data: DataMaker, space: Space, task: str, seed: int, protocol: str
) -> SelectionTaskData:
    data = make_data(seed=seed)
    x = ((data.x - data.x.mean(0)) / data.x.std(0)).astype(np.float32)
    u, target = data.u.reshape(len(data.u), -1), ~data.source
    dataset = IndexedDataset(*map(torch.from_numpy, (x, data.y, u, data.source)))
    scored = ScoredRows(x[target], data.y[target], u[target])
    return SelectionTaskData(data.name, task, dataset, space.fit(dataset.u), scored)


def _draw_from_task(other: TaskSpec, task: str, seed: int, protocol: str) -> SelectionTaskData:
    """Of another experiment, whose data know their training set, space and scored target rows."""
    data: Any = other.draw_data(seed, protocol)
    dataset = data.training_dataset()
    space = data.space.fit(dataset.u)
    return SelectionTaskData(data.name, task, dataset, space, data.scored_target())


HEAD_TITLES = {"l2": "L2", "gaussian": "Gaussian", "histogram": "Histogram"}
PAPER_LAMBDAS = (0.2, 0.5, 1.0, 2.0, 5.0)  # the paper's
HEAD_AND_LAMBDA = {f"{head}-{v:g}": (head, v) for head in HEAD_TITLES for v in PAPER_LAMBDAS}
RECIPES = load_recipes(__package__)
PRESET = RECIPES.presets["best"]


def _selection_task(
    task: str,
    title: str,
    draw: Callable[..., SelectionTaskData],
    settings: MethodSettings,
    networks: Any = None,
    head_settings: Mapping[str, MethodSettings] | None = None,
) -> TaskSpec:
    name, bank = f"selection/{task}", {}
    for method, (head, value) in HEAD_AND_LAMBDA.items():
        own = {"discriminator": head, "lambda_d": value, **(head_settings or {}).get(head, {})}
        title_of_method = f"{HEAD_TITLES[head]}, {value:g}"
        bank[method] = Recipe(method, title_of_method, {**settings, **own}, networks)
    presets = {"best": replace(PRESET, settings=settings, complete_recipes=bank)}
    return TaskSpec(name, partial(draw, name), (*bank,), presets, RECIPES.protocols, title=title)


def _generated_task(task: str, title: str, make_data: DataMaker, space: Space) -> TaskSpec:
    draw = partial(_draw_generated, make_data, space)
    return _selection_task(task, title, draw, {**PRESET.settings, "space": space})


def make_selection_tasks(tasks: Mapping[str, TaskSpec]) -> tuple[TaskSpec, ...]:
    """The tasks of the bank, two of them on data of these."""
    digits, nhanes = tasks["rotating-digits"], tasks["nhanes"]
    preset = digits.presets["best"]
    heads: dict[str, MethodSettings] = {  # as in the experiment on digits
        "l2": {"space": Line()},
        "gaussian": {"space": Line()},
        "histogram": {"discriminator": Histogram(bins=digits.n_histogram_bins)},
    }
    digits_task = _selection_task(
        "rotating-digits",
        "Rotating digits",
        partial(_draw_from_task, digits),
        {**preset.settings, "steps": 600},
        preset.networks,
        heads,
    )
    draw = partial(_draw_from_task, nhanes)
    nhanes_task = _selection_task("nhanes", "NHANES", draw, PRESET.settings)
    return (
        _generated_task("circle", "Circle", make_circle, Line()),
        _generated_task("sine", "Sine", make_sine, Line()),
        digits_task,
        replace(nhanes_task, download=nhanes.download),
        _generated_task("moons", "Turning moons", make_rotating_moons, Line()),
        _generated_task("hours", "Hours", make_hours, Periodic(24)),
    )
