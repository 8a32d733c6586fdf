"""Progress bars: they fit the terminal, and are not there where nobody looks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from cida.training import Callback
from cida.training.progress import ProgressBar, ResizableProgress, TruncatedTitle

__all__ = ["download_bar", "nights_bar", "runs_bar", "watching"]


def nights_bar(console: Console) -> Progress:
    """Nights done of so many; gone when they are."""
    counts = TextColumn("{task.completed:.0f}/{task.total:.0f}")
    return _bar(console, counts, TimeRemainingColumn(), transient=True)


def runs_bar(console: Console) -> Progress:
    """Runs done of so many; stays when they are."""
    return _bar(console, MofNCompleteColumn(), TimeElapsedColumn())


def download_bar(console: Console) -> Progress:
    """Bytes done of so many; gone when they are."""
    return _bar(console, DownloadColumn(), TimeElapsedColumn(), transient=True)


@contextmanager
def watching(title: str, console: Console) -> Iterator[Sequence[Callback]]:
    """The live table of one model that is trained."""
    if not console.is_interactive:
        yield ()
        return
    with ProgressBar(title, console) as bar:
        yield (bar,)


def _bar(console: Console, *behind: ProgressColumn, transient: bool = False) -> Progress:
    return ResizableProgress(
        TruncatedTitle(console),
        BarColumn(bar_width=24),
        *behind,
        console=console,
        transient=transient,
        disable=not console.is_interactive,
    )
