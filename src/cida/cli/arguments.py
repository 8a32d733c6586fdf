"""Checks of arguments that several commands take."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cida.errors import did_you_mean


def check_name(flag: str, name: str, choices: Collection[str]) -> None:
    """Refuses a name that is not known."""
    if name not in choices:
        hint = did_you_mean(name, choices)
        raise ValueError(f"{flag} is {name!r}; {hint}known: {', '.join(choices)}.")


def check_seed(first_seed: int) -> None:
    """Refuses seeds that no generator takes."""
    if first_seed < 0:
        raise ValueError(f"first_seed is {first_seed}; it must not be negative.")


def check_methods(methods: Sequence[str], choices: Collection[str]) -> None:
    """Refuses names that no recipe has."""
    unknown = [name for name in methods if name not in choices]
    if unknown or not methods:
        hint = did_you_mean(unknown[0], choices) if unknown else ""
        names = ", ".join(unknown) or "no name"
        raise ValueError(f"methods has {names}; {hint}known are {', '.join(choices)}.")


def check_counts(**counts: int | None) -> None:
    """Refuses numbers below 1, by their flag."""
    for name, value in counts.items():
        if value is not None and value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1.")
