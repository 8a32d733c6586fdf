"""Words for people: jobs that failed, and names that were misspelt."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["JobError", "did_you_mean", "nearest"]


class JobError(Exception):
    """What was asked for was right and could not be done; the message says why and what to do."""


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The most similar of the names, if one is similar at all; case does not count."""
    lower = {known.lower().strip(): known for known in names}
    found = difflib.get_close_matches(name.lower().strip(), list(lower), 1)
    return lower[found[0]] if found else None


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """``did you mean circle? `` to go before the list of all that is known; or nothing.

    >>> did_you_mean("cirle", ["circle", "sine"])
    'did you mean circle? '
    >>> did_you_mean("moon", ["circle", "sine"])
    ''
    """
    hint = nearest(name, names) if isinstance(name, str) else None
    return f"did you mean {hint}? " if hint else ""
