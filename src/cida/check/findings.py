"""What the conformance suite finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["ENCODING_WIDTH", "LEARNED", "FaultError", "Finding", "finding"]

ENCODING_WIDTH = 8
LEARNED = 0.3  # how far below its ceiling a trained adversary must get; V[u] is 1 in these worlds


@dataclass(frozen=True)
class Finding:
    """One check on one subject: ``fault`` is empty when it passed."""

    check: str
    subject: str
    fault: str

    @property
    def passed(self) -> bool:
        return not self.fault


class FaultError(AssertionError):
    """What a check found wrong, in one sentence."""


def finding(test: Callable[..., None], subject: str, run: Callable[[], None]) -> Finding:
    """Runs one check; whatever it raises is its finding."""
    fault = ""
    try:
        run()
    except FaultError as found:
        fault = str(found)
    except Exception as error:  # a plug-in may raise anything; that is a finding too
        fault = f"it raised {type(error).__name__}: {error}"
    return Finding(test.__name__.replace("_", " "), subject, fault)
