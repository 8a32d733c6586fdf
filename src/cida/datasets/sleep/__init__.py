"""Sleep staging from breathing: studies of NSRR, made a store of 30 s segments."""

from cida.datasets.sleep.cohorts import make_simulated, open_cohort, simulated_home
from cida.datasets.sleep.errors import PreparationError, RecordingError
from cida.datasets.sleep.night import read_signal
from cida.datasets.sleep.prepare import Report, prepare
from cida.datasets.sleep.rows import NightRows
from cida.datasets.sleep.simulate import simulate
from cida.datasets.sleep.stages import CLASSES
from cida.datasets.sleep.store import SleepStore
from cida.datasets.sleep.studies import INDICES, STUDIES, Study

__all__ = [
    "CLASSES",
    "INDICES",
    "STUDIES",
    "NightRows",
    "PreparationError",
    "RecordingError",
    "Report",
    "SleepStore",
    "Study",
    "make_simulated",
    "open_cohort",
    "prepare",
    "read_signal",
    "simulate",
    "simulated_home",
]
