"""Experiments on real tables: NHANES, King County and SUPPORT2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from sklearn.metrics import r2_score

from cida.batch import Rows
from cida.benchmarks.networks import TableNetworks, encoded_table
from cida.benchmarks.recipes import Benchmark, Preset, Settings
from cida.benchmarks.samples import EXPECTED_CELLS, bin_words, fingerprint
from cida.benchmarks.scikit import ScikitRecipe
from cida.benchmarks.views import Shown
from cida.datasets.king_county import above_median, dear_for_neighbourhood, log_price_ratio
from cida.diagnostics import Expected, accuracy, label_shift, score_by_bin
from cida.diagnostics.view import MOST_ROWS
from cida.estimators.expected import expected_of_rows
from cida.estimators.table_networks import PLAIN_SETTINGS, TABLE_SETTINGS
from cida.space import Space, line_space, thinned

__all__ = ["KING_COUNTY", "NHANES", "SUPPORT2", "TableRows"]

Array = np.ndarray[Any, Any]

SPLIT_SEED = 7
BINS = (12, 40)  # along a line, over a map


@dataclass(frozen=True)
class Asked:
    """What is asked of a data set: the label of each row, and which rows have it in training."""

    data: str
    label: Callable[[Array, Array], Array]
    source: Callable[[Array], Array]
    regression: bool = False


@dataclass(frozen=True)
class TableRows:
    """A table to train on, all target rows without labels, and the half of them that is scored."""

    name: str
    task: str
    x: Array
    y: Array
    u: Array
    source: Array
    scored: Array
    regression: bool

    simulated = False
    figures = "table_figures"
    line_a_method = True  # few tasks, many methods

    def train(self, model: Any, oracle: bool) -> None:
        """An oracle also has the labels of the target rows that are not scored."""
        model.fit_rows(self._rows(self.source | (~self.scored if oracle else False)))

    def _rows(self, labelled: Array) -> Rows:
        y = torch.from_numpy(self._scaled(self.y)) if self.regression else torch.from_numpy(self.y)
        tensors = (torch.from_numpy(one) for one in (self.u, labelled))
        return Rows(torch.from_numpy(self.x), y, *tensors)

    def scores(self, model: Any) -> dict[str, Any]:
        rows = self.source | self.scored
        predicted = np.zeros(len(self.y), dtype=np.float64)
        predicted[rows] = np.ravel(model.predict(self.x[rows], domain_index=self.u[rows]))
        truth = self._scaled(self.y)[:, 0] if self.regression else self.y
        metric = r2_score if self.regression else accuracy
        u = torch.from_numpy(self.u)
        bins = BINS[self.u.shape[1] > 1]
        cells = score_by_bin(self.space.fit(u), u[rows], truth[rows], predicted[rows], bins, metric)
        return {
            "source_accuracy": float(metric(truth[self.source], predicted[self.source])),
            "target_accuracy": float(metric(truth[self.scored], predicted[self.scored])),
            "all_accuracy": float(metric(truth[rows], predicted[rows])),
            "by_index": [bin_words(cell) for cell in cells],
            "task": self.task,
        }

    def shown(self) -> Shown:
        rows = np.flatnonzero(self.source | self.scored)
        some = rows[thinned(len(rows), MOST_ROWS).numpy()]
        truth = self._scaled(self.y)[:, 0] if self.regression else self.y
        names = ("latitude", "longitude") if self.u.shape[1] > 1 else ("age",)
        return Shown(
            self.x[some], self.u[some], self.source[some], truth[some], names, space=self.space
        )

    def expected(self, model: Any) -> list[Expected]:
        return expected_of_rows(model, self._rows(self.source), EXPECTED_CELLS)

    def fingerprint(self) -> str:
        return fingerprint(self.x, self.u, self.y, self.scored)

    @property
    def space(self) -> Space:
        return line_space(self.u.shape[1])

    def about(self, title: str) -> str:
        """How many rows there are, and whether the balance of labels moves along u."""
        u, y = torch.from_numpy(self.u[self.source]), self.y[self.source]
        shift = label_shift(self.space.fit(torch.from_numpy(self.u)), u, torch.from_numpy(y))
        words = "moves along u: invariance may hurt" if shift.suspected else "holds along u"
        return (
            f"{title}: {self.source.sum():,} source rows, {(~self.source).sum():,} target rows "
            f"without labels, {self.scored.sum():,} of these scored; the balance of source labels "
            f"{words} ({shift.moves:.3f})."
        )

    def _scaled(self, y: Array) -> Array:
        """Numbers in standard deviations of the source's, as a column."""
        known = y[self.source]
        scaled: Array = ((y - known.mean()) / known.std()).astype(np.float32)[:, None]
        return scaled


