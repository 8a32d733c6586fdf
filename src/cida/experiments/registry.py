"""All experiments: those of the folders beside this module, and those that other packages add."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import entry_points

from cida import experiments
from cida.experiments.fetch import RemoteDataset
from cida.experiments.spec import Experiment, TaskSpec

__all__ = ["DATASET_BY_NAME", "EXPERIMENTS", "TASK_SPECS"]

ENTRY_POINT_GROUP = "cida.experiments"  # each names a tuple of Experiment


def _iterate_experiments() -> Iterator[Experiment]:
    for module in pkgutil.iter_modules(experiments.__path__, f"{experiments.__name__}."):
        if module.ispkg:
            yield from import_module(module.name).EXPERIMENTS
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        yield from entry_point.load()


EXPERIMENTS: dict[str, Experiment] = {each.name: each for each in _iterate_experiments()}

TASK_SPECS: dict[str, TaskSpec] = {
    task.name: task for experiment in EXPERIMENTS.values() for task in experiment.tasks
}

DATASET_BY_NAME: dict[str, RemoteDataset] = {
    task.download.name: task.download for task in TASK_SPECS.values() if task.download is not None
}
