"""What the doctor says of a run."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DIAGNOSIS_CODES", "Diagnosis"]

DIAGNOSIS_CODES = (
    "index-constant",
    "index-unscaled",
    "too-few-rows",
    "label-shift",
    "discriminator-lagging",
    "lambda-too-large",
    "encoder-collapsed",
    "lambda-too-small",
    "discriminator-overpowering",
    "curriculum-too-fast",
    "not-converged",
    "predictions-collapsed",
)


@dataclass(frozen=True)
class Diagnosis:
    """A fault by its name, what was found in one sentence, and what to change in another."""

    code: str
    evidence: str
    suggestion: str

    def __str__(self) -> str:
        return f"{self.code}: {self.evidence} {self.suggestion}"
