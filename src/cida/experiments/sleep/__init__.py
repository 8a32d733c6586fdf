"""Sleep staging from breathing: studies of NSRR, made a store of 30 s segments."""

from cida.experiments.folder_files import make_experiments
from cida.experiments.sleep import sleep_tasks
from cida.experiments.spec import Layout

EXPERIMENTS = make_experiments(
    __name__,
    sleep_tasks.SUITES,
    f"{__name__}.sleep_figures",
    layout=Layout.TASKS_AS_ROWS,
    accepts_root=True,
    prepare=sleep_tasks.prepare_sleep_data,
)
