"""The doctor: what went wrong in a training, by rules on figures that need no target label."""

from cida.doctor.diagnose import diagnose
from cida.doctor.diagnosis import DIAGNOSIS_CODES, Diagnosis, SkippedCheck, Suggestion
from cida.doctor.fit_summary import FitSummary
from cida.doctor.thresholds import DoctorThresholds

__all__ = [
    "DIAGNOSIS_CODES",
    "Diagnosis",
    "DoctorThresholds",
    "FitSummary",
    "SkippedCheck",
    "Suggestion",
    "diagnose",
]
