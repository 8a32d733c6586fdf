"""Exceptions and warnings, and the wording of messages: misspelt names, causes of failures."""

from __future__ import annotations

import difflib
import sys
import textwrap
import unicodedata
import warnings
from collections.abc import Collection, Iterable
from pathlib import Path

__all__ = [
    "CidaWarning",
    "CommandError",
    "closest_match",
    "did_you_mean",
    "did_you_mean_file",
    "error_summary",
    "replace_control_characters",
    "warn_user",
]

MAX_CAUSE_CHARACTERS = 200  # letters


class CidaWarning(UserWarning):
    """Something about the data that the user should know, though training can continue."""


class CommandError(Exception):
    """A command was valid but could not be carried out; the message says why and what to do."""


def warn_user(message: str) -> None:
    """Warn at the line of the first caller outside this package and scikit-learn."""
    frame, level = sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in ("cida", "sklearn"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, CidaWarning, stacklevel=level)


def closest_match(name: str, names: Iterable[str]) -> str | None:
    """The most similar of the names, if one is similar at all; case does not count."""
    by_lowercase = {known.lower().strip(): known for known in names}
    matches = difflib.get_close_matches(name.lower().strip(), list(by_lowercase), 1)
    return by_lowercase[matches[0]] if matches else None


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """``did you mean circle? `` to go before the list of all that is known; or nothing.

    >>> did_you_mean("cirle", ["circle", "sine"])
    'did you mean circle? '
    >>> did_you_mean("moon", ["circle", "sine"])
    ''
    """
    hint = closest_match(name, names) if isinstance(name, str) else None
    return f"did you mean {hint}? " if hint else ""


def did_you_mean_file(path: Path, suffixes: Collection[str]) -> str:
    """``did you mean machines.csv? `` where a file beside it has a similar name; or nothing."""
    try:
        siblings = [one for one in sorted(path.parent.iterdir()) if one.suffix.lower() in suffixes]
    except OSError:  # there is no such folder, or it is not ours to look into
        return ""
    hint = closest_match(path.name, [one.name for one in siblings if one.is_file()])
    return f"did you mean {path.parent / hint}? " if hint else ""


def error_summary(error: BaseException) -> str:
    """Another library's message, for use inside a sentence of ours; it may quote a whole file.

    >>> error_summary(ValueError("no room\\n  at all"))
    'no room at all'
    """
    text = textwrap.shorten(str(error), MAX_CAUSE_CHARACTERS, placeholder=" ...")
    return text or type(error).__name__


def replace_control_characters(text: str) -> str:
    """The text without signs that would steer a terminal: a name in a file may have them.

    >>> replace_control_characters("a \\x1b[2J name")
    'a ?[2J name'
    """
    if text.isprintable():
        return text
    allowed = ("\n", "\t")
    return "".join(
        "?" if sign not in allowed and unicodedata.category(sign) == "Cc" else sign for sign in text
    )
