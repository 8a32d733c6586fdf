"""What the doctor says of a run."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FAULTS", "Finding"]

FAULTS = (
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
class Finding:
    """A fault by its name, what was found in one sentence, and what to change in another."""

    fault: str
    found: str
    fix: str

    def __str__(self) -> str:
        return f"{self.fault}: {self.found} {self.fix}"
