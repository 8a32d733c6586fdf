"""The result of a check, and how checks are run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["ENCODING_WIDTH", "MIN_LEARNED_MARGIN", "CheckResult", "require", "run_check"]

ENCODING_WIDTH = 8
MIN_LEARNED_MARGIN = 0.3  # of a trained adversary, below its ceiling; V[u] is 1 in these worlds


@dataclass(frozen=True)
class CheckResult:
    """The result of one check on one subject.

    Parameters
    ----------
    check : str
        Name of the check.
    subject : str
        What was checked, such as the space it was checked on.
    failure : str
        What is wrong; empty if the check passed.
    """

    check: str
    subject: str
    failure: str

    @property
    def passed(self) -> bool:
        """Whether the check passed."""
        return not self.failure


class CheckFailedError(AssertionError):
    """Raised by a check, with one sentence on what is wrong."""


def require(condition: bool, failure: str) -> None:
    """Fail the check with this sentence unless the condition holds."""
    if not condition:
        raise CheckFailedError(failure)


def run_check(check: Callable[..., None], subject: str, run: Callable[[], None]) -> CheckResult:
    """Run one check; whatever it raises becomes its failure."""
    failure = ""
    try:
        run()
    except CheckFailedError as failed:
        failure = str(failed)
    except Exception as error:  # a plug-in may raise anything; that is a failure too
        failure = f"it raised {type(error).__name__}: {error}"
    return CheckResult(check.__name__.replace("_", " "), subject, failure)
