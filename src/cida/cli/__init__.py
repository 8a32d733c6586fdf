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
from cida.cli.output import Output, print_error
from cida.cli.torchrun import as_one_rank
from cida.cli.usage import print_overview, print_usage, words_of
from cida.cli.verbs import VERBS
from cida.errors import CommandError
from cida.version import __version__

__all__ = ["VERBS", "main"]

HELP_FLAGS = ("-h", "--help")
OVERVIEW_LINES = (
    "cida: continuously indexed domain adaptation. Labels exist for some values of a continuous "
    "index u; be right at the others.",
    "Example: cida demo",
    "Example: cida fit patients.csv --label outcome --index age --out runs/patients",
    "Example: cida predict runs/patients new.csv --out predicted.csv",
)


class Command(Protocol):
    """A dataclass whose fields are the flags.

    One with ``json`` prints an object for programs; ``interrupted`` says what Ctrl-C leaves.
    """

    def run(self, console: Console) -> int: ...


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one verb. Exit code 0: done; 1: the job failed; 2: the input was wrong."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _dispatch(args)
    except KeyboardInterrupt as stopped:
        print_error(str(stopped) or "interrupted; nothing was written.")
        return 1
    except (ChildProcessError, CommandError) as error:
        print_error(str(error))
        return 1
    except BrokenPipeError:  # whoever read the output has had enough: cida data list | head -1
        _discard_stdout()
        return 1
    except (ValueError, TypeError, OSError, ImportError) as error:
        logging.getLogger("cida").debug("the error in full", exc_info=True)
        print_error(str(error))
        return 2
    except FloatingPointError as error:
        print_error(str(error))
        return 1


def _dispatch(args: Sequence[str]) -> int:
    """Finds the verb, and does it or tells of it."""
    if list(args) == ["--version"]:
        Output().print(f"cida {__version__}", highlight=False)
        return 0
    if args and args[0] == "help":  # cida help fit
        args = [*args[1:], "--help"]
    command, about = "cida", list(OVERVIEW_LINES)
    verbs: Mapping[str, type] = VERBS
    while True:
        if not args or args[0] in HELP_FLAGS:
            print_overview(command, verbs, about, Output(stderr=not args))
            return 0 if args else 2
        if args[0] not in verbs:
            raise ValueError(unknown_verb(command, args[0], verbs))
        command, verb, args = f"{command} {args[0]}", verbs[args[0]], args[1:]
        if not hasattr(verb, "verbs"):
            break
        verbs, about = verb.verbs, words_of(verb)
    if any(word in HELP_FLAGS for word in args):
        print_usage(command, verb, Output())
        return 0
    instance = _parse(command, verb, args)
    # With --json stdout is for the one object, and whatever else is said goes to stderr.
    try:
        with (
            _one_line_warnings(),
            _sigterm_as_interrupt(),
            as_one_rank(command, instance) as rank_instance,
        ):
            code: int = rank_instance.run(Output(stderr=getattr(instance, "json", False)))
            return code
    except KeyboardInterrupt as stopped:
        raise KeyboardInterrupt(str(stopped) or getattr(instance, "interrupted", "")) from None


def _parse(command: str, verb: Any, args: Sequence[str]) -> Command:
    """The verb with its flags; what cannot be read is refused in one sentence."""
    stderr_buffer = StringIO()
    try:
        with redirect_stderr(stderr_buffer):
            instance: Command = tyro.cli(verb, prog=command, args=args)
    except SystemExit:
        lines = (
            line.strip(" \u2500\u2502\u256d\u256e\u2570\u256f")
            for line in stderr_buffer.getvalue().splitlines()
        )
        message = mistake(command, verb, args) or f"{' '.join(filter(None, lines))}."
        raise ValueError(message) from None
    return instance


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Inside, SIGTERM does what Ctrl-C does: what is kept is kept, what is half-made is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous_handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous_handler)


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Inside, a warning of ours is its sentence, without the line of code that it came from."""
    from cida import CidaWarning  # here, where torch is in memory already

    original_format = warnings.formatwarning

    def format_warning(message: Any, category: type[Warning], *place: Any, **more: Any) -> str:
        if issubclass(category, CidaWarning):
            return f"cida: {message}\n"
        return original_format(message, category, *place, **more)

    warnings.formatwarning = format_warning
    try:
        yield
    finally:
        warnings.formatwarning = original_format


def _discard_stdout() -> None:
    """Nothing more can be written to stdout: Python's own flush at the end must not try."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
