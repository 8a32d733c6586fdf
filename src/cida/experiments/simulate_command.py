"""``cida data simulate-sleep``: people who do not exist, in the layout of three studies."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rich.console import Console

from cida.cli.console import progress_bar
from cida.experiments.prepare_command import check_empty_or_resuming

__all__ = ["SimulateSleep"]


@dataclass(frozen=True)
class SimulateSleep:
    """Makes simulated nights of shhs, mesa and sof, as NSRR would lay them out.

    Example:  cida data simulate-sleep --out simulated --subjects 100 --seed 0 --jobs 2

    Stopped, it goes on where it was when started again.
    """

    out: Path
    """The folder for the three cohorts."""
    subjects: int
    """People in each cohort; a night is 1 to 4 MB."""
    seed: int
    """Decides everything; more subjects of the same seed leave the first ones as they were."""
    jobs: int = 1
    """Nights that are written side by side."""

    resume: bool = True
    """By default the nights that are missing are made; with --no-resume a folder that has nights
    already is refused."""

    interrupted: ClassVar[str] = (
        "interrupted; finished nights are kept: the same command goes on with the others."
    )

    def run(self, console: Console) -> int:
        """Prints who was made, what to run next and, last, where they are."""
        from cida.experiments.sleep import simulate_cohorts  # it imports torch

        out = self.out.expanduser()
        if out.exists() and not out.is_dir():
            raise ValueError(f"out is {out}, which is no folder; choose another name.")
        check_empty_or_resuming(out, self.resume)
        with progress_bar(console) as bar:
            task = bar.add_task("nights", total=0)
            roots = simulate_cohorts(
                out,
                self.subjects,
                self.seed,
                self.jobs,
                lambda done, total: bar.update(task, completed=done, total=total),
            )
            n_written = int(bar.tasks[0].completed)
        for line in _summary_lines(out, roots, n_written):
            console.print(line, soft_wrap=True, markup=False, highlight=False)
        return 0


def _summary_lines(out: Path, roots: list[Path], n_written: int) -> list[str]:
    from cida.experiments.sleep import STUDIES

    subjects_by_study = {root.name: len(STUDIES[root.name].find_recordings(root)) for root in roots}
    counts = ", ".join(f"{count} in {name}" for name, count in subjects_by_study.items())
    return [
        f"simulated people: {counts}; nobody was recorded; {n_written} nights were written now",
        "next, for each study that is wanted:",
        *(_next_command(root, out / "stores" / root.name) for root in roots),
        str(out),
    ]


def _next_command(root: Path, store: Path) -> str:
    args = ["cida", "data", "prepare-nsrr", "--study", root.name]
    return shlex.join([*args, "--root", str(root), "--out", str(store)])
