"""What the conformance suite finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["ENCODING_WIDTH", "MIN_LEARNED_MARGIN", "CheckFailedError", "CheckResult", "run_check"]

ENCODING_WIDTH = 8
MIN_LEARNED_MARGIN = (
    0.3  # how far below its ceiling a trained adversary must get; V[u] is 1 in these worlds
)


@dataclass(frozen=True)
class CheckResult:
    """One check on one subject: ``fault`` is empty when it passed."""

    check: str
    subject: str
    failure: str

    @property
    def passed(self) -> bool:
        return not self.failure


class CheckFailedError(AssertionError):
    """What a check found wrong, in one sentence."""


def run_check(check: Callable[..., None], subject: str, run: Callable[[], None]) -> CheckResult:
    """Runs one check; whatever it raises is its finding."""
    fault = ""
    try:
        run()
    except CheckFailedError as failed:
        fault = str(failed)
    except Exception as error:  # a plug-in may raise anything; that is a finding too
        fault = f"it raised {type(error).__name__}: {error}"
    return CheckResult(check.__name__.replace("_", " "), subject, fault)
