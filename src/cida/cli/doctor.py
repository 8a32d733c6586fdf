"""``cida doctor``: what went wrong in a run, and what to change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from cida.cli.output import print_json
from cida.diagnostics.doctor import figures
from cida.report.patients import Patient, patients_in

__all__ = ["Doctor"]


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
        """Prints the findings of each model; exit code 1 if there are any."""
        if not self.runs:
            raise ValueError("RUN is missing; name the folder of a run, or a model file.")
        patients = [patient for path in self.runs for patient in patients_in(path)]
        if self.json:
            print_json("doctor", models=[patient.words() for patient in patients])
        else:
            for patient in patients:
                _tell(console, patient)
        return 1 if any(patient.findings for patient in patients) else 0


# --- telling -------------------------------------------------------------------------------------


def _tell(console: Console, patient: Patient) -> None:
    console.print(f"[bold]{escape(patient.name)}[/]", soft_wrap=True, highlight=False)
    for finding in patient.findings:
        _line(console, f"[bold red]{finding.fault}[/]")
        _line(console, escape(finding.found), 4)
        _line(console, f"[bold]{escape(finding.fix)}[/]", 4)
    unjudged = patient.unjudged
    if not patient.findings:
        _line(console, "[green]no fault found[/]" + (" in what could be judged" * bool(unjudged)))
        _line(console, escape(_figure_words(figures(patient.history, patient.facts))), 4)
    for sentence in unjudged:
        _line(console, f"[yellow]not judged:[/] {escape(sentence)}")


def _line(console: Console, text: str, indent: int = 2) -> None:
    if not text:
        return
    if console.is_terminal:
        console.print(Padding(text, (0, 0, 0, indent)), highlight=False)
    else:  # whole, as one line
        console.print(" " * indent + text, soft_wrap=True, highlight=False)


def _figure_words(found: Mapping[str, float]) -> str:
    words = {
        "index_told": "z tells {:.0%} of the index",
        "pull": "{:.0%} of the gradient in z was the adversary's",
        "prediction_left": "{:.0%} of the blind prediction loss is left on the source",
        "same_source": "{:.0%} of the source rows are predicted as one class",
        "same_far": "{:.0%} of the far target rows",
    }
    return ", ".join(text.format(found[name]) for name, text in words.items() if name in found)
