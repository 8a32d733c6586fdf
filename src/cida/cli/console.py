"""Where a command writes: a terminal that somebody looks at, or what a program reads."""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from cida.errors import CidaWarning, replace_control_characters
from cida.version import __version__

if TYPE_CHECKING:
    from cida.training import Callback

__all__ = [
    "Output",
    "folder_contents",
    "print_error",
    "print_json",
    "print_lines",
    "progress_bar",
    "titled_warnings",
    "training_progress",
]

PIPE_WIDTH_COLUMNS = 100_000  # columns: a line in a file ends where the sentence does


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
        use_color = os.environ.get("FORCE_COLOR") and not os.environ.get("NO_COLOR")
        super().__init__(
            stderr=stderr,
            force_terminal=False,
            width=PIPE_WIDTH_COLUMNS,
            color_system="standard" if use_color else None,
        )

    def print(self, *objects: Any, **options: Any) -> None:
        """As rich prints; a table becomes lines that ``grep`` and ``cut`` can read."""
        if self.is_terminal or not (objects and isinstance(objects[0], Table)):
            printables = (
                replace_control_characters(each) if isinstance(each, str) else each
                for each in objects
            )
            super().print(*printables, **options)
        else:  # rich would make spaces of the tabs
            self.file.write(replace_control_characters(_to_tsv(objects[0])))
            self.file.flush()


def print_lines(console: Console, *lines: str, style: str = "") -> None:
    """Prints each in a line of its own, whatever its signs and its length."""
    for sentence in lines:
        console.print(sentence, soft_wrap=True, markup=False, highlight=False, style=style)


def progress_bar(
    console: Console, *, counts_bytes: bool = False, transient: bool = True
) -> Progress:
    """A bar that counts items or bytes; there is none where nobody looks.

    A transient one is gone when the work is done, and the time left is shown beside it.
    """
    from cida.training.progress import ResizableProgress  # it imports torch

    return ResizableProgress(
        console,
        DownloadColumn() if counts_bytes else MofNCompleteColumn(),
        TimeRemainingColumn() if transient else TimeElapsedColumn(),
        transient=transient,
        disable=not console.is_interactive,
    )


@contextmanager
def training_progress(title: str, console: Console) -> Iterator[Sequence[Callback]]:
    """The live table of a model that is trained, as callbacks of its training."""
    if not console.is_interactive:
        yield ()
        return
    from cida.training.progress import ProgressBar  # it imports torch

    with ProgressBar(title, console) as bar:
        yield (bar,)


@contextmanager
def titled_warnings(title: str, console: Console) -> Iterator[None]:
    """Warnings of ours that come inside are said behind it, once each, with what they are about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CidaWarning)
        yield
    cida_warnings = [one for one in caught if issubclass(one.category, CidaWarning)]
    for sentence in dict.fromkeys(str(one.message) for one in cida_warnings):
        print_lines(console, f"{title}: {sentence}", style="yellow")
    for one in caught:
        if one not in cida_warnings:
            warnings.showwarning(one.message, one.category, one.filename, one.lineno)


def print_error(sentence: str) -> None:
    """What went wrong, on stderr, in one line."""
    line = " ".join(sentence.split())
    Output(stderr=True).print(f"[bold red]cida:[/] {escape(line)}", soft_wrap=True)


def print_json(command: str, **fields: Any) -> None:
    """One JSON object on stdout, for programs; a number that is none is null."""
    document = {"verb": command, "cida": __version__, **fields}
    sys.stdout.write(json.dumps(_to_json_value(document), indent=2, allow_nan=False) + "\n")
    sys.stdout.flush()


def folder_contents(folder: Path) -> dict[str, Any]:
    """What a folder of runs has for programs: its results, and the files that are in it."""
    # Not the hidden ones: the lock is gone when the command is.
    files = sorted(p.resolve() for p in folder.glob("[!.]*") if p.is_file())
    results = json.loads((folder / "results.json").read_text())
    return {"folder": folder.resolve(), "files": files, "results": results}


def _to_tsv(table: Table) -> str:
    titles = [] if table.title is None else [_plain_text(table.title)]
    return "\n".join([*titles, *("\t".join(line) for line in _table_rows(table))]) + "\n"


def _table_rows(table: Table) -> list[tuple[str, ...]]:
    """The line of names, and the lines below it."""
    header = tuple(_plain_text(column.header) for column in table.columns)
    columns = ([_plain_text(cell) for cell in column.cells] for column in table.columns)
    return [header, *zip(*columns, strict=True)]


def _plain_text(cell: Any) -> str:
    return Text.from_markup(cell).plain if isinstance(cell, str) else str(cell)


def _to_json_value(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {str(name): _to_json_value(value) for name, value in data.items()}
    if hasattr(data, "tolist"):  # of numpy, which takes too long to import for help
        return _to_json_value(data.tolist())
    if isinstance(data, Sequence) and not isinstance(data, str):
        return [_to_json_value(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return str(data) if isinstance(data, Path) else data