@cache
def _labels(question: Asked) -> Array:
    table = encoded_table(question.data)
    return question.label(table.y, table.u)


def _draw(task: str, question: Asked) -> Callable[..., TableRows]:
    """The same rows whatever the seed; a development run scores the other half of the target."""

    def draw(seed: int, protocol: str) -> TableRows:
        table = encoded_table(question.data)
        source = question.source(table.u)
        target = np.flatnonzero(~source)
        order = np.random.default_rng(SPLIT_SEED).permutation(target)
        half = len(order) // 2
        scored = np.zeros(len(source), dtype=bool)
        scored[order[:half] if protocol == "development" else order[half:]] = True
        y = _labels(question)
        return TableRows(
            question.data, task, table.x, y, table.u, source, scored, question.regression
        )

    return draw


PROTOCOLS = {
    "clean": "one half of the target rows is scored; all were trained on without labels",
    "development": "the other half of the target rows is scored",
}
METHODS = (
    "source-only",
    "logistic",
    "boosting",
    "logistic-windows",
    "boosting-windows",
    "source-only-windows",
    "dann",
    "cida",
    "pcida",
    "histogram",
    "conditional",
    "oracle",
)

# As `cida fit` has them; chosen on seeds from 100 and the development half of the target rows.
BEST: Settings = {**TABLE_SETTINGS, "index_in_encoder": True, "steps": 1000}


def _table(
    name: str, title: str, data: str, index_width: int, label: Any, source: Any, regression: bool
) -> Benchmark:
    question = Asked(data, label, source, regression)
    space = line_space(index_width)
    settings = {**BEST, "space": space}
    networks = TableNetworks(data)

    def plain(method: str, words: str, boosting: bool, windows: bool) -> ScikitRecipe:
        return ScikitRecipe(
            method, words, {"space": space}, networks, boosting=boosting, regression=regression,
            windows=windows,
        )  # fmt: skip

    linear = "Ridge regression" if regression else "Logistic regression"
    others = (
        plain("logistic", linear, False, False),
        plain("boosting", "Gradient boosting", True, False),
        plain("logistic-windows", f"{linear}, windows along u", False, True),
        plain("boosting-windows", "Gradient boosting, windows along u", True, True),
    )
    return Benchmark(
        name=name,
        draw=_draw(name, question),
        methods=METHODS,
        presets={
            "best": Preset(
                settings,
                {"source-only": PLAIN_SETTINGS, "oracle": {"nearness": 1.0}},
                networks,
                "clean",
                dict.fromkeys(("source-only", "conditional"), TableNetworks(data, window=False)),
                {recipe.method: recipe for recipe in others},
            )
        },
        protocols=PROTOCOLS,
        bins=20,
        domains=20,
        cua_stages=20,
        download=data,
        title=title,
        regression=regression,
    )


def _young(u: Array) -> Array:
    return u[:, 0] <= 20


def _up_to_55(u: Array) -> Array:
    return u[:, 0] <= 55


def _east(u: Array) -> Array:
    east: Array = u[:, 1] >= np.quantile(u[:, 1], 2 / 3)
    return east


def _given(y: Array, u: Array) -> Array:
    return y


def _above_median(price: Array, u: Array) -> Array:
    return above_median(price)


NHANES = (_table("nhanes", "Sex, age ≤ 20 → > 20", "nhanes", 1, _given, _young, False),)
SUPPORT2 = (_table("support2", "Death in 180 days, age ≤ 55 → > 55", "support2", 1, _given,
                   _up_to_55, False),)  # fmt: skip
KING_COUNTY = (
    _table("king-county/dear", "Dear for its neighbourhood", "king-county", 2,
           dear_for_neighbourhood, _east, False),
    _table("king-county/price", "Log price over the neighbourhood's (R²)",
           "king-county", 2, log_price_ratio, _east, True),
    _table("king-county/above-median", "Above the median of all",
           "king-county", 2, _above_median, _east, False),
)  # fmt: skip
