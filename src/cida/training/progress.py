"""A progress bar of training, with each loss against its ceiling and the health of the game."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.control import Control
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.segment import ControlType
from rich.text import Text

from cida.training import round_probe
from cida.training.events import Event

__all__ = ["ProgressBar", "ResizableProgress", "StatusItem", "make_status_items"]

RESERVED_COLUMNS = 26  # of the terminal, for bar, counts and time behind the title


@dataclass(frozen=True)
class StatusItem:
    """One measured value as text, and whether it is healthy at this time."""

    text: str
    is_healthy: bool = True


def make_status_items(
    event: Event, health: Mapping[str, float], max_encoding_std: float
) -> list[StatusItem]:
    """What the bar shows: losses against their ceilings, and the health of the game.

    ``health`` is the latest, possibly of an earlier event; ``max_encoding_std`` the largest of the
    run so far. Nothing is marked in the first fifth of a run, and what must only hold at the end of
    training not in its first half.
    """
    done = event.step / event.steps
    above = round_probe.loss_above_ceiling(event.losses, event.ceilings)
    index_share = round_probe.index_share_read(event.losses, event.ceilings)
    is_above_ceiling = done > 0.2 and (above or 0.0) > round_probe.MAX_LOSS_ABOVE_CEILING
    reads_index = done > 0.5 and (index_share or 0.0) >= round_probe.MAX_INDEX_SHARE_READ
    items = []
    for name, loss in event.losses.items():
        ceiling = event.ceilings.get(name)
        text = f"{name} {loss:.3f}" + ("" if ceiling is None else f" / {ceiling:.3f}")
        items.append(StatusItem(text, ceiling is None or not is_above_ceiling))
    if index_share is not None:
        items.append(StatusItem(f"index read in z {index_share:.0%}", not reads_index))
    if (gradient_share := health.get("adversarial_gradient_share")) is not None:
        is_weak = reads_index and gradient_share < round_probe.MIN_ADVERSARIAL_GRADIENT_SHARE
        items.append(StatusItem(f"adversarial gradient {gradient_share:.0%}", not is_weak))
    if (encoding_std := health.get("encoding_std")) is not None:
        is_wide = encoding_std > round_probe.MIN_RELATIVE_ENCODING_STD * max_encoding_std
        items.append(StatusItem(f"std of z {encoding_std:.3g}", is_wide))
    if (far_share := health.get("majority_share_far")) is not None:
        source_share = health["majority_share_source"]
        is_even = source_share <= round_probe.MAX_MAJORITY_SHARE_SOURCE
        is_collapsed = far_share >= round_probe.MAX_MAJORITY_SHARE_FAR and is_even and done > 0.5
        text = f"one class far {far_share:.0%}, source {source_share:.0%}"
        items.append(StatusItem(text, not is_collapsed))
    return items


class _TruncatedTitle(TextColumn):
    """The title, cut if the terminal is too narrow for it; the terminal may change its width."""

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
    """A title and a bar, with other columns behind them, in a terminal that may get narrower.

    Lines on the screen then wrap, and rich alone would move up too few of them.
    """

    line_widths: Sequence[int] = ()  # when they were drawn
    terminal_width = 0  # at the same time

    def __init__(self, console: Console, *columns: ProgressColumn, **options: Any) -> None:
        bar = BarColumn(bar_width=24)
        super().__init__(_TruncatedTitle(console), bar, *columns, console=console, **options)

    def get_renderable(self) -> RenderableType:
        renderable = super().get_renderable()
        # Rich calls this once in its own __init__, before there is a screen.
        if hasattr(self, "live") and self.console.is_interactive:
            width = self.console.width
            if width < self.terminal_width:
                extra = sum(max(0, length - 1) // width for length in self.line_widths)
                up = ((ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1))
                self.console.control(Control(*up * extra))
            lines = self.console.render_lines(renderable, pad=False)
            self.line_widths = [sum(part.cell_length for part in line) for line in lines]
            self.terminal_width = width
        return renderable


class ProgressBar(ResizableProgress):
    """A callback that draws a bar with measured values below it; use it as a context manager.

    A value out of its healthy range ends in an exclamation mark. Values fill as many columns as the
    terminal has room for. If the output is no terminal, only the last state is written.
    """

    items: Sequence[StatusItem] = ()
    health: Mapping[str, float] = {}
    max_encoding_std = 0.0

    def __init__(self, title: str = "training", console: Console | None = None) -> None:
        counts = TextColumn("{task.completed:.0f}/{task.total:.0f}")
        super().__init__(console or Console(stderr=True), counts, TimeRemainingColumn())
        self.title = title

    def __deepcopy__(self, memo: object) -> Self:
        """Return itself: clones of an estimator share their callbacks, and there is one screen."""
        return self

    def __call__(self, event: Event) -> None:
        if not self.task_ids:
            self.add_task(self.title, total=event.steps)
        self.health = event.health or self.health
        self.max_encoding_std = max(self.max_encoding_std, self.health.get("encoding_std", 0.0))
        self.items = make_status_items(event, self.health, self.max_encoding_std)
        self.update(self.task_ids[0], completed=event.step)

    def get_renderables(self) -> Iterator[RenderableType]:
        yield from super().get_renderables()
        cells = [
            Text(item.text) if item.is_healthy else Text(f"{item.text} !", "bold red")
            for item in self.items
        ]
        if cells:
            yield _ColumnLayout(cells)


@dataclass(frozen=True)
class _ColumnLayout:
    """Cells side by side in even columns, as many as fit.

    Lines are not padded with blanks, which would wrap when the terminal gets narrower.
    """

    cells: Sequence[Text]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for n_columns in range(len(self.cells), 0, -1):
            columns = [self.cells[column::n_columns] for column in range(n_columns)]
            widths = [max(cell.cell_len for cell in cells) for cells in columns]
            if sum(widths) + 3 * (n_columns - 1) <= options.max_width - 2:
                break
        for start in range(0, len(self.cells), len(widths)):
            line = Text("  ", no_wrap=True, overflow="ellipsis")
            *firsts, last = self.cells[start : start + len(widths)]
            for cell, width in zip(firsts, widths, strict=False):
                line.append_text(cell).append(" " * (width + 3 - cell.cell_len))
            yield line.append_text(last)
