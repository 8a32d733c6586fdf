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

from cida.training.health import (
    ABOVE,
    COLLAPSED,
    KNOWN,
    ONE_CLASS,
    SEVERAL_CLASSES,
    WEAK_PULL,
    excess,
    known,
)
from cida.training.trainer import Event

__all__ = ["Bars", "ProgressBar", "Reading", "Title", "loss_words", "readings"]

BEHIND = 26  # columns of a line for what comes behind its title: a bar that shrinks, counts, time


@dataclass(frozen=True)
class Reading:
    """One figure in words, and whether it is where it should be by now."""

    words: str
    healthy: bool = True


def readings(event: Event, health: Mapping[str, float], widest: float) -> list[Reading]:
    """The figures of the live table: losses against their ceilings, and how the game stands.

    ``health`` is the latest, which may be of an event before; ``widest`` the largest spread of z
    so far. In the first fifth of a run nothing is amiss yet, and what is only wrong when training
    ends is marked from its half on.
    """
    done = event.step / event.steps
    above, share = excess(event.losses, event.ceilings), known(event.losses, event.ceilings)
    lags = above is not None and above > ABOVE and done > 0.2
    told = share is not None and share >= KNOWN and done > 0.5
    found = [
        Reading(words, not (lags and name in event.ceilings))
        for name, words in _loss_words(event).items()
    ]
    if share is not None:
        found.append(Reading(f"index told by z {share:.0%}", not told))
    if (pull := health.get("pull")) is not None:
        found.append(Reading(f"adversary's pull {pull:.0%}", not (told and pull < WEAK_PULL)))
    if (spread := health.get("spread")) is not None:
        found.append(Reading(f"spread of z {spread:.3g}", spread > COLLAPSED * widest))
    if (far := health.get("same_far")) is not None:
        near = health["same_source"]
        one_class = far >= ONE_CLASS and near <= SEVERAL_CLASSES and done > 0.5
        found.append(Reading(f"one class far {far:.0%}, source {near:.0%}", not one_class))
    return found


def loss_words(event: Event) -> str:
    """``prediction 0.012, discriminator 3.397 / 3.401``: the ceiling stands after the slash."""
    return ", ".join(_loss_words(event).values())


def _loss_words(event: Event) -> dict[str, str]:
    words = {}
    for name, value in event.losses.items():
        ceiling = event.ceilings.get(name)
        words[name] = f"{name} {value:.3f}" + (f" / {ceiling:.3f}" if ceiling is not None else "")
    return words


class ProgressBar:
    """A callback that draws a bar and the game's figures below it; use it as a context manager.

    A figure that is out of its healthy range ends in an exclamation mark. Figures flow into as many
    columns as the terminal is wide. Where nobody looks, only the last state is written.
    """

    def __init__(self, title: str = "training", console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        self.progress = _Bar(
            Title(console),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeRemainingColumn(),
            console=console,
        )
        self.title = title
        self.task: TaskID | None = None
        self.health: Mapping[str, float] = {}
        self.widest = 0.0

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
        self.widest = max(self.widest, self.health.get("spread", 0.0))
        self.progress.figures = readings(event, self.health, self.widest)
        self.progress.update(self.task, completed=event.step)


class Title(TextColumn):
    """What is going on; cut where the terminal is too narrow for it and what comes behind.

    Asked for at each drawing, so that a terminal may change its width meanwhile.
    """

    def __init__(self, console: Console) -> None:
        super().__init__("{task.description}", markup=False)
        self.console = console

    def render(self, task: Task) -> Text:
        title = super().render(task)
        room = max(8, self.console.width - BEHIND)
        if room < title.cell_len:
            title.rstrip()
            title.truncate(room, overflow="ellipsis")
        return title


class Bars(Progress):
    """A progress bar that survives a terminal that gets narrower.

    The lines that are drawn wrap then, and rich would go up too few of them to draw the next.
    """

    drawn: Sequence[int] = ()  # the width of each line
    width = 0  # of the terminal, at that time

    def get_renderable(self) -> RenderableType:
        found = super().get_renderable()
        # Asked for once before there is a screen, while rich still makes this object.
        if hasattr(self, "live") and self.console.is_interactive:
            self._clear_wrapped(self.console.width)
            lines = self.console.render_lines(found, pad=False)
            self.drawn = [sum(part.cell_length for part in line) for line in lines]
            self.width = self.console.width
        return found

    def _clear_wrapped(self, width: int) -> None:
        if width < self.width:
            extra = sum(max(0, length - 1) // width for length in self.drawn)
            up = ((ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1))
            self.console.control(Control(*up * extra))


class _Bar(Bars):
    """A progress bar with figures below it."""

    figures: Sequence[Reading] = ()

    def get_renderables(self) -> Iterator[RenderableType]:
        yield from super().get_renderables()
        cells = [
            Text(reading.words) if reading.healthy else Text(f"{reading.words} !", "bold red")
            for reading in self.figures
        ]
        if cells:
            yield _Flow(cells)


@dataclass(frozen=True)
class _Flow:
    """Cells side by side in even columns, as many as fit.

    No line is longer than its words: a line filled up with blanks would wrap when the terminal
    gets narrower, and leave its first half behind.
    """

    cells: Sequence[Text]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = self._widths(options.max_width - 2)
        for start in range(0, len(self.cells), len(widths)):
            line = Text("  ", no_wrap=True, overflow="ellipsis")
            *firsts, last = self.cells[start : start + len(widths)]
            for cell, width in zip(firsts, widths, strict=False):
                line.append_text(cell).append(" " * (width + 3 - cell.cell_len))
            yield line.append_text(last)

    def _widths(self, room: int) -> list[int]:
        for across in range(len(self.cells), 0, -1):
            columns = [self.cells[place::across] for place in range(across)]
            widths = [max(cell.cell_len for cell in column) for column in columns]
            if sum(widths) + 3 * (across - 1) <= room:
                break
        return widths
