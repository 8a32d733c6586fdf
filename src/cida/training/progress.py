"""A live table while training: each loss against its ceiling, and how the game stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.control import Control
from rich.progress import BarColumn, Progress, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.segment import ControlType
from rich.text import Text

from cida.training.events import Event
from cida.training.round_probe import (
    MAX_INDEX_SHARE_READ,
    MAX_LOSS_ABOVE_CEILING,
    MAX_MAJORITY_SHARE_FAR,
    MAX_MAJORITY_SHARE_SOURCE,
    MIN_ADVERSARIAL_GRADIENT_SHARE,
    MIN_RELATIVE_ENCODING_STD,
    index_share_read,
    loss_above_ceiling,
)

__all__ = [
    "ProgressBar",
    "ResizableProgress",
    "StatusItem",
    "TruncatedTitle",
    "format_losses",
    "make_status_items",
]

RESERVED_COLUMNS = (
    26  # columns of a line for what comes behind its title: a bar that shrinks, counts, time
)


@dataclass(frozen=True)
class StatusItem:
    """One figure in words, and whether it is where it should be by now."""

    text: str
    is_healthy: bool = True


def make_status_items(
    event: Event, health: Mapping[str, float], max_encoding_std: float
) -> list[StatusItem]:
    """The figures of the live table: losses against their ceilings, and how the game stands.

    ``health`` is the latest, which may be of an event before; ``widest`` the largest spread of z
    so far. In the first fifth of a run nothing is amiss yet, and what is only wrong when training
    ends is marked from its half on.
    """
    done = event.step / event.steps
    above, index_share = (
        loss_above_ceiling(event.losses, event.ceilings),
        index_share_read(event.losses, event.ceilings),
    )
    is_above_ceiling = above is not None and above > MAX_LOSS_ABOVE_CEILING and done > 0.2
    reads_index = index_share is not None and index_share >= MAX_INDEX_SHARE_READ and done > 0.5
    items = [
        StatusItem(words, not (is_above_ceiling and name in event.ceilings))
        for name, words in _format_each_loss(event).items()
    ]
    if index_share is not None:
        items.append(StatusItem(f"index told by z {index_share:.0%}", not reads_index))
    if (gradient_share := health.get("adversarial_gradient_share")) is not None:
        items.append(
            StatusItem(
                f"adversary's pull {gradient_share:.0%}",
                not (reads_index and gradient_share < MIN_ADVERSARIAL_GRADIENT_SHARE),
            )
        )
    if (encoding_std := health.get("encoding_std")) is not None:
        items.append(
            StatusItem(
                f"spread of z {encoding_std:.3g}",
                encoding_std > MIN_RELATIVE_ENCODING_STD * max_encoding_std,
            )
        )
    if (far_share := health.get("majority_share_far")) is not None:
        source_share = health["majority_share_source"]
        is_collapsed = (
            far_share >= MAX_MAJORITY_SHARE_FAR
            and source_share <= MAX_MAJORITY_SHARE_SOURCE
            and done > 0.5
        )
        items.append(
            StatusItem(
                f"one class far {far_share:.0%}, source {source_share:.0%}", not is_collapsed
            )
        )
    return items


def format_losses(event: Event) -> str:
    """``prediction 0.012, discriminator 3.397 / 3.401``: the ceiling stands after the slash."""
    return ", ".join(_format_each_loss(event).values())


def _format_each_loss(event: Event) -> dict[str, str]:
    texts = {}
    for name, value in event.losses.items():
        ceiling = event.ceilings.get(name)
        texts[name] = f"{name} {value:.3f}" + (f" / {ceiling:.3f}" if ceiling is not None else "")
    return texts


class ProgressBar:
    """A callback that draws a bar and the game's figures below it; use it as a context manager.

    A figure that is out of its healthy range ends in an exclamation mark. Figures flow into as many
    columns as the terminal is wide. Where nobody looks, only the last state is written.
    """

    def __init__(self, title: str = "training", console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        self.progress = _StatusProgress(
            TruncatedTitle(console),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeRemainingColumn(),
            console=console,
        )
        self.title = title
        self.task: TaskID | None = None
        self.health: Mapping[str, float] = {}
        self.max_encoding_std = 0.0

    def __deepcopy__(self, memo: object) -> Self:
        """Itself: an estimator that is cloned has the same callbacks, and there is one screen."""
        return self

    def __enter__(self) -> Self:
        self.progress.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.progress.__exit__(kind, error, trace)

    def __call__(self, event: Event) -> None:
        if self.task is None:
            self.task = self.progress.add_task(self.title, total=event.steps)
        self.health = event.health or self.health
        self.max_encoding_std = max(self.max_encoding_std, self.health.get("encoding_std", 0.0))
        self.progress.items = make_status_items(event, self.health, self.max_encoding_std)
        self.progress.update(self.task, completed=event.step)


class TruncatedTitle(TextColumn):
    """What is going on; cut where the terminal is too narrow for it and what comes behind.

    Asked for at each drawing, so that a terminal may change its width meanwhile.
    """

    def __init__(self, console: Console) -> None:
        super().__init__("{task.description}", markup=False)
        self.console = console

    def render(self, task: Task) -> Text:
        title = super().render(task)
        available_width = max(8, self.console.width - RESERVED_COLUMNS)
        if available_width < title.cell_len:
            title.rstrip()
            title.truncate(available_width, overflow="ellipsis")
        return title


class ResizableProgress(Progress):
    """A progress bar that survives a terminal that gets narrower.

    The lines that are drawn wrap then, and rich would go up too few of them to draw the next.
    """

    line_widths: Sequence[int] = ()  # the width of each line
    terminal_width = 0  # of the terminal, at that time

    def get_renderable(self) -> RenderableType:
        renderable = super().get_renderable()
        # Asked for once before there is a screen, while rich still makes this object.
        if hasattr(self, "live") and self.console.is_interactive:
            self._clear_wrapped(self.console.width)
            lines = self.console.render_lines(renderable, pad=False)
            self.line_widths = [sum(part.cell_length for part in line) for line in lines]
            self.terminal_width = self.console.width
        return renderable

    def _clear_wrapped(self, width: int) -> None:
        if width < self.terminal_width:
            extra = sum(max(0, length - 1) // width for length in self.line_widths)
            up = ((ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1))
            self.console.control(Control(*up * extra))


class _StatusProgress(ResizableProgress):
    """A progress bar with figures below it."""

    items: Sequence[StatusItem] = ()

    def get_renderables(self) -> Iterator[RenderableType]:
        yield from super().get_renderables()
        cells = [
            Text(reading.text) if reading.is_healthy else Text(f"{reading.text} !", "bold red")
            for reading in self.items
        ]
        if cells:
            yield _ColumnLayout(cells)


@dataclass(frozen=True)
class _ColumnLayout:
    """Cells side by side in even columns, as many as fit.

    No line is longer than its words: a line filled up with blanks would wrap when the terminal
    gets narrower, and leave its first half behind.
    """

    cells: Sequence[Text]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = self._column_widths(options.max_width - 2)
        for start in range(0, len(self.cells), len(widths)):
            line = Text("  ", no_wrap=True, overflow="ellipsis")
            *firsts, last = self.cells[start : start + len(widths)]
            for cell, width in zip(firsts, widths, strict=False):
                line.append_text(cell).append(" " * (width + 3 - cell.cell_len))
            yield line.append_text(last)

    def _column_widths(self, available_width: int) -> list[int]:
        for n_columns in range(len(self.cells), 0, -1):
            columns = [self.cells[place::n_columns] for place in range(n_columns)]
            widths = [max(cell.cell_len for cell in column) for column in columns]
            if sum(widths) + 3 * (n_columns - 1) <= available_width:
                break
        return widths
