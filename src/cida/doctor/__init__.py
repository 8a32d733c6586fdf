"""The doctor: what went wrong in a training, by rules on figures that need no target label."""

from cida.doctor.diagnose import DIAGNOSIS_CODES, Diagnosis, diagnose
from cida.doctor.fit_summary import FitSummary

__all__ = ["DIAGNOSIS_CODES", "Diagnosis", "FitSummary", "diagnose"]
