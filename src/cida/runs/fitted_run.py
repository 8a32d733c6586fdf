"""One training as the doctor sees it: what its model file and its events say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cida.doctor.diagnose import diagnose, final_metrics, skipped_checks
from cida.doctor.diagnosis import Diagnosis, SkippedCheck
from cida.doctor.fit_summary import FitSummary
from cida.io.tensors import ModelFileError, read_model_file
from cida.training import Event


@dataclass(frozen=True)
class FittedRun:
    """One trained model: its summary, and its events where they were kept."""

    name: str
    fit_summary: FitSummary
    history: Sequence[Event]
    saved_diagnoses: Sequence[Diagnosis]

    @property
    def diagnoses(self) -> list[Diagnosis]:
        """By its events; of a file without any, what was found when it was trained."""
        if not self.history:
            return list(self.saved_diagnoses)
        return diagnose(self.history, self.fit_summary)

    @property
    def skipped_checks(self) -> list[SkippedCheck]:
        """What could not be checked; of a file alone, only what was never checked."""
        if not self.history and self.fit_summary.is_complete:
            return []
        return skipped_checks(self.history, self.fit_summary)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "run": self.name,
            "diagnoses": [{**each.to_dict(), "summary": each.summary()} for each in self.diagnoses],
            "skipped_checks": [each.to_dict() for each in self.skipped_checks],
            "metrics": final_metrics(self.history, self.fit_summary),
        }


def read_fitted_run(name: str, file: Path, history: Sequence[Event] = ()) -> FittedRun:
    """The training whose model is in this file."""
    _, header = read_model_file(file)
    try:
        summary = FitSummary.from_dict(header["summary"])
        diagnoses = [Diagnosis.from_dict(each) for each in header["diagnoses"]]
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        message = f"{file} has a header that is not as cida writes it ({error})."
        raise ModelFileError(message) from None
    return FittedRun(name, summary, history, diagnoses)
