"""Experiments on real tables: NHANES, King County and SUPPORT2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from sklearn.metrics import r2_score

from cida.data import IndexedDataset
from cida.experiments.display_rows import DisplayRows
from cida.experiments.folder_files import load_recipes
from cida.experiments.real_tables import table_data
from cida.experiments.real_tables.table_models import (
    REAL_TABLES,
    ScikitRecipe,
    TableNetworks,
    load_encoded_dataset,
)
from cida.experiments.spec import TaskSpec
from cida.experiments.task_data import (
    DatasetTaskData,
    ScoredRows,
    hash_arrays,
    measure_shift,
    score_predictions,
)
from cida.indexing import evenly_spaced
from cida.metrics import accuracy
from cida.policy import LINEAR_SETTINGS
from cida.runs.snapshot import MAX_SNAPSHOT_ROWS
from cida.spaces import Space, make_line_space

TARGET_SPLIT_SEED = 7
TABLE_BIN_COUNTS = (12, 40)  # along a line, over a map


@dataclass(frozen=True)
class TableTask:
    """What is asked of a data set: the label of each row, and which rows have it in training."""

    dataset_name: str
    make_labels: Callable[[np.ndarray, np.ndarray], np.ndarray]
    source_mask: Callable[[np.ndarray], np.ndarray]
    regression: bool = False


@dataclass(frozen=True)
class TableTaskData(DatasetTaskData):
    """A table to train on, all target rows without labels, and the half of them that is scored."""

    name: str
    task: str
    x: np.ndarray
    y: np.ndarray
    u: np.ndarray
    source_mask: np.ndarray
    scored_mask: np.ndarray
    regression: bool

    @property
    def space(self) -> Space:
        return make_line_space(self.u.shape[1])

    @property
    def truth(self) -> np.ndarray:
        """The labels; numbers in standard deviations of the source's."""
        if not self.regression:
            return self.y
        source = self.y[self.source_mask]
        return np.asarray(((self.y - source.mean()) / source.std()).astype(np.float32))

    def training_dataset(self, oracle: bool = False) -> IndexedDataset:
        """An oracle also has the labels of the target rows that are not scored."""
        labelled = self.source_mask | (~self.scored_mask if oracle else False)
        y = self.truth[:, None] if self.regression else self.y
        return IndexedDataset(*map(torch.from_numpy, (self.x, y, self.u, labelled)))

    def evaluate(self, model: Any) -> dict[str, Any]:
        rows, u = self.source_mask | self.scored_mask, torch.from_numpy(self.u)
        predicted = np.ravel(model.predict(self.x[rows], domain_index=self.u[rows]))
        scores = score_predictions(
            self.space.fit(u),
            u[rows],
            self.source_mask[rows],
            self.truth[rows],
            predicted.astype(np.float64),
            TABLE_BIN_COUNTS[self.u.shape[1] > 1],
            r2_score if self.regression else accuracy,
        )
        return {**scores, "task": self.task}

    def scored_target(self) -> ScoredRows:
        """The target rows that are scored."""
        return ScoredRows(*(part[self.scored_mask] for part in (self.x, self.y, self.u)))

    def display_rows(self) -> DisplayRows:
        rows = np.flatnonzero(self.source_mask | self.scored_mask)
        rows = rows[evenly_spaced(len(rows), MAX_SNAPSHOT_ROWS).numpy()]
        x, u, source, truth = self.x[rows], self.u[rows], self.source_mask[rows], self.truth[rows]
        names = ("latitude", "longitude") if u.shape[1] > 1 else ("age",)
        return DisplayRows(x, u, source, truth, names, space=self.space)

    def fingerprint(self) -> str:
        return hash_arrays(self.x, self.u, self.y, self.scored_mask)

    def summary(self, title: str) -> str:
        """How many rows there are, and whether the balance of labels moves along u."""
        source, u = self.source_mask, torch.from_numpy(self.u)
        shift, suspected = measure_shift(self.space, u, source, self.y)
        shift_text = "moves along u: invariance may hurt" if suspected else "holds along u"
        return (
            f"{title}: {source.sum():,} source rows, {(~source).sum():,} target rows without "
            f"labels, {self.scored_mask.sum():,} of these scored; the balance of source labels "
            f"{shift_text} ({shift:.3f})."
        )


