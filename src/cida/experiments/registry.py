"""All experiments: those of the folders beside this module, and those that other packages add."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from importlib.metadata import entry_points

from cida import experiments
from cida.experiments.fetch import RemoteDataset
from cida.experiments.spec import Experiment, TaskSpec

ENTRY_POINT_GROUP = "cida.experiments"  # each names a tuple of Experiment

EXPERIMENTS: dict[str, Experiment] = {}
TASK_SPECS: dict[str, TaskSpec] = {}


def _add_experiments() -> None:
    """Finds them; one that is made of others' tasks is a function of those found before it."""
    modules = pkgutil.iter_modules(experiments.__path__, f"{experiments.__name__}.")
    folders = [import_module(module.name) for module in modules if module.ispkg]
    found = [getattr(f, "EXPERIMENTS", None) or f.derive_experiments for f in folders]
    found += [entry_point.load() for entry_point in entry_points(group=ENTRY_POINT_GROUP)]
    for added in found:
        for experiment in added(TASK_SPECS) if callable(added) else added:
            EXPERIMENTS[experiment.name] = experiment
            TASK_SPECS.update({task.name: task for task in experiment.tasks})


_add_experiments()

DATASET_BY_NAME: dict[str, RemoteDataset] = {
    task.download.name: task.download for task in TASK_SPECS.values() if task.download is not None
}
