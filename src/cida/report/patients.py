"""Trained models as the doctor sees them: what their files and events say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from cida.diagnostics.doctor import Finding, examine, figures, unjudged
from cida.diagnostics.facts import Facts
from cida.estimators import loading
from cida.estimators.checkup import facts_in, findings_in
from cida.files import own_file
from cida.plain import checked, from_words, parse_json
from cida.training import Event
from cida.training.checkpoint import ModelFileError, read_model_file

__all__ = ["MODEL", "RUN", "Patient", "patients_in", "patients_of", "read_run"]

RUN = "run.json"
EVENTS = "events.jsonl"
MODEL = "model.safetensors"
TABLE = "table"  # what run.json says a run of `cida fit` is of

MOST_RATE = 1e6  # of learning: no training has such a one


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


def patients_in(path: Path) -> Iterator[Patient]:
    """The model in a file, or all that a run's folder has."""
    if path.is_file():
        yield _patient(str(path), path, ())
        return
    words = read_run(path)
    if words.get("world") != TABLE and not (path / MODEL).is_file():
        raise ValueError(
            f"RUN is {path}, which kept no {MODEL}; methods of scikit-learn have no game to "
            "examine."
        )
    yield from patients_of(path, words)


def patients_of(path: Path, words: Mapping[str, Any]) -> Iterator[Patient]:
    """The models of a run whose run.json was read; those of scikit-learn are not among them."""
    events = _read_events(own_file(path, EVENTS))
    if words.get("world") != TABLE:
        if (model := own_file(path, MODEL)).is_file():
            yield _patient(str(path), model, events.get(None, ()))
        return
    for number in range(_count(path, words)):
        name = f"{path} (model {number})"
        file = own_file(path, f"model-{number}.safetensors")
        yield _patient(name, file, events.get(number, ()))


def _patient(name: str, file: Path, history: Sequence[Event]) -> Patient:
    _, header = read_model_file(file)
    try:
        return Patient(name, facts_in(header), history, findings_in(header))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"{file} has a header that is not as cida writes it ({error})."
        ) from None


def read_run(folder: Path) -> Mapping[str, Any]:
    """What run.json says, in the folder of one run."""
    if not folder.is_dir():
        raise FileNotFoundError(f"RUN is {folder}, where there is nothing; check the path.")
    try:
        return loading.read_run(folder)
    except FileNotFoundError:
        inside = sorted(found.parent for found in folder.glob(f"**/{RUN}"))
        hint = f"such as {inside[0]}" if inside else "as cida fit, demo or reproduce write it"
        raise FileNotFoundError(
            f"RUN is {folder}, which has no {RUN}; give the folder of one run, {hint}."
        ) from None


def _count(folder: Path, words: Mapping[str, Any]) -> int:
    try:
        return int(checked(int, words["table"]["estimators"], "estimators"))
    except (KeyError, ValueError):
        raise ValueError(f"{folder / RUN} does not say how many models there are.") from None


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
            event = from_words(_Line, _known(parse_json(line)))
            told = events.setdefault(event.model, [])
            if told and event.step <= told[-1].step:
                raise ValueError(f"step {event.step} after step {told[-1].step}")
            told.append(event.event())
        except ValueError as error:
            raise ValueError(
                f"{path} is damaged in line {number} ({error}); run it again."
            ) from None
    return events


@dataclass(frozen=True)
class _Line(Event):
    """A line of events.jsonl: an event, and of which model it is where there are several."""

    model: int | None = None

    def event(self) -> Event:
        """The event alone; refuses one before the first step or without a learning rate."""
        if self.step < 1 or not 0 < self.learning_rate < MOST_RATE:
            raise ValueError(f"step {self.step} with learning rate {self.learning_rate:g}")
        return Event(**{each.name: getattr(self, each.name) for each in fields(Event)})


def _known(words: Any) -> Any:
    """What a newer version may add is passed over."""
    names = {each.name for each in fields(_Line)}
    return {k: v for k, v in words.items() if k in names} if isinstance(words, dict) else words
