"""Small synthetic data sets: what the defaults do, and what restarts add."""

from cida.experiments.folder_files import load_text
from cida.experiments.spec import Experiment, Layout
from cida.experiments.worlds.synthetic_tasks import RESTART_TASKS, SYNTHETIC_TASKS

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = tuple(
    Experiment(
        name,
        tasks,
        load_text(__name__, name),
        figures_module="cida.experiments.score_figures",
        layout=Layout.TASKS_AS_ROWS,
    )
    for name, tasks in (("worlds", SYNTHETIC_TASKS), ("restarts", RESTART_TASKS))
)
