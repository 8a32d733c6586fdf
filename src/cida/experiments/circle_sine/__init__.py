"""Circle and Sine: the paper's two toy data sets (section 5.2)."""

from cida.experiments.circle_sine.toy_tasks import CIRCLE, SINE
from cida.experiments.folder_files import make_experiments
from cida.experiments.spec import Layout

TASKS = {task.name: (task,) for task in (CIRCLE, SINE)}
FIGURES = f"{__name__}.toy_figures"
EXPERIMENTS = make_experiments(__name__, TASKS, FIGURES, layout=Layout.ONE_TASK)
