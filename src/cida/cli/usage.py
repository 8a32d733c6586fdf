"""``--help``: what a verb is for, examples first, then its flags."""

from __future__ import annotations

import inspect
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console

from cida.cli.flags import Flag, flags
from cida.cli.verbs import Verbs

__all__ = ["print_overview", "print_usage", "short", "words_of"]

WIDEST = 100  # longer lines are hard to read
LEFT = 24  # columns for the flags; a longer one has a line of its own
EXAMPLE = "Example: "
DOCS = "The rest is in docs/command-line.md."


def print_usage(command: str, verb: type, console: Console) -> None:
    """The help of a verb that does something: ``cida fit --help``."""
    known = flags(verb)
    needed = [flag.shown for flag in known if flag.positional or flag.required]
    _head(console, "Usage")
    more = ["[flags]"] if len(needed) < len(known) else []
    _lines(console, _command(" ".join([command, *needed, *more])))
    words = words_of(verb)
    _about(console, words)
    _examples(console, words)
    for title, part in (
        ("Arguments", [flag for flag in known if flag.positional]),
        ("Flags", [flag for flag in known if not flag.positional]),
    ):
        if part:
            _head(console, title)
            _lines(console, _columns([(flag.shown, _words(flag)) for flag in part]))


def print_overview(
    command: str, verbs: Mapping[str, type], words: Sequence[str], console: Console
) -> None:
    """The help of what only holds verbs: ``cida --help``, ``cida data --help``."""
    _head(console, "Usage")
    _lines(console, [f"  {command} VERB ..."])
    _about(console, words)
    _head(console, "Verbs")
    lines = verbs.lines if isinstance(verbs, Verbs) else {n: short(v) for n, v in verbs.items()}
    _lines(console, _columns(list(lines.items())))
    _examples(console, words)
    console.print()
    _lines(console, [f"{command} VERB --help tells more of each. {DOCS}"])


def words_of(verb: type) -> list[str]:
    """What the docstring says, a string for each paragraph."""
    parts = inspect.cleandoc(verb.__doc__ or "").split("\n\n")
    return [" ".join(part.split()) for part in parts]


def short(verb: type) -> str:
    """What it does, in a line: the first part of its first sentence."""
    return words_of(verb)[0].rstrip(".").partition(";")[0].partition(":")[0]


def _about(console: Console, words: Sequence[str]) -> None:
    for paragraph in words:
        if not paragraph.startswith(EXAMPLE):
            console.print()
            _lines(console, textwrap.wrap(paragraph, _width(), break_on_hyphens=False))


def _examples(console: Console, words: Sequence[str]) -> None:
    found = [p.removeprefix(EXAMPLE).strip() for p in words if p.startswith(EXAMPLE)]
    _head(console, "Examples" if len(found) > 1 else "Example")
    for command in found:
        _lines(console, _command(command))


def _command(words: str) -> list[str]:
    """A command that can be copied, whatever the width: a backslash before each new line."""
    lines = textwrap.wrap(words, _width() - 6, break_long_words=False, break_on_hyphens=False)
    first, *others = lines
    broken = [f"  {first}", *(f"      {line}" for line in others)]
    return [*(f"{line} \\" for line in broken[:-1]), broken[-1]]


def _columns(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Names to the left, their words to the right."""
    left = max((len(name) for name, _ in pairs if len(name) <= LEFT), default=LEFT)
    for name, words in pairs:
        lines = textwrap.wrap(words, _width() - left - 4, break_on_hyphens=False)
        if len(name) > left:
            yield f"  {name}"
            name = ""
        first, *others = lines or [""]
        yield f"  {name:<{left}}  {first}".rstrip()
        yield from (" " * (left + 4) + line for line in others)


def _words(flag: Flag) -> str:
    if flag.required and not flag.positional:
        return f"{flag.words} (required)"
    if not flag.default or "default" in flag.words:
        return flag.words
    return f"{flag.words} (default: {'yes' if flag.switch else flag.default})"


def _width() -> int:
    return max(40, min(WIDEST, shutil.get_terminal_size().columns))


def _head(console: Console, title: str) -> None:
    if title != "Usage":
        console.print()
    console.print(title, style="bold", highlight=False)


def _lines(console: Console, lines: Iterator[str] | Sequence[str]) -> None:
    for line in lines:
        console.print(line, soft_wrap=True, markup=False, highlight=False)
