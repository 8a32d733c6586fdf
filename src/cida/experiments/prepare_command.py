"""``cida data prepare-nsrr``: a study's folder to a store of segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import tyro
from rich.console import Console
from tyro.conf import UseAppendAction

from cida.cli.console import progress_bar

if TYPE_CHECKING:
    from cida.experiments.sleep import PreparationReport

__all__ = ["PrepareNsrr", "check_empty_or_resuming"]


@dataclass(frozen=True)
class PrepareNsrr:
    """Makes a store of 30 s segments of breathing from a study as NSRR lays it out.

    Example:  cida data prepare-nsrr --study shhs --root ~/nsrr/shhs --out shhs-store --jobs 4

    Stopped, it goes on where it was when started again.
    """

    study: Literal["shhs", "mesa", "sof"]
    """The study."""
    root: Path
    """The study's folder, the one with polysomnography/ and datasets/ in it."""
    out: Path
    """The folder of the store."""
    jobs: int = 1
    """Nights that are read side by side."""
    channel: str | None = None
    """The channel to read instead of the chest belt, or else the belly belt."""
    column: Annotated[
        UseAppendAction[tuple[tuple[str, ...], ...]], tyro.conf.arg(metavar="INDEX=COLUMN ...")
    ] = ()
    """Columns of the study's table by another name: age=my_age gender=sex."""

    resume: bool = True
    """By default the nights that are missing are made; with --no-resume a folder that has nights
    already is refused."""

    interrupted: ClassVar[str] = (
        "interrupted; finished nights are kept: the same command goes on with the others."
    )

    def run(self, console: Console) -> int:
        """Prints what was prepared, what failed and, last, where the store is."""
        from cida.experiments.sleep import STUDIES, prepare_study  # it imports torch

        columns = _parse_columns([*chain(*self.column)])
        check_empty_or_resuming(self.out, self.resume)
        with progress_bar(console) as bar:
            task = bar.add_task(self.study, total=0)
            report = prepare_study(
                STUDIES[self.study],
                self.root,
                self.out,
                self.jobs,
                self.channel,
                columns,
                lambda done, total: bar.update(task, completed=done, total=total),
            )
        for line in _summary_lines(report):
            console.print(line, soft_wrap=True, markup=False, highlight=False)
        return 0


def check_empty_or_resuming(out: Path, resume: bool) -> None:
    """Refuses a folder with something in it where nothing is to be gone on with."""
    if not resume and out.expanduser().is_dir() and any(out.expanduser().iterdir()):
        raise ValueError(
            f"out is {out}, which is not empty; leave --no-resume out to go on, or choose another."
        )


def _parse_columns(pairs: Sequence[str]) -> dict[str, str]:
    columns = {}
    for pair in pairs:
        index, equals, column = pair.partition("=")
        if not equals or not index or not column:
            raise ValueError(f"column is {pair!r}; write INDEX=COLUMN, for example age=my_age.")
        if index in columns:
            raise ValueError(f"column has {index} twice; leave one.")
        columns[index] = column
    return columns


def _summary_lines(report: PreparationReport) -> list[str]:
    counts, store = report.counts, report.store
    people = "simulated subjects" if store.is_simulated else "subjects"
    lines = [
        f"{len(store.subjects)} {people} with {counts.segments} segments of 30 s; "
        f"{report.n_nights_read} nights were read now",
        f"left out: {counts.unscored} epochs without a stage, {counts.gaps} without a signal, "
        f"{counts.cut} beyond the end of recording or annotation",
    ]
    if report.failures:
        lines.append(f"{len(report.failures)} subjects failed; why is in {report.path}")
    return [*lines, str(store.folder)]
