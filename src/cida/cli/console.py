"""Where a command writes: a terminal that somebody looks at, or what a program reads."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import progress
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from cida.errors import CidaWarning, replace_control_characters
from cida.version import __version__

if TYPE_CHECKING:
    from cida.training import Callback

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
        colors: Any = {"color_system": "standard" if use_color else None}
        super().__init__(stderr=stderr, force_terminal=False, width=PIPE_WIDTH_COLUMNS, **colors)

    def print(self, *objects: Any, **options: Any) -> None:
        """As rich prints; a table becomes lines that ``grep`` and ``cut`` can read."""
        clean = replace_control_characters
        if self.is_terminal or not (objects and isinstance(objects[0], Table)):
            texts = (clean(each) if isinstance(each, str) else each for each in objects)
            super().print(*texts, **options)
        else:  # rich would make spaces of the tabs
            self.file.write(clean(_to_tsv(objects[0])))
            self.file.flush()


def print_lines(console: Console, *lines: str, style: str = "") -> None:
    """Prints each in a line of its own, whatever its signs and its length."""
    for sentence in lines:
        console.print(sentence, soft_wrap=True, markup=False, highlight=False, style=style)


def progress_bar(
    console: Console, counts_bytes: bool = False, transient: bool = True
) -> progress.Progress:
    """A bar of rich that counts items or bytes; there is none where nobody looks.

    A transient one is gone when the work is done, and the time left is shown beside it.
    """
    from cida.training.progress import ResizableProgress  # it imports torch

    count = progress.DownloadColumn() if counts_bytes else progress.MofNCompleteColumn()
    time = progress.TimeRemainingColumn() if transient else progress.TimeElapsedColumn()
    options = {"transient": transient, "disable": not console.is_interactive}
    return ResizableProgress(console, count, time, **options)


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
def titled_warnings(title: str, console: Console) -> Iterator[list[str]]:
    """Warnings of ours that come inside are said behind it, once each, with what they are about."""
    lines: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CidaWarning)
        yield lines
    for one in caught:
        if not issubclass(one.category, CidaWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        elif (line := f"{title}: {one.message}") not in lines:
            lines.append(line)
    print_lines(console, *lines, style="yellow")


def print_error(sentence: str) -> None:
    """What went wrong, on stderr, in one line."""
    line = " ".join(sentence.split())
    Output(stderr=True).print(f"[bold red]cida:[/] {escape(line)}", soft_wrap=True)


def print_json(command: str, **fields: Any) -> None:
    """One JSON object on stdout, for programs; a number that is none is null."""
    text = json.dumps({"verb": command, "cida": __version__, **fields}, default=_to_json_value)
    document = json.loads(text, parse_constant=lambda constant: None)
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
    sys.stdout.flush()


def folder_contents(folder: Path) -> dict[str, Any]:
    """What a folder of runs has for programs: its results, and the files that are in it."""
    # Not the hidden files: the lock is gone when the command is.
    files = sorted(p.resolve() for p in folder.glob("[!.]*") if p.is_file())
    results = json.loads((folder / "results.json").read_text())
    return {"folder": folder.resolve(), "files": files, "results": results}


def _to_tsv(table: Table) -> str:
    """The title, the line of names, and the lines below it."""
    columns = ([column.header, *column.cells] for column in table.columns)
    lines = ["\t".join(map(_plain_text, row)) for row in zip(*columns, strict=True)]
    titles = [] if table.title is None else [_plain_text(table.title)]
    return "\n".join([*titles, *lines]) + "\n"


def _plain_text(cell: Any) -> str:
    return Text.from_markup(cell).plain if isinstance(cell, str) else str(cell)


def _to_json_value(data: Any) -> Any:
    if isinstance(data, Mapping):
        return dict(data)
    return data.tolist() if hasattr(data, "tolist") else str(data)  # numpy's, or a path