@cache
def _load_labels(table_task: TableTask) -> np.ndarray:
    table = load_encoded_dataset(table_task.dataset_name)
    return table_task.make_labels(table.y, table.u)


def _draw_table(name: str, table_task: TableTask, seed: int, protocol: str) -> TableTaskData:
    """The same rows whatever the seed; a development run scores the other half of the target."""
    table = load_encoded_dataset(table_task.dataset_name)
    source = table_task.source_mask(table.u)
    order = np.random.default_rng(TARGET_SPLIT_SEED).permutation(np.flatnonzero(~source))
    halves = (order[: len(order) // 2], order[len(order) // 2 :])
    scored = np.zeros(len(source), dtype=bool)
    scored[halves[protocol != "development"]] = True
    x, y, regression = table.x, _load_labels(table_task), table_task.regression
    return TableTaskData(table_task.dataset_name, name, x, y, table.u, source, scored, regression)


RECIPES = load_recipes(__package__)
PRESET = RECIPES.presets["best"]


def _table_task(name: str, title: str, index_width: int, table_task: TableTask) -> TaskSpec:
    data, regression = table_task.dataset_name, table_task.regression
    space, networks = {"space": make_line_space(index_width)}, TableNetworks(data)
    linear = "Ridge regression" if regression else "Logistic regression"
    scikit_recipes = [
        ScikitRecipe(
            f"{method}-windows" if windows else method,
            f"{recipe_title}, windows along u" if windows else recipe_title,
            space,
            networks,
            boosting=method == "boosting",
            regression=regression,
            windows=windows,
        )
        for windows in (False, True)
        for method, recipe_title in (("logistic", linear), ("boosting", "Gradient boosting"))
    ]
    without_windows = TableNetworks(data, use_windows=False)
    preset = replace(
        PRESET,
        settings={**LINEAR_SETTINGS, **PRESET.settings, **space},
        networks=networks,
        method_networks=dict.fromkeys(("source-only", "conditional"), without_windows),
        complete_recipes={recipe.method: recipe for recipe in scikit_recipes},
    )
    return TaskSpec(
        name,
        partial(_draw_table, name, table_task),
        *RECIPES._replace(presets={"best": preset}),
        n_histogram_bins=20,
        domain_classes=20,
        download=REAL_TABLES[data][0],
        title=title,
        regression=regression,
    )


def _is_eastern(u: np.ndarray) -> np.ndarray:
    """The eastern third of the houses."""
    return np.asarray(u[:, 1] >= np.quantile(u[:, 1], 2 / 3))


SEX = TableTask("nhanes", lambda y, u: y, lambda u: u[:, 0] <= 20)
DEATH = TableTask("support2", lambda y, u: y, lambda u: u[:, 0] <= 55)
DEAR = TableTask("king-county", table_data.label_above_neighborhood_median, _is_eastern)
PRICE = TableTask("king-county", table_data.log_price_ratio, _is_eastern, regression=True)
ABOVE_MEDIAN = TableTask("king-county", lambda y, u: table_data.label_above_median(y), _is_eastern)

NHANES = (_table_task("nhanes", "Sex, age ≤ 20 → > 20", 1, SEX),)
SUPPORT2 = (_table_task("support2", "Death in 180 days, age ≤ 55 → > 55", 1, DEATH),)
KING_COUNTY = (
    _table_task("king-county/dear", "Dear for its neighbourhood", 2, DEAR),
    _table_task("king-county/price", "Log price over the neighbourhood's (R²)", 2, PRICE),
    _table_task("king-county/above-median", "Above the median of all", 2, ABOVE_MEDIAN),
)
