"""``cida doctor``: what went wrong in a run, and what to change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from cida.diagnostics.doctor import Finding, examine, figures, unjudged
from cida.diagnostics.facts import Facts
from cida.estimators.checkup import facts_in, findings_in
from cida.training import Event
from cida.training.checkpoint import ModelFileError, read_model_file

__all__ = ["Doctor"]

EVENTS = "events.jsonl"
MODEL = "model.safetensors"


@dataclass(frozen=True)
class Patient:
    """One trained model: what its file and, where they were kept, its events say."""

    name: str
    facts: Facts
    history: Sequence[Event]
    kept: Sequence[Finding]

    @property
    def findings(self) -> list[Finding]:
        """By its events; of a file without any, what was found when it was trained."""
        return examine(self.history, self.facts) if self.history else list(self.kept)

    def words(self) -> dict[str, Any]:
        """Everything that is said of it, as JSON values."""
        return {
            "run": self.name,
            "findings": [asdict(finding) for finding in self.findings],
            "unjudged": self.unjudged,
            "figures": figures(self.history, self.facts),
        }

    @property
    def unjudged(self) -> list[str]:
        """What could not be looked at; of a file alone, only what nobody looked at before."""
        if not self.history and self.facts.complete:
            return []
        return unjudged(self.history, self.facts)


@dataclass(frozen=True)
class Doctor:
    """Names what went wrong in a run, and what to change.

    Reads the events and the model of a run; no data are needed. Exit code 1 if a fault is named.

    Example:  cida doctor runs/patients
    """

    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN [RUN ...]")]
    """Folders of runs, as cida fit, demo and reproduce write them, or model files."""

    json: bool = False
    """Print JSON instead of sentences."""

    def run(self, console: Console) -> int:
        """Prints the findings of each model; exit code 1 if there are any."""
        if not self.runs:
            raise ValueError("RUN is missing; name the folder of a run, or a model file.")
        patients = [patient for path in self.runs for patient in _patients(path)]
        if self.json:
            text = json.dumps([patient.words() for patient in patients], indent=2)
            console.print(text, soft_wrap=True, markup=False, highlight=False)
        else:
            for patient in patients:
                _tell(console, patient)
        return 1 if any(patient.findings for patient in patients) else 0


# --- reading -------------------------------------------------------------------------------------


def _patients(path: Path) -> Iterator[Patient]:
    """The model in a file, or all that a run's folder has."""
    if path.is_file():
        yield _patient(str(path), path, ())
        return
    words = _read_run(path)
    events = _read_events(path / EVENTS)
    if words.get("world") != "table":
        if not (path / MODEL).is_file():
            raise ValueError(
                f"RUN is {path}, which kept no {MODEL}; methods of scikit-learn have no game to "
                "examine."
            )
        yield _patient(str(path), path / MODEL, events.get(None, ()))
        return
    for number in range(_count(path, words)):
        name = f"{path} (model {number})"
        yield _patient(name, path / f"model-{number}.safetensors", events.get(number, ()))


def _patient(name: str, file: Path, history: Sequence[Event]) -> Patient:
    _, header = read_model_file(file)
    try:
        return Patient(name, facts_in(header), history, findings_in(header))
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"{file} has a header that is not as cida writes it ({error!r})."
        ) from None


def _read_run(folder: Path) -> Mapping[str, Any]:
    if not folder.is_dir():
        raise FileNotFoundError(f"RUN is {folder}, where there is nothing; check the path.")
    try:
        words = json.loads((folder / "run.json").read_text())
    except FileNotFoundError:
        inside = sorted(found.parent for found in folder.glob("**/run.json"))
        hint = f"such as {inside[0]}" if inside else "as cida fit, demo or reproduce write it"
        raise FileNotFoundError(
            f"RUN is {folder}, which has no run.json; give the folder of one run, {hint}."
        ) from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder / 'run.json'} cannot be read ({error}).") from None
    if not isinstance(words, dict):
        raise ValueError(f"{folder / 'run.json'} is not as cida writes it.")
    return words


def _count(folder: Path, words: Mapping[str, Any]) -> int:
    try:
        return int(words["table"]["estimators"])
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{folder / 'run.json'} does not say how many models there are.") from None


def _read_events(path: Path) -> dict[int | None, list[Event]]:
    """The events of each model; those of a run of one model have no number."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"there is no {path}; a run that was cut short has none: run it again."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read ({error}).") from None
    events: dict[int | None, list[Event]] = {}
    for number, line in enumerate(lines, start=1):
        try:
            words = json.loads(line)
            events.setdefault(words.get("model"), []).append(_event(words))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path} is damaged in line {number} ({error}); run it again."
            ) from None
    return events


def _event(words: Mapping[str, Any]) -> Event:
    """An event as it was written; what a newer version may add is passed over."""
    named = {
        name: {key: float(value) for key, value in words.get(name, {}).items()}
        for name in ("losses", "ceilings", "health")
    }
    return Event(
        step=int(words["step"]),
        steps=int(words["steps"]),
        seconds=float(words["seconds"]),
        learning_rate=float(words["learning_rate"]),
        active=float(words["active"]),
        **named,
    )


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
    if text:
        console.print(Padding(text, (0, 0, 0, indent)), highlight=False)


def _figure_words(found: Mapping[str, float]) -> str:
    words = {
        "index_told": "z tells {:.0%} of the index",
        "pull": "{:.0%} of the gradient in z was the adversary's",
        "prediction_left": "{:.0%} of the blind prediction loss is left on the source",
        "same_source": "{:.0%} of the source rows are predicted as one class",
        "same_far": "{:.0%} of the far target rows",
    }
    return ", ".join(text.format(found[name]) for name, text in words.items() if name in found)
