"""All experiments, by name."""

from __future__ import annotations

from cida.experiments.circle_sine.toy_tasks import CIRCLE, SINE
from cida.experiments.fetch import RemoteDataset
from cida.experiments.moments.ladder_tasks import MOMENTS
from cida.experiments.real_tables.king_county import KING_COUNTY_DATASET
from cida.experiments.real_tables.nhanes import NHANES_DATASET
from cida.experiments.real_tables.support2 import SUPPORT2_DATASET
from cida.experiments.real_tables.table_tasks import KING_COUNTY, NHANES, SUPPORT2
from cida.experiments.rotating_mnist.mnist import MNIST_DATASET
from cida.experiments.rotating_mnist.rotating_tasks import ROTATING_DIGITS, ROTATING_MNIST
from cida.experiments.selection.model_bank import SELECTION
from cida.experiments.sleep.sleep_tasks import SLEEP_CROSS, SLEEP_INTRA, SLEEP_MULTI
from cida.experiments.spec import TaskSpec
from cida.experiments.worlds.synthetic_tasks import RESTART_TASKS, SYNTHETIC_TASKS

__all__ = ["DATASET_BY_NAME", "EXPERIMENTS", "TASK_SPECS"]

# An experiment is one benchmark, or one a task.
EXPERIMENTS: dict[str, tuple[TaskSpec, ...]] = {
    "circle": (CIRCLE,),
    "sine": (SINE,),
    "rotating-mnist": (ROTATING_MNIST,),
    "rotating-digits": (ROTATING_DIGITS,),
    "sleep-intra": SLEEP_INTRA,
    "sleep-cross": SLEEP_CROSS,
    "sleep-multi": SLEEP_MULTI,
    "nhanes": NHANES,
    "king-county": KING_COUNTY,
    "support2": SUPPORT2,
    "moments": MOMENTS,
    "worlds": SYNTHETIC_TASKS,
    "selection": SELECTION,
    "restarts": RESTART_TASKS,
}

TASK_SPECS: dict[str, TaskSpec] = {
    benchmark.name: benchmark for several in EXPERIMENTS.values() for benchmark in several
}

DATASET_BY_NAME: dict[str, RemoteDataset] = {
    dataset.name: dataset
    for dataset in (MNIST_DATASET, NHANES_DATASET, KING_COUNTY_DATASET, SUPPORT2_DATASET)
}
