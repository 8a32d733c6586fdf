"""Sleep staging from breathing: studies of NSRR, made a store of 30 s segments."""

from cida.datasets.sleep.cohorts import open_cohort, simulate_missing_cohorts, simulated_data_home
from cida.datasets.sleep.errors import PreparationError, RecordingError
from cida.datasets.sleep.night import read_signal
from cida.datasets.sleep.prepare import PreparationReport, prepare_study
from cida.datasets.sleep.rows import NightDataset
from cida.datasets.sleep.simulate import simulate_cohorts
from cida.datasets.sleep.stages import STAGE_CLASSES
from cida.datasets.sleep.store import SleepStore
from cida.datasets.sleep.studies import INDEX_NAMES, STUDIES, Study

__all__ = [
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
