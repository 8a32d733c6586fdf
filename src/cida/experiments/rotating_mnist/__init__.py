"""Rotating MNIST (section 5.3 of the paper), and Rotating Digits, which needs no download."""

from cida.experiments.folder_files import load_text
from cida.experiments.rotating_mnist.rotating_tasks import ROTATING_DIGITS, ROTATING_MNIST
from cida.experiments.spec import Experiment, Layout

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = tuple(
    Experiment(
        task.name,
        (task,),
        load_text(__name__, task.name),
        figures_module=f"{__name__}.rotating_figures",
        layout=Layout.ONE_TASK,
        by_interval=True,
    )
    for task in (ROTATING_MNIST, ROTATING_DIGITS)
)
