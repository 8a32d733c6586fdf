"""Sleep staging from breathing: studies of NSRR, made a store of 30 s segments."""

from cida.experiments.sleep.cohorts import (
    open_cohort,
    simulate_missing_cohorts,
    simulated_data_home,
)
from cida.experiments.sleep.night import read_signal
from cida.experiments.sleep.night_dataset import NightDataset
from cida.experiments.sleep.prepare import PreparationReport, prepare_study
from cida.experiments.sleep.recording_errors import PreparationError, RecordingError
from cida.experiments.sleep.simulate import simulate_cohorts
from cida.experiments.sleep.sleep_store import SleepStore
from cida.experiments.sleep.stages import STAGE_CLASSES
from cida.experiments.sleep.studies import INDEX_NAMES, STUDIES, Study

__all__ = [
    "EXPERIMENTS",
    "INDEX_NAMES",
    "STAGE_CLASSES",
    "STUDIES",
    "NightDataset",
    "PreparationError",
    "PreparationReport",
    "RecordingError",
    "SleepStore",
    "Study",
    "open_cohort",
    "prepare_study",
    "read_signal",
    "simulate_cohorts",
    "simulate_missing_cohorts",
    "simulated_data_home",
]

from cida.experiments.folder_files import load_text
from cida.experiments.sleep.sleep_tasks import (
    SLEEP_CROSS,
    SLEEP_INTRA,
    SLEEP_MULTI,
    prepare_sleep_data,
)
from cida.experiments.spec import Experiment, Layout

EXPERIMENTS = tuple(
    Experiment(
        name,
        tasks,
        load_text(__name__, name),
        figures_module=f"{__name__}.sleep_figures",
        layout=Layout.TASKS_AS_ROWS,
        accepts_root=True,
        prepare=prepare_sleep_data,
    )
    for name, tasks in (
        ("sleep-intra", SLEEP_INTRA),
        ("sleep-cross", SLEEP_CROSS),
        ("sleep-multi", SLEEP_MULTI),
    )
)
