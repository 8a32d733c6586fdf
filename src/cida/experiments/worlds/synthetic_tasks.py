"""What the defaults do on worlds with a known truth, one for each way an index can matter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.metrics import r2_score

from cida.datasets import (
    IndexedData,
    make_circle,
    make_drifting_regression,
    make_hours,
    make_irrelevant_index,
    make_ladder,
    make_noise_index,
    make_noisy_index,
    make_plane,
    make_rotating_moons,
    make_shifting_labels,
    make_sine,
)
from cida.datasets.ladder import SWITCH_POINTS_BY_MOMENT
from cida.dependence import distance_correlation
from cida.experiments.display_rows import DisplayRows
from cida.experiments.spec import MethodSettings, Preset, TaskSpec
from cida.experiments.task_data import (
    bin_score_to_dict,
    estimate_expected_scores,
    hash_arrays,
    select_display_rows,
)
from cida.indexing import evenly_spaced
from cida.label_shift import measure_label_shift
from cida.metrics import accuracy, score_by_bin
from cida.selection.expected_score import ExpectedScore
from cida.spaces import make_line_space

__all__ = ["RESTART_TASKS", "SYNTHETIC_TASKS", "SyntheticTaskData"]

Array = np.ndarray[Any, Any]

N_SYNTHETIC_BINS = 20
MAX_DEPENDENCE_ROWS = 2000  # rows: distances between all of them


@dataclass(frozen=True)
class SyntheticTaskData:
    """A world to train and to score on: labels of the target are there for scoring alone."""

    data: IndexedData
    task: str
    regression: bool = False

    is_simulated = False
    figures_module = "cida.experiments.worlds.world_figures"
    methods_as_rows = False  # many worlds, few methods

    @property
    def name(self) -> str:
        return self.data.name

    def train(self, model: Any, oracle: bool) -> None:
        labels = self.data.y if oracle else self.data.training_labels
        model.fit(self.data.x, labels, domain_index=self.data.u)

    def evaluate(self, model: Any) -> dict[str, Any]:
        data = self.data
        predicted = model.predict(data.x, domain_index=data.u)
        metric = r2_score if self.regression else accuracy
        u = self._u
        cells = score_by_bin(
            make_line_space(u.shape[1]).fit(u), u, data.y, predicted, N_SYNTHETIC_BINS, metric
        )
        source = data.source
        return {
            "source_score": float(metric(data.y[source], predicted[source])),
            "target_score": float(metric(data.y[~source], predicted[~source])),
            "all_score": float(metric(data.y, predicted)),
            "by_index": [bin_score_to_dict(cell) for cell in cells],
            "extra_metrics": {"left of u": self._index_dependence(model)},
            "task": self.task,
        }

    def fingerprint(self) -> str:
        return hash_arrays(self.data.x, self.data.u, self.data.training_labels)

    def display_rows(self) -> DisplayRows:
        return select_display_rows(self.data)

    def expected_scores(self, model: Any) -> Sequence[ExpectedScore]:
        return estimate_expected_scores(self.data, model)

    def summary(self, title: str) -> str:
        """How many rows there are, and whether the balance of labels moves along u."""
        source, u = self.data.source, self._u
        y = torch.from_numpy(self.data.y[source])
        shift = measure_label_shift(make_line_space(u.shape[1]).fit(u), u[source], y)
        shift_text = "moves along u, which fit warns of" if shift.is_suspected else "holds along u"
        return (
            f"{title}: {source.sum():,} source rows, {(~source).sum():,} target rows without "
            f"labels; the balance of source labels {shift_text} ({shift.shift:.3f})."
        )

    @property
    def _u(self) -> torch.Tensor:
        return torch.from_numpy(self.data.u.reshape(len(self.data.u), -1))

    def _index_dependence(self, model: Any) -> float:
        """The distance correlation, bias-corrected and squared, of the encoding and u."""
        rows = evenly_spaced(len(self.data.u), MAX_DEPENDENCE_ROWS).numpy()
        z = model.transform(self.data.x[rows], domain_index=self.data.u[rows])
        u = self._u[rows].double()
        index = make_line_space(u.shape[1]).fit(u).embed(u)
        return float(distance_correlation(torch.from_numpy(z).double(), index))


def _make_draw(
    make_data: Callable[..., IndexedData], task: str, regression: bool
) -> Callable[[int, str], SyntheticTaskData]:
    return lambda seed, protocol: SyntheticTaskData(make_data(seed=seed), task, regression)


SYNTHETIC_PROTOCOLS = {"points": "all rows are trained on, the target's without labels, and scored"}

# The game alone, as it is without the choices that the default makes.
_GAME_ONLY: MethodSettings = {"coordinates": "raw", "steps": 2000}
SYNTHETIC_METHOD_SETTINGS: dict[str, MethodSettings] = {
    "source-only": {"coordinates": "raw"},
    "histogram": _GAME_ONLY,
    "given-prediction": _GAME_ONLY,
    "distance-correlation": _GAME_ONLY,
    "oracle": {"coordinates": "learned"},
}
SYNTHETIC_METHODS = (
    "source-only",
    "histogram",
    "given-prediction",
    "distance-correlation",
    "default",
    "oracle",
)


def _synthetic_task(
    task: str,
    title: str,
    make_data: Callable[..., IndexedData],
    regression: bool = False,
    experiment: str = "worlds",
    methods: Sequence[str] = SYNTHETIC_METHODS,
) -> TaskSpec:
    name = f"{experiment}/{task}"
    return TaskSpec(
        name=name,
        draw_data=_make_draw(make_data, name, regression),
        methods=methods,
        presets={"best": Preset({}, SYNTHETIC_METHOD_SETTINGS, protocol="points")},
        protocols=SYNTHETIC_PROTOCOLS,
        n_histogram_bins=30,
        domain_classes=30,
        n_cua_stages=20,
        title=title,
        regression=regression,
    )


SYNTHETIC_TASKS = (
    _synthetic_task("circle", "Circle", make_circle),
    _synthetic_task("sine", "Sine", make_sine),
    _synthetic_task("moons", "Turning moons", make_rotating_moons),
    _synthetic_task("plane", "Plane", make_plane),
    _synthetic_task("hours", "Hours", make_hours),
    _synthetic_task("noisy-index", "Noisy index", make_noisy_index),
    *(
        _synthetic_task(f"ladder-{rung}", f"Ladder: {rung}", partial(make_ladder, rung))
        for rung in SWITCH_POINTS_BY_MOMENT
    ),
    _synthetic_task("irrelevant-index", "Irrelevant index", make_irrelevant_index),
    _synthetic_task("noise-index", "Noise for an index", make_noise_index),
    _synthetic_task("shifting-labels", "Shifting labels", make_shifting_labels),
    _synthetic_task(
        "drifting-regression", "Drifting regression (R²)", make_drifting_regression, regression=True
    ),
)


def _fixed_draw(make_data: Callable[..., IndexedData]) -> Callable[..., IndexedData]:
    """The same points whatever the seed, which then is that of the game alone."""
    return lambda seed: make_data(seed=0)


# One game against the best of four, on points of each seed's own and on points that all share.
RESTART_TASKS = tuple(
    _synthetic_task(task, title, make, experiment="restarts", methods=("default", "restarts"))
    for task, title, make in (
        ("circle", "Circle", make_circle),
        ("sine", "Sine", make_sine),
        ("circle-one-draw", "Circle, one draw of points", _fixed_draw(make_circle)),
        ("sine-one-draw", "Sine, one draw of points", _fixed_draw(make_sine)),
    )
)
