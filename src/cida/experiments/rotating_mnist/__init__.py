"""Rotating MNIST (section 5.3 of the paper), and Rotating Digits, which needs no download."""

from cida.experiments.folder_files import make_experiments
from cida.experiments.rotating_mnist.rotating_tasks import ROTATING_DIGITS, ROTATING_MNIST
from cida.experiments.spec import Layout

TASKS = {task.name: (task,) for task in (ROTATING_MNIST, ROTATING_DIGITS)}
FIGURES = f"{__name__}.rotating_figures"
EXPERIMENTS = make_experiments(__name__, TASKS, FIGURES, layout=Layout.ONE_TASK, by_interval=True)
