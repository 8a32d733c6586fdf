"""``cida doctor``: what went wrong in a run, and what to change."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from cida.cli.console import print_json

if TYPE_CHECKING:
    from cida.runs.fitted_run import FittedRun


@dataclass(frozen=True)
class Doctor:
    """Names what went wrong in a run, and what to change.

    Reads the events and the model of a run; no data are needed. Exit code 1 if a fault is named.

    Example:  cida doctor runs/patients
    """

    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN [RUN ...]")]
    """Folders of runs, as cida fit, demo and reproduce write them, or model files."""

    json: bool = False
    """Print one JSON object for programs; whatever else is said goes to stderr."""

    def run(self, console: Console) -> int:
        """Prints the diagnoses of each model; exit code 1 if there are any."""
        from cida.runs.run_folder import load_fitted_run  # it imports torch

        if not self.runs:
            raise ValueError("RUN is missing; name the folder of a run, or a model file.")
        fitted_runs = [load_fitted_run(path) for path in self.runs]
        if self.json:
            print_json("doctor", models=[each.to_dict() for each in fitted_runs])
        for fitted_run in () if self.json else fitted_runs:
            _print_diagnoses(console, fitted_run)
        return 1 if any(fitted_run.diagnoses for fitted_run in fitted_runs) else 0


def _print_diagnoses(console: Console, fitted_run: FittedRun) -> None:
    from cida.doctor.diagnose import final_metrics
    from cida.doctor.doctor_summary import describe_metrics

    console.print(f"[bold]{escape(fitted_run.name)}[/]", soft_wrap=True, highlight=False)
    for diagnosis in fitted_run.diagnoses:
        _print_line(console, f"[bold red]{diagnosis.code}[/]")
        _print_line(console, escape(diagnosis.describe_evidence()), 4)
        _print_line(console, f"[bold]{escape(diagnosis.describe_suggestion())}[/]", 4)
    if not fitted_run.diagnoses:
        scope = " in what could be judged" if fitted_run.skipped_checks else ""
        metrics = final_metrics(fitted_run.history, fitted_run.fit_summary)
        _print_line(console, f"[green]no fault found[/]{scope}")
        _print_line(console, escape(describe_metrics(metrics)), 4)
    for check in fitted_run.skipped_checks:
        _print_line(console, f"[yellow]not judged:[/] {escape(check.summary())}")


def _print_line(console: Console, text: str, indent: int = 2) -> None:
    if not text:
        return
    if console.is_terminal:
        console.print(Padding(text, (0, 0, 0, indent)), highlight=False)
    else:  # whole, as one line
        console.print(" " * indent + text, soft_wrap=True, highlight=False)
