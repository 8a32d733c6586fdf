"""Small synthetic data sets: what the defaults do, and what restarts add."""

from cida.experiments.folder_files import make_experiments
from cida.experiments.spec import Layout
from cida.experiments.worlds.synthetic_tasks import RESTART_TASKS, SYNTHETIC_TASKS

TASKS = {"worlds": SYNTHETIC_TASKS, "restarts": RESTART_TASKS}
FIGURES = "cida.experiments.figures"
EXPERIMENTS = make_experiments(__name__, TASKS, FIGURES, layout=Layout.TASKS_AS_ROWS)
