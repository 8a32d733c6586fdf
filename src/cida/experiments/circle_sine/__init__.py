"""Circle and Sine: the paper's two toy data sets (section 5.2)."""

from cida.experiments.circle_sine.toy_tasks import CIRCLE, SINE
from cida.experiments.folder_files import load_text
from cida.experiments.spec import Experiment, Layout

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = tuple(
    Experiment(
        task.name,
        (task,),
        load_text(__name__, task.name),
        figures_module=f"{__name__}.toy_figures",
        layout=Layout.ONE_TASK,
    )
    for task in (CIRCLE, SINE)
)
