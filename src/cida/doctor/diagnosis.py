"""What the doctor reports of a run: codes, figures and one parameter to change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any, Self

from cida.doctor.doctor_summary import (
    TEMPLATES,
    describe_change,
    describe_evidence,
    describe_skipped_check,
)
from cida.io.json_decode import from_dict

__all__ = ["DIAGNOSIS_CODES", "Diagnosis", "SkippedCheck", "Suggestion"]

DIAGNOSIS_CODES = tuple(TEMPLATES)


@dataclass(frozen=True)
class Suggestion:
    """One parameter of the estimator to change, from its current value to a proposed one.

    Parameters
    ----------
    parameter : str
        Name of the parameter.
    current : bool, int, float, str or None
        Its value in the fit.
    proposed : bool, int, float, str or None
        The value to try.
    """

    parameter: str
    current: bool | int | float | str | None
    proposed: bool | int | float | str | None


@dataclass(frozen=True)
class Diagnosis:
    """One problem of a run.

    Parameters
    ----------
    code : str
        One of ``DIAGNOSIS_CODES``.
    evidence : dict of str to float
        The figures that the diagnosis rests on.
    suggestion : Suggestion or None, optional
        The parameter to change; None where the remedy is no parameter, such as more rows.
    """

    code: str
    evidence: dict[str, float]
    suggestion: Suggestion | None = None

    def describe_evidence(self) -> str:
        """Return what was found, in one sentence."""
        return describe_evidence(self.code, self.evidence)

    def describe_suggestion(self) -> str:
        """Return what to change, in one sentence."""
        change = None if self.suggestion is None else astuple(self.suggestion)
        return describe_change(self.code, self.evidence, change)

    def summary(self) -> str:
        """Return what was found and what to change, in plain English."""
        return f"{self.describe_evidence()} {self.describe_suggestion()}"

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` returned."""
        return from_dict(cls, dict(data))

    def __str__(self) -> str:
        return f"{self.code}: {self.summary()}"


@dataclass(frozen=True)
class SkippedCheck:
    """A group of rules that could not be applied, and the figures that say why.

    Parameters
    ----------
    code : str
        "no-index", "too-few-steps", "too-few-probes" or "unknown-rows".
    evidence : dict of str to float
        The figures.
    """

    code: str
    evidence: dict[str, float]

    def summary(self) -> str:
        """Why it was skipped, in one sentence."""
        return describe_skipped_check(self.code, self.evidence)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)
