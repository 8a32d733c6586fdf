"""Where a verb writes: a terminal that somebody looks at, or what a program reads."""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from cida.version import __version__
from cida.words import printable

__all__ = [
    "Output",
    "complain",
    "folder_words",
    "named_warnings",
    "print_json",
    "say",
]

ENDLESS = 100_000  # columns: a line in a file ends where the sentence does


class Output(Console):
    """A rich console that is quiet where nobody looks.

    In a pipe or a file lines are whole, a table is its cells with tabs between them, and nothing
    is drawn twice. Colours: NO_COLOR and TERM=dumb take them away, FORCE_COLOR keeps them in a
    pipe; it does not bring back bars and boxes.
    """

    def __init__(self, stderr: bool = False) -> None:
        stream = sys.stderr if stderr else sys.stdout
        if stream.isatty():
            super().__init__(stderr=stderr)
            return
        coloured = os.environ.get("FORCE_COLOR") and not os.environ.get("NO_COLOR")
        super().__init__(
            stderr=stderr,
            force_terminal=False,
            width=ENDLESS,
            color_system="standard" if coloured else None,
        )

    def print(self, *objects: Any, **options: Any) -> None:
        """As rich prints; a table becomes lines that ``grep`` and ``cut`` can read."""
        if self.is_terminal or not (objects and isinstance(objects[0], Table)):
            plain = (printable(each) if isinstance(each, str) else each for each in objects)
            super().print(*plain, **options)
        else:  # rich would make spaces of the tabs
            self.file.write(printable(_tabbed(objects[0])))
            self.file.flush()


def say(console: Console, *sentences: str, style: str = "") -> None:
    """Prints each in a line of its own, whatever its signs and its length."""
    for sentence in sentences:
        console.print(sentence, soft_wrap=True, markup=False, highlight=False, style=style)


@contextmanager
def named_warnings(title: str, console: Console) -> Iterator[None]:
    """Warnings of ours that come inside are said behind it, once each, with what they are about."""
    from cida import CidaWarning  # here, where torch is in memory already

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", CidaWarning)
        yield
    ours = [one for one in told if issubclass(one.category, CidaWarning)]
    for sentence in dict.fromkeys(str(one.message) for one in ours):
        say(console, f"{title}: {sentence}", style="yellow")
    for one in told:
        if one not in ours:
            warnings.showwarning(one.message, one.category, one.filename, one.lineno)


def complain(sentence: str) -> None:
    """What went wrong, on stderr, in one line."""
    line = " ".join(sentence.split())
    Output(stderr=True).print(f"[bold red]cida:[/] {escape(line)}", soft_wrap=True)


def print_json(verb: str, **words: Any) -> None:
    """One JSON object on stdout, for programs; a number that is none is null."""
    found = {"verb": verb, "cida": __version__, **words}
    sys.stdout.write(json.dumps(_plain(found), indent=2, allow_nan=False) + "\n")
    sys.stdout.flush()


def folder_words(folder: Path) -> dict[str, Any]:
    """What a folder of runs has for programs: its results, and the files that are in it."""
    # Not the hidden ones: the lock is gone when the command is.
    files = sorted(p.resolve() for p in folder.glob("[!.]*") if p.is_file())
    results = json.loads((folder / "results.json").read_text())
    return {"folder": folder.resolve(), "files": files, "results": results}


def _tabbed(table: Table) -> str:
    titles = [] if table.title is None else [_text(table.title)]
    return "\n".join([*titles, *("\t".join(line) for line in _cells(table))]) + "\n"


def _cells(table: Table) -> list[tuple[str, ...]]:
    """The line of names, and the lines below it."""
    heads = tuple(_text(column.header) for column in table.columns)
    columns = ([_text(cell) for cell in column.cells] for column in table.columns)
    return [heads, *zip(*columns, strict=True)]


def _text(cell: Any) -> str:
    return Text.from_markup(cell).plain if isinstance(cell, str) else str(cell)


def _plain(words: Any) -> Any:
    if isinstance(words, Mapping):
        return {str(name): _plain(value) for name, value in words.items()}
    if isinstance(words, np.ndarray | np.generic):
        return _plain(words.tolist())
    if isinstance(words, Sequence) and not isinstance(words, str):
        return [_plain(value) for value in words]
    if isinstance(words, float) and not math.isfinite(words):
        return None
    return str(words) if isinstance(words, Path) else words
