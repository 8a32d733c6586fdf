"""``cida``: finds the command, lets tyro read its flags and runs it; errors are one sentence."""

from __future__ import annotations

import inspect
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import reduce
from importlib.metadata import EntryPoint, entry_points
from io import StringIO
from itertools import groupby
from operator import or_
from typing import Annotated, Any, Protocol

import tyro
from rich.console import Console

from cida.cli.console import Output, print_error
from cida.cli.torchrun import as_one_rank
from cida.errors import CidaWarning, CommandError, did_you_mean
from cida.version import __version__

COMMAND_GROUP = "cida.commands"  # the entry points by which packages add commands
BUILT_IN_COMMANDS = {
    "fit": "cida.cli.fit:Fit",
    "predict": "cida.cli.predict:Predict",
    "report": "cida.cli.report:Report",
    "export": "cida.cli.export:Export",
    "doctor": "cida.cli.doctor:Doctor",
    "check": "cida.cli.check:Check",
}
OVERVIEW = """Continuously indexed domain adaptation. Labels exist for some values of a continuous
index u; be right at the others.

Example:  cida demo

Example:  cida fit patients.csv --label outcome --index age --out runs/patients

Example:  cida predict runs/patients new.csv --out predicted.csv

The rest is in docs/command-line.md; cida --tyro-print-completion bash (zsh, fish) prints a script
for the Tab key.
"""
HIDDEN_FORMS = (tyro.conf.DisallowNone, tyro.conf.FlagCreatePairsOff)
PARSER_CONFIG = (*HIDDEN_FORMS, tyro.conf.OmitSubcommandPrefixes)
BOX_CHARACTERS = " ─│╭╮╰╯"  # tyro frames what it says


class Command(Protocol):
    """A dataclass whose fields are the flags; tyro reads them.

    One with ``json`` prints an object for programs; ``interrupted`` says what Ctrl-C leaves. A
    group of commands has the field ``command`` instead, the one that was chosen. Its module imports
    torch inside `run`, so that help is quick.
    """

    def run(self, console: Console) -> int: ...


def find_commands() -> dict[str, EntryPoint]:
    """All commands by name: those of the library, and those that installed packages add."""
    built_in = [EntryPoint(*each, COMMAND_GROUP) for each in BUILT_IN_COMMANDS.items()]
    commands: dict[str, EntryPoint] = {}
    for each in (*built_in, *entry_points(group=COMMAND_GROUP)):
        commands.setdefault(each.name, each)
    return commands


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command. Exit code 0: done; 1: the job failed; 2: the input was wrong."""
    try:
        return _dispatch(list(sys.argv[1:] if arguments is None else arguments))
    except (KeyboardInterrupt, ChildProcessError, CommandError, FloatingPointError) as error:
        print_error(str(error) or "interrupted; nothing was written.")
        return 1
    except BrokenPipeError:  # whoever read the output has had enough: cida data list | head -1
        # Nothing more can be written to stdout: Python's own flush at the end must not try.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, TypeError, OSError, ImportError) as error:
        logging.getLogger("cida").debug("the error in full", exc_info=True)
        print_error(str(error))
        return 2


def _dispatch(args: list[str]) -> int:
    if args == ["--version"]:
        Output().print(f"cida {__version__}", highlight=False)
        return 0
    if args[:1] == ["help"]:  # cida help fit
        args = [*args[1:], "--help"]
    if not args:
        with redirect_stdout(sys.stderr):
            _parse(["--help"])
        return 2
    command = _parse(args)
    if command is None:
        return 0
    title = f"cida {args[0]}"
    try:
        with _one_line_warnings(), _sigterm_as_interrupt(), as_one_rank(title, command) as own:
            # With --json stdout is for the one object, and whatever else is said goes to stderr.
            code: int = own.run(Output(stderr=getattr(command, "json", False)))
            return code
    except KeyboardInterrupt as stopped:
        raise KeyboardInterrupt(str(stopped) or getattr(command, "interrupted", "")) from None


def _parse(args: list[str]) -> Any:
    """The command with its flags; None after help; what cannot be read is refused in a sentence."""
    commands, name = find_commands(), args[0]
    if name in commands:
        root, prog, args = commands[name].load(), f"cida {name}", args[1:]
    elif name.startswith("-"):
        root, prog = _all_commands(commands), "cida"
    else:
        hint = did_you_mean(name, commands)
        raise ValueError(f"{name} is no command of cida; {hint}known: {', '.join(commands)}.")
    errors, description = StringIO(), OVERVIEW if prog == "cida" else None
    options: Any = {"prog": prog, "description": description, "config": PARSER_CONFIG}
    try:
        with redirect_stderr(errors):
            command: Any = tyro.cli(root, args=args, **options)
    except SystemExit as stopped:
        if not stopped.code:
            sys.stdout.flush()  # here, where a reader that has gone away is no error
            return None
        raise ValueError(_unframe(errors.getvalue())) from None
    return getattr(command, "command", command)


def _unframe(box: str) -> str:
    """What tyro says in a box, without its title, as one sentence."""
    _, *lines = (line.strip(BOX_CHARACTERS) for line in box.splitlines())
    sections = groupby(lines, key=lambda line: bool(line.strip("-")))
    texts = (" ".join(" ".join(section).split()) for is_text, section in sections if is_text)
    return "; ".join(text.removesuffix(".") for text in texts) + "."


def _all_commands(commands: Mapping[str, EntryPoint]) -> Any:
    """What tyro takes for subcommands: a union, each with the first line of its docstring."""
    choices = []
    for name, entry_point in commands.items():
        command = entry_point.load()
        line, *_ = (inspect.getdoc(command) or "").split("\n\n")
        choices.append(Annotated[command, tyro.conf.subcommand(name, description=line)])
    return reduce(or_, choices)


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
