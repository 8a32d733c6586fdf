"""A command that cannot be read: the one thing that is wrong with it, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

from cida.cli.flags import Flag, flags
from cida.errors import did_you_mean

__all__ = ["mistake", "unknown_verb"]


def unknown_verb(command: str, word: str, verbs: Mapping[str, type]) -> str:
    """There is no such verb; perhaps one that is spelt nearly so."""
    if _is_flag(word):
        what, known = "flag", ["--help", "--version"] if command == "cida" else ["--help"]
    else:
        what, known = "verb", list(verbs)
    hint = did_you_mean(word, known)
    return f"{word} is no {what} of {command}; {hint}known: {', '.join(known)}."


def mistake(command: str, verb: type, words: Sequence[str]) -> str | None:
    """What is wrong with the words behind a verb; None if it cannot be told."""
    known = flags(verb)
    by_name = {spelling: flag for flag in known for spelling in flag.spellings}
    given: set[str] = set()
    alone: list[str] = []  # words that belong to no flag
    left = list(words)
    while left:
        word = left.pop(0)
        if not _is_flag(word):
            alone.append(word)
            continue
        typed, equals, value = word.partition("=")
        name = typed.replace("_", "-")
        if name not in by_name:
            every = [spelling for flag in known for spelling in flag.spellings[:1]]
            hint = did_you_mean(name, [*every, "--help"])
            return f"{typed} is no flag of {command}; {hint}{command} --help lists them."
        flag = by_name[name]
        given.add(flag.name)
        if flag.switch:
            continue
        values = [value] if equals else list(takewhile(lambda word: not _is_flag(word), left))
        values = values if flag.many else values[:1]
        left = left if equals else left[len(values) :]
        if fault := _value_fault(flag, values):
            return fault
    return _count_fault(command, known, alone, given)


def _value_fault(flag: Flag, values: Sequence[str]) -> str | None:
    if not values and not flag.many:
        return f"{flag.name} has no value; write {flag.name} {flag.value}."
    for value in values:
        if flag.choices and value not in flag.choices:
            hint = did_you_mean(value, flag.choices)
            return f"{flag.name} is {value!r}; {hint}known: {', '.join(flag.choices)}."
        if flag.kind in (int, float):
            try:
                flag.kind(value)
            except ValueError:
                noun = "a whole number" if flag.kind is int else "a number"
                return f"{flag.name} is {value!r}; it must be {noun}."
    return None


def _count_fault(
    command: str, known: Sequence[Flag], alone: Sequence[str], given: set[str]
) -> str | None:
    """Words that are missing, or one too many."""
    places = [flag for flag in known if flag.positional]
    if len(alone) > len(places) and not any(flag.many for flag in places):
        takes = " ".join(flag.name for flag in places) or "flags"
        return f"{alone[len(places)]!r} is one word too many; {command} takes {takes} alone."
    for flag, word in zip(places, alone, strict=False):
        if fault := _value_fault(flag, [word]):
            return fault
    missing = [flag for flag in places[len(alone) :] if flag.required]
    missing += [f for f in known if f.required and not f.positional and f.name not in given]
    if not missing:
        return None
    names = ", ".join(flag.shown for flag in missing)
    greedy = next((f for f in known if f.many and f.name in given), None)
    hint = ""
    if greedy is not None and any(flag.positional for flag in missing):
        hint = f"write it before {greedy.name}, which takes all words behind it; "
    are = "is" if len(missing) == 1 else "are"
    return f"{names} {are} missing; {hint}{command} --help says more."


def _is_flag(word: str) -> bool:
    """A number below 0 is a value."""
    return word.startswith("-") and len(word) > 1 and not (word[1].isdigit() or word[1] == ".")
