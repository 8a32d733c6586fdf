"""The command line: ``cida VERB``. One module a verb."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from typing import Any, Protocol

import tyro
from rich.console import Console

from cida.cli.mistakes import mistake, unknown_verb
from cida.cli.output import Output, complain
from cida.cli.torchrun import as_one_rank
from cida.cli.usage import print_overview, print_usage, words_of
from cida.cli.verbs import VERBS
from cida.version import __version__
from cida.words import JobError

__all__ = ["VERBS", "main"]

HELP = ("-h", "--help")
ABOUT = (
    "cida: continuously indexed domain adaptation. Labels exist for some values of a continuous "
    "index u; be right at the others.",
    "Example: cida demo",
    "Example: cida fit patients.csv --label outcome --index age --out runs/patients",
    "Example: cida predict runs/patients new.csv --out predicted.csv",
)


class Verb(Protocol):
    """A dataclass whose fields are the flags.

    One with ``json`` prints an object for programs; ``interrupted`` says what Ctrl-C leaves.
    """

    def run(self, console: Console) -> int: ...


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one verb. Exit code 0: done; 1: the job failed; 2: the input was wrong."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _answer(words)
    except KeyboardInterrupt as stopped:
        complain(str(stopped) or "interrupted; nothing was written.")
        return 1
    except (ChildProcessError, JobError) as error:
        complain(str(error))
        return 1
    except BrokenPipeError:  # whoever read the output has had enough: cida data list | head -1
        _hush()
        return 1
    except (ValueError, TypeError, OSError, ImportError) as error:
        logging.getLogger("cida").debug("the error in full", exc_info=True)
        complain(str(error))
        return 2
    except FloatingPointError as error:
        complain(str(error))
        return 1


def _answer(words: Sequence[str]) -> int:
    """Finds the verb, and does it or tells of it."""
    if list(words) == ["--version"]:
        Output().print(f"cida {__version__}", highlight=False)
        return 0
    if words and words[0] == "help":  # cida help fit
        words = [*words[1:], "--help"]
    command, about = "cida", list(ABOUT)
    verbs: Mapping[str, type] = VERBS
    while True:
        if not words or words[0] in HELP:
            print_overview(command, verbs, about, Output(stderr=not words))
            return 0 if words else 2
        if words[0] not in verbs:
            raise ValueError(unknown_verb(command, words[0], verbs))
        command, verb, words = f"{command} {words[0]}", verbs[words[0]], words[1:]
        if not hasattr(verb, "verbs"):
            break
        verbs, about = verb.verbs, words_of(verb)
    if any(word in HELP for word in words):
        print_usage(command, verb, Output())
        return 0
    asked = _read(command, verb, words)
    # With --json stdout is for the one object, and whatever else is said goes to stderr.
    try:
        with _plain_warnings(), _terminated_as_interrupted(), as_one_rank(command, asked) as mine:
            code: int = mine.run(Output(stderr=getattr(asked, "json", False)))
            return code
    except KeyboardInterrupt as stopped:
        raise KeyboardInterrupt(str(stopped) or getattr(asked, "interrupted", "")) from None


def _read(command: str, verb: Any, words: Sequence[str]) -> Verb:
    """The verb with its flags; what cannot be read is refused in one sentence."""
    box = StringIO()
    try:
        with redirect_stderr(box):
            asked: Verb = tyro.cli(verb, prog=command, args=words)
    except SystemExit:
        lines = (
            line.strip(" \u2500\u2502\u256d\u256e\u2570\u256f")
            for line in box.getvalue().splitlines()
        )
        told = mistake(command, verb, words) or f"{' '.join(filter(None, lines))}."
        raise ValueError(told) from None
    return asked


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Inside, SIGTERM does what Ctrl-C does: what is kept is kept, what is half-made is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Inside, a warning of ours is its sentence, without the line of code that it came from."""
    from cida import CidaWarning  # here, where torch is in memory already

    before = warnings.formatwarning

    def words(message: Any, category: type[Warning], *place: Any, **more: Any) -> str:
        if issubclass(category, CidaWarning):
            return f"cida: {message}\n"
        return before(message, category, *place, **more)

    warnings.formatwarning = words
    try:
        yield
    finally:
        warnings.formatwarning = before


def _hush() -> None:
    """Nothing more can be written to stdout: Python's own flush at the end must not try."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
