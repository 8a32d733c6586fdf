"""All experiments, by name."""

from __future__ import annotations

from cida.benchmarks.moments import MOMENTS
from cida.benchmarks.recipes import TaskSpec
from cida.benchmarks.rotating import ROTATING_DIGITS, ROTATING_MNIST
from cida.benchmarks.selection import SELECTION
from cida.benchmarks.sleep_tasks import SLEEP_CROSS, SLEEP_INTRA, SLEEP_MULTI
from cida.benchmarks.tabular import KING_COUNTY, NHANES, SUPPORT2
from cida.benchmarks.toys import CIRCLE, SINE
from cida.benchmarks.worlds import RESTART_TASKS, SYNTHETIC_TASKS

__all__ = ["EXPERIMENTS", "TASK_SPECS"]

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
