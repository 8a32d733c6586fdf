"""A live line while training: each loss against its ceiling."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from cida.training.trainer import Event

__all__ = ["ProgressBar", "loss_words"]


def loss_words(event: Event) -> str:
    """``prediction 0.012, discriminator 3.397 / 3.401``: the ceiling stands after the slash."""
    words = []
    for name, value in event.losses.items():
        ceiling = event.ceilings.get(name)
        words.append(f"{name} {value:.3f}" + (f" / {ceiling:.3f}" if ceiling is not None else ""))
    return ", ".join(words)


class ProgressBar:
    """A callback that draws a progress bar on standard error; use it as a context manager."""

    def __init__(self, title: str = "training", console: Console | None = None) -> None:
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[losses]}"),
            console=console or Console(stderr=True),
        )
        self.title = title
        self.task: TaskID | None = None

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
            self.task = self.progress.add_task(self.title, total=event.steps, losses="")
        self.progress.update(self.task, completed=event.step, losses=loss_words(event))
